"""An energy network trained by score matching: specification, density, objectives and fit."""
