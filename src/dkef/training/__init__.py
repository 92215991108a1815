"""Fitting procedures."""
