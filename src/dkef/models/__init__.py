"""Trained density models."""
