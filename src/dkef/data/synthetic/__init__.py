"""Distributions whose density is known, and datasets drawn from them."""
