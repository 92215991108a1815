"""Proposition 1 of the paper: an upper bound on the bias of log Z^, in logs throughout."""

import math

from dkef.core.errors import DkefError


class BoundError(DkefError):
    """A condition of Proposition 1 does not hold; the message says which."""


def bias_bound(log_a: float, log_s: float, rho: float, log_z: float, log_var: float, n: int) -> float:
    """Upper bound in nats on log Z - E log Z^, for Z^ the mean of n independent r with mean Z and variance Var.

        psi(t, Z) / (Z - t)^2  Var / n  +  max(psi(a, Z), psi(t, Z)) (4 rho (1 - rho))^(n / 2)

    with t = (a + s) / 2 and psi(q, Z) = log(Z / q) + q / Z - 1. Needs r >= a always, Pr(r <= s) <= rho < 1/2, a < s
    and t < Z; BoundError where one of the conditions that can be seen here does not hold.
    """
    log_t = _log_mean_of_two(log_a, log_s)
    if not 0 <= rho < 0.5:
        raise BoundError(f"rho = {rho:.4g} is not below 1/2")
    if not log_a < log_s:
        raise BoundError(f"log a = {log_a:.6g} is not below log s = {log_s:.6g}")
    if not log_t < log_z:
        raise BoundError(f"log t = {log_t:.6g} is not below log Z = {log_z:.6g}")
    depth = log_z - log_t
    first = log_var - 2 * log_z - math.log(n) + math.log(_curvature(depth))
    largest = max(_psi(log_z - log_a), _psi(depth))
    # 4 rho (1 - rho) = 1 - (1 - 2 rho)^2
    per_sample = 0.5 * math.log1p(-((1 - 2 * rho) ** 2)) if rho > 0 else -math.inf
    return _exp(first) + _exp(math.log(largest) + n * per_sample)


def hoeffding_upper(below: int, n: int, confidence: float = 0.999) -> float:
    """Upper confidence limit of a probability of which `below` in n independent trials were seen."""
    return below / n + math.sqrt(math.log(1 / (1 - confidence)) / (2 * n))


def _log_mean_of_two(a: float, b: float) -> float:
    low, high = min(a, b), max(a, b)
    return high + math.log1p(math.exp(low - high)) - math.log(2)


def _psi(depth: float) -> float:
    """psi(q, Z) for depth = log(Z / q) >= 0; grows like depth^2 / 2 from 0, where the closed form would cancel."""
    if depth < 0.02:
        return depth**2 * (1 / 2 - depth * (1 / 6 - depth * (1 / 24 - depth * (1 / 120 - depth / 720))))
    return depth + math.expm1(-depth)


def _curvature(depth: float) -> float:
    """Z^2 psi(t, Z) / (Z - t)^2 for depth = log(Z / t) > 0; tends to 1/2 as t tends to Z."""
    return _psi(depth) / math.expm1(-depth) ** 2


def _exp(x: float) -> float:
    return math.exp(x) if x < 709 else math.inf
