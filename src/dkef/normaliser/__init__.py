"""log Z of unnormalised models by importance sampling, its bias bounded where possible (Section 3.2, Appendix D)."""

from dkef.normaliser.bias_bound import BoundError, bias_bound, hoeffding_upper

__all__ = ["BoundError", "bias_bound", "hoeffding_upper"]
