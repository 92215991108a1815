"""MADE, MADE-MOG, Real NVP, MAF and MAF-MOG: specification, density and fit."""
