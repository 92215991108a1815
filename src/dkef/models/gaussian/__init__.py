"""The normal distribution: specification and density."""
