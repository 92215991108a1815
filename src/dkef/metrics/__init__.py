"""How well a model fits: Stein discrepancies, score loss, Fisher divergence, likelihoods."""
