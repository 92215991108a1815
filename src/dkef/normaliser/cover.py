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

from dkef.models.kef_parameters import BaseMeasure
from dkef.models.protocol import Array
from dkef.normaliser.compiled import njit

CUT = 1e-4  # share of each normal beyond its cut
_BLOCK_VALUES = 1 << 18  # coordinates held at once


@dataclass(frozen=True)
class Cover:
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
        total = np.zeros(len(x))
        for rows in self._blocks(len(x)):
            for j, u in enumerate(self._whitened(x[rows])):
                self._add_terms(total[rows], np.empty((0, 0)), u, j)
        return self._log(total)

    def log_density_and_gradient(self, x: Array) -> tuple[Array, Array]:
        """log h [n] and its gradient [n, d], which is 0 outside the support."""
        total, gradient = np.zeros(len(x)), np.zeros_like(x)
        for rows in self._blocks(len(x)):
            u = self._whitened(x[rows])
            pull = np.zeros(u.shape)  # [j, n, d]: sum_k of the terms of h times L_j^-1 (c_k - x)
            for j in range(len(u)):
                self._add_terms(total[rows], pull[j], u[j], j)
            gradient[rows] = pull.transpose(1, 0, 2).reshape(u.shape[1], -1) @ self._inverses.reshape(-1, x.shape[1])
        return self._log(total), gradient / np.where(total > 0, total, 1.0)[:, None]

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
        """Several covers in one, each with its share."""
        shapes = np.cumsum([0, *(len(part.factors) for part in parts)])
        return cls(
            np.concatenate([share * part.weights for part, share in zip(parts, shares, strict=True)]),
            np.concatenate([part.centres for part in parts]),
            np.concatenate([first + part.shape for part, first in zip(parts, shapes, strict=False)]),
            np.concatenate([part.factors for part in parts]),
        )

    def joined(self, other: Self, share: float) -> Self:
        """This cover with a share of another one."""
        return self.together([self, other], np.array([1 - share, share]))

    def components(self) -> list[Self]:
        """Each component as a cover of its own."""
        ones, zeros = np.ones(1), np.zeros(1, dtype=int)
        pairs = zip(self.centres, self.factors[self.shape], strict=True)
        return [type(self)(ones, centre[None], zeros, factor[None]) for centre, factor in pairs]

    def widened(self, width: float) -> Self:
        return replace(self, factors=width * self.factors)

    def log_greatest_ratio(self, q0: BaseMeasure) -> float:
        """log of sum_k w_k B_k, above log h / q0 everywhere (see above)."""
        reach = math.sqrt(self.squared_radius) * np.sqrt((self.factors**2).sum(axis=2))[self.shape]  # [k, d]: R s_kd
        farthest = (np.abs(self.centres - q0.mu) + reach) ** q0.beta / (2 * q0.sigma**2)
        log_b = self.log_peaks[self.shape] + farthest.sum(axis=1) + q0.log_normaliser()
        return float(logsumexp(np.log(self.weights) + log_b))

    @functools.cached_property
    def _inverses(self) -> Array:
        """L_j^-1, [j, d, d]."""
        return np.linalg.inv(self.factors)

    @functools.cached_property
    def _whitened_centres(self) -> list[Array]:
        """By shape, float32 [d, components of that shape]."""
        pairs = enumerate(self._inverses)
        return [
            np.ascontiguousarray(L @ (self.centres[self.shape == j] - self._origin).T, np.float32) for j, L in pairs
        ]

    @functools.cached_property
    def _origin(self) -> Array:
        """Whitened points are taken from here, so that they are small where it matters."""
        origin: Array = self.centres.mean(axis=0)
        return origin

    def _whitened(self, x: Array) -> Array:
        """L_j^-1 (x - origin), float32 [j, n, d]."""
        u = (x - self._origin) @ self._inverses.reshape(-1, x.shape[1]).T
        return np.ascontiguousarray(u.reshape(len(x), *self.factors.shape[:2]).transpose(1, 0, 2), np.float32)

    def _blocks(self, n: int) -> list[slice]:
        size = max(1, _BLOCK_VALUES // (self.dimension * len(self.factors)))
        return [slice(i, i + size) for i in range(0, n, size)]

    def _add_terms(self, total: Array, pull: Array, u: Array, j: int) -> None:
        """Add the terms of shape j to total [n] and pull [n, d], in units of the highest peak; no pull if empty."""
        weights = self.weights[self.shape == j] * math.exp(self.log_peaks[j] - self.log_peaks.max())
        add_terms(total, pull, u, self._whitened_centres[j], weights, self.squared_radius)

    def _log(self, total: Array) -> Array:
        with np.errstate(divide="ignore"):
            log_h: Array = np.log(total) + self.log_peaks.max()
        return log_h


@njit
def add_terms(total, pull, u, v, weights, squared_radius):  # type: ignore[no-untyped-def]
    """total_n += sum_k w_k exp(-|u_n - v_k|^2 / 2) over the v_k within the radius; pull_n likewise, times v_k - u_n.

    u: float32 [n, d], v: float32 [d, k]. Few centres are near: distances are what takes the time, and the loop over
    centres is the inner one so that it becomes vector instructions.
    """
    dimension, count = v.shape
    squared = np.empty(count, np.float32)
    for n in range(len(u)):
        squared[:] = np.float32(0)
        for d in range(dimension):
            here = u[n, d]
            for k in range(count):
                apart = here - v[d, k]
                squared[k] += apart * apart
        for k in range(count):
            if squared[k] <= squared_radius:
                term = weights[k] * math.exp(-0.5 * squared[k])
                total[n] += term
                if len(pull):
                    for d in range(dimension):
                        pull[n, d] += term * (v[d, k] - u[n, d])
