"""The kernel conditional exponential family: specification, density and fit."""
