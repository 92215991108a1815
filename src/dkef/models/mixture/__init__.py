"""A weighted sum of fitted models, one for each cluster: specification, density and fit."""
