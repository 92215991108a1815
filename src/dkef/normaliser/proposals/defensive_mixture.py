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
from dkef.core.compiled import njit
from dkef.core.errors import DkefError
from dkef.core.streams import rng_for
from dkef.models.kef.parameters import BaseMeasure, KefParameters
from dkef.normaliser.proposals.normals import CutNormals
from dkef.normaliser.simd.program import Program, evaluate_block, pack, workspace
from dkef.normaliser.simd.vector import BLOCK
from dkef.normaliser.weights import Weights, log_lower_bound


@njit
def _points_f(f, x, program, rows):  # type: ignore[no-untyped-def]
    """f at given points x float32 [n, d]."""
    block = np.empty(BLOCK)
    for start in range(0, len(x), BLOCK):
        count = min(BLOCK, len(x) - start)
        for i in range(count):
            rows[: x.shape[1], i] = x[start + i]
        evaluate_block(program, rows, block)
        f[start : start + count] = block[:count]


@dataclass(frozen=True)
class DefensiveMixture:
    """g, with q0 normalised in it."""

    q0: BaseMeasure
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

    def log_lower_bound(self, parameters: KefParameters) -> float | None:
        """log a of r = p~ / g; None for linear kernels."""
        log_a = log_lower_bound(parameters)
        if log_a is None:
            return None
        greatest = self.normals.log_greatest_ratio(self.q0)
        return log_a - float(np.logaddexp(math.log(self.q0_share), math.log1p(-self.q0_share) + greatest))

    def log_q0_part(self, x: Array) -> Array:
        """log of eps q0."""
        return math.log(self.q0_share) - self.q0.log_normaliser() + self.q0.log_density(x)


def rounded(x: Array) -> Array:
    """The float32 points nearest to x, where the compiled program evaluates p~: g is to be taken at the same ones."""
    return x.astype(np.float32).astype(np.float64)


def log_p(program: Program, parameters: KefParameters, x: Array) -> Array:
    """log p~ at rounded points x [n, d]; returns [n]."""
    f = np.empty(len(x))
    _points_f(f, x.astype(np.float32), program, workspace(program))
    if not np.isfinite(f).all():
        raise DkefError("f is not finite at some sample; this model has no usable log Z")
    log_density: Array = f + parameters.q0.log_density(x)
    return log_density


def log_ratio(program: Program, parameters: KefParameters, mixture: DefensiveMixture, x: Array) -> Array:
    """log p~ / g at x [n, d], rounded; returns [n]."""
    x = rounded(x)
    return log_p(program, parameters, x) - mixture.log_density(x)


def cost(parameters: KefParameters, mixture: DefensiveMixture) -> int:
    """What p~ and g take at one point, in evaluations of p~.

    Distances to all centres beside those to all inducing points: an h of many rows costs more than f itself.
    """
    return 2 + len(mixture.normals.centres) // (len(parameters.z) * len(parameters.components))


class MixtureWeights(Weights):
    """r = p~(y) / g(y) of samples y from g; `name` determines the random numbers."""

    span = 1 << 14

    def __init__(self, parameters: KefParameters, mixture: DefensiveMixture, *name: str | int) -> None:
        self.parameters, self.mixture, self.name = parameters, mixture, name
        self.program = pack(parameters)
        self.log_a = mixture.log_lower_bound(parameters)
        self.cost = cost(parameters, mixture)

    def span_log_r(self, stage: str, chunk: int, first: int, count: int) -> Array:
        rng = rng_for("normalise mixture", *self.name, stage, chunk, first)
        return log_ratio(self.program, self.parameters, self.mixture, self.mixture.sample(count, rng))
