"""Proposals that go beyond the paper: a defensive mixture, annealed chains, and the choice between them."""
