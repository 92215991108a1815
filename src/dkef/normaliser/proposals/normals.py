"""h: normals around the data, cut off at a finite distance, so that they never outlast q0.

    h(x) = sum_k w_k N(x; c_k, S_k) 1[ |L_k^-1 (x - c_k)| <= R ] / P,     S_k = L_k L_k',   P = Pr(chi^2_d <= R^2)

Importance sampling from g = eps q0 + (1 - eps) h keeps Proposition 1 alive if p~/g stays above some a > 0, that is, if
h / q0 is bounded. A whole normal is not good enough: where a coordinate of q0 has an exponent beta > 2 (fits have
shown 7.8) it has lighter tails than any normal, h / q0 grows without limit and a is 0. The cut makes the support of h
bounded, so that any exponent will do, and costs next to nothing: R leaves out one draw in ten thousand.

The bound. Let x lie in the support of component k. Coordinate d of x - c_k = L_k u with |u| <= R is at most
R |row d of L_k| = R s_kd, s_kd^2 being the d-th diagonal entry of S_k. With q0(x) = exp(-sum_d |x_d - mu_d|^beta_d /
(2 sigma_d^2)) / Z_0 therefore

    N(x; c_k, S_k) / P / q0(x)  <=  Z_0 (2 pi)^(-d/2) / (P det L_k)
                                    exp( sum_d (|c_kd - mu_d| + R s_kd)^beta_d / (2 sigma_d^2) )

which is B_k, and h / q0 <= sum_k w_k B_k everywhere. It is crude, since no x takes the largest value of every factor,
and large exponents beta make it huge; but Proposition 1 sees a through log(Z / a) times a power of 4 rho (1 - rho) < 1
as high as half the sample size: at rho = 0.35 even a log(Z / a) of 10^10 counts for less than 10^-8 after 1000 samples.
"""

import functools
import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Self

import numpy as np
from scipy.special import gammainc, gammaincinv, logsumexp

from dkef.core.arrays import Array
from dkef.models.kef.parameters import BaseMeasure
from dkef.normaliser.simd.normal_sums import NormalSums, add_sums, neighbours, normal_sums

CUT = 1e-4  # share of each normal beyond its cut


@dataclass(frozen=True)
class CutNormals:
    """Components around centres; many may share one shape."""

    weights: Array  # [k], adding to 1: w
    centres: Array  # [k, d]
    shape: Array  # int [k]: the factor of each component
    factors: Array  # [j, d, d], lower triangular L

    @property
    def dimension(self) -> int:
        return int(self.centres.shape[1])

    @functools.cached_property
    def squared_radius(self) -> float:
        """R^2."""
        return float(2 * gammaincinv(self.dimension / 2, 1 - CUT))

    @functools.cached_property
    def log_peaks(self) -> Array:
        """log of the greatest density of a component of each shape, [j]."""
        log_det = np.log(np.diagonal(self.factors, axis1=1, axis2=2)).sum(axis=1)
        inside = math.log(gammainc(self.dimension / 2, self.squared_radius / 2))
        peaks: Array = -0.5 * self.dimension * math.log(2 * math.pi) - log_det - inside
        return peaks

    def log_density(self, x: Array) -> Array:
        """log h at x [n, d]; -inf outside the support. Returns [n]."""
        return self._sums(x, np.empty((0, 0)))

    def log_density_and_gradient(self, x: Array) -> tuple[Array, Array]:
        """log h [n] and its gradient [n, d], which is 0 outside the support."""
        gradient = np.zeros_like(x)
        return self._sums(x, gradient), gradient

    def sample(self, n: int, rng: np.random.Generator) -> Array:
        """n independent draws, [n, d]; normals beyond the cut are drawn again."""
        k = rng.choice(len(self.centres), size=n, p=self.weights)
        u = rng.standard_normal((n, self.dimension))
        while (outside := (u**2).sum(axis=1) > self.squared_radius).any():
            u[outside] = rng.standard_normal((np.count_nonzero(outside), self.dimension))
        x = self.centres[k].copy()
        for j, factor in enumerate(self.factors):
            drawn = self.shape[k] == j
            x[drawn] += u[drawn] @ factor.T
        return x

    @classmethod
    def together(cls, parts: Sequence[Self], shares: Array) -> Self:
        """Several sums in one, each with its share."""
        shapes = np.cumsum([0, *(len(part.factors) for part in parts)])
        return cls(
            np.concatenate([share * part.weights for part, share in zip(parts, shares, strict=True)]),
            np.concatenate([part.centres for part in parts]),
            np.concatenate([first + part.shape for part, first in zip(parts, shapes, strict=False)]),
            np.concatenate([part.factors for part in parts]),
        )

    def joined(self, other: Self, share: float) -> Self:
        """This sum with a share of another one."""
        return self.together([self, other], np.array([1 - share, share]))

    def components(self) -> list[Self]:
        """Each component as a sum of its own."""
        ones, zeros = np.ones(1), np.zeros(1, dtype=int)
        pairs = zip(self.centres, self.factors[self.shape], strict=True)
        return [type(self)(ones, centre[None], zeros, factor[None]) for centre, factor in pairs]

    def widened(self, width: float) -> Self:
        return replace(self, factors=width * self.factors)

    def heaviest(self, share: float) -> Self:
        """The shapes that hold this share of all weight at the least cost, with their weights made to add to 1."""
        count = np.bincount(self.shape, minlength=len(self.factors))
        weight = np.bincount(self.shape, self.weights, len(self.factors))
        # A shape costs a product with its factor, and a distance for each of its components.
        order = np.argsort(-weight / (count + self.dimension), kind="stable")
        kept = np.sort(order[: 1 + np.searchsorted(np.cumsum(weight[order]), share)])
        chosen = np.isin(self.shape, kept)
        weights = self.weights[chosen] / self.weights[chosen].sum()
        return type(self)(weights, self.centres[chosen], np.searchsorted(kept, self.shape[chosen]), self.factors[kept])

    def log_greatest_ratio(self, q0: BaseMeasure) -> float:
        """log of sum_k w_k B_k, above log h / q0 everywhere (see above)."""
        reach = math.sqrt(self.squared_radius) * np.sqrt((self.factors**2).sum(axis=2))[self.shape]  # [k, d]: R s_kd
        farthest = (np.abs(self.centres - q0.mu) + reach) ** q0.beta / (2 * q0.sigma**2)
        log_b = self.log_peaks[self.shape] + farthest.sum(axis=1) + q0.log_normaliser()
        return float(logsumexp(np.log(self.weights) + log_b))

    def _sums(self, x: Array, gradient: Array) -> Array:
        """log h at x; writes its gradient to a second array, unless that is empty."""
        order = neighbours(x, self._packed)
        sums, slopes = np.zeros(len(x)), np.zeros_like(gradient)
        add_sums(sums, slopes, np.ascontiguousarray(x[order], np.float64), self._packed)
        if len(gradient):
            gradient[order] = slopes / np.where(sums > 0, sums, 1.0)[:, None]
        log_h = np.empty(len(x))
        with np.errstate(divide="ignore"):
            log_h[order] = np.log(sums) + self._log_unit
        return log_h

    @property
    def _log_unit(self) -> float:
        """What terms are taken in units of: the peak, times what is left of it at the usual distance sqrt(d)."""
        return float(self.log_peaks.max()) - 0.5 * self.dimension

    @functools.cached_property
    def _packed(self) -> NormalSums:
        scaled = self.weights * np.exp(self.log_peaks - self._log_unit)[self.shape]
        return normal_sums(scaled, self.centres, self.shape, self.factors, self.squared_radius)
