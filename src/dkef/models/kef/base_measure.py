"""Derivatives of log q0(x) = -sum_d |x_d - mu_d|^beta_d / (2 sigma_d^2)."""

from dkef.core.backend import Tensor, backend_of
from dkef.models.kef.kernels import Expansion
from dkef.models.kef.parameters import BaseMeasure

# For beta < 2 the second derivative grows like |u|^(beta - 2) at u = x - mu = 0. Distances below this count as this,
# so that one training row at mu cannot give an infinite loss; the density itself changes by less than 1e-6.
SMALLEST_DISTANCE = 1e-6


def base_jet(q0: BaseMeasure, x: Tensor) -> Expansion:
    """log q0 [n], not normalised, and its first and second derivative in each coordinate [n, d], at x [n, d]."""
    ops = backend_of(x)
    u = x - q0.mu
    log_u = ops.log(ops.maximum(ops.abs(u), SMALLEST_DISTANCE))
    scale = 1.0 / (2.0 * q0.sigma**2)
    first = -scale * q0.beta * ops.sign(u) * ops.exp((q0.beta - 1.0) * log_u)
    second = -scale * q0.beta * (q0.beta - 1.0) * ops.exp((q0.beta - 2.0) * log_u)
    return Expansion(-ops.sum(scale * ops.exp(q0.beta * log_u), -1), first, second)
