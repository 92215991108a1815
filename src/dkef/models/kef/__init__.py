"""The (deep) kernel exponential family: specification, density and fit."""
