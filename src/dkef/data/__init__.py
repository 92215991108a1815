"""Data, from raw files to whitened splits."""
