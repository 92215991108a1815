"""Proposals that know where the mass is: g = eps q0 + (1 - eps) h, and the weights p~ / g of its samples.

h lies around the training rows (`normals`). The share eps of q0 keeps r from above, r <= exp(f) Z_0 / eps, so that its
variance is finite whatever h misses; and it gives the lower bound that Proposition 1 needs: with p~ = exp(f) q0 Z_0,

    r = p~ / g = exp(f) Z_0 / (eps + (1 - eps) h / q0)
             >=  exp(sum min(alpha, 0)) Z_0 / (eps + (1 - eps) sup h / q0)  =  a,

the numerator being the a of q0 itself and sup h / q0 what `CutNormals.log_greatest_ratio` bounds.
"""

import math
from dataclasses import dataclass

import numpy as np

from dkef.core.arrays import Array
from dkef.core.streams import rng_for
from dkef.models.kef.parameters import BaseMeasure
from dkef.models.protocol import BaseDensity
from dkef.normaliser.integrand import Integrand
from dkef.normaliser.proposals.normals import CutNormals
from dkef.normaliser.weights import Weights


@dataclass(frozen=True)
class DefensiveMixture:
    """g, with q0 normalised in it."""

    q0: BaseDensity  # or, for a model without one, what stands in its place: see `student`
    normals: CutNormals
    q0_share: float  # eps

    def log_density(self, x: Array) -> Array:
        """log g at x [n, d]; returns [n]."""
        return np.logaddexp(self.log_q0_part(x), math.log1p(-self.q0_share) + self.normals.log_density(x))

    def log_density_and_gradient(self, x: Array) -> tuple[Array, Array]:
        """log g [n] and its gradient [n, d]."""
        log_q0 = self.log_q0_part(x)
        log_h, gradient_h = self.normals.log_density_and_gradient(x)
        log_g = np.logaddexp(log_q0, math.log1p(-self.q0_share) + log_h)
        q0_part = np.exp(log_q0 - log_g)[:, None]
        return log_g, q0_part * self.q0.score(x) + (1 - q0_part) * gradient_h

    def sample(self, n: int, rng: np.random.Generator) -> Array:
        """n independent draws, [n, d]."""
        from_q0 = rng.random(n) < self.q0_share
        x = np.empty((n, self.normals.dimension))
        x[from_q0] = self.q0.sample(int(from_q0.sum()), rng)
        x[~from_q0] = self.normals.sample(int((~from_q0).sum()), rng)
        return x

    def log_lower_bound(self, integrand: Integrand) -> float | None:
        """log a of r = p~ / g; None where p~ / q0 has no lower bound or h / q0 no upper one that we know."""
        log_a = integrand.log_floor
        if log_a is None or not isinstance(self.q0, BaseMeasure):
            return None
        greatest = self.normals.log_greatest_ratio(self.q0)
        return log_a - float(np.logaddexp(math.log(self.q0_share), math.log1p(-self.q0_share) + greatest))

    def log_q0_part(self, x: Array) -> Array:
        """log of eps q0."""
        return math.log(self.q0_share) - self.q0.log_normaliser() + self.q0.log_density(x)


def log_ratio(integrand: Integrand, mixture: DefensiveMixture, x: Array) -> Array:
    """log p~ / g at x [n, d], rounded; returns [n]."""
    x = integrand.rounded(x)
    return integrand.log_density(x) - mixture.log_density(x)


def cost(integrand: Integrand, mixture: DefensiveMixture) -> int:
    """What p~ and g take at one point, in evaluations of p~.

    Distances to all centres beside those to all inducing points: an h of many rows costs more than f itself.
    """
    return 2 + len(mixture.normals.centres) // integrand.kernels


class MixtureWeights(Weights):
    """r = p~(y) / g(y) of samples y from g; `name` determines the random numbers."""

    span = 1 << 14

    def __init__(self, integrand: Integrand, mixture: DefensiveMixture, *name: str | int) -> None:
        self.integrand, self.mixture, self.name = integrand, mixture, name
        self.log_a, self.no_floor = mixture.log_lower_bound(integrand), integrand.no_floor
        self.cost = cost(integrand, mixture)

    def span_log_r(self, stage: str, chunk: int, first: int, count: int) -> Array:
        rng = rng_for("normalise mixture", *self.name, stage, chunk, first)
        return log_ratio(self.integrand, self.mixture, self.mixture.sample(count, rng))
