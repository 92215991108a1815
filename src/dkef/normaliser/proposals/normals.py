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
from dkef.core.compiled import njit
from dkef.models.kef.parameters import BaseMeasure
from dkef.normaliser.simd.normal_tiles import STRIP, add_normals, normal_terms
from dkef.normaliser.simd.vector import BLOCK, PANEL

CUT = 1e-4  # share of each normal beyond its cut
LOG2_E = 1 / math.log(2)
TOO_FAR = -1e300  # -|v|^2 / 2 of a component that fills up a panel


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

    def log_greatest_ratio(self, q0: BaseMeasure) -> float:
        """log of sum_k w_k B_k, above log h / q0 everywhere (see above)."""
        reach = math.sqrt(self.squared_radius) * np.sqrt((self.factors**2).sum(axis=2))[self.shape]  # [k, d]: R s_kd
        farthest = (np.abs(self.centres - q0.mu) + reach) ** q0.beta / (2 * q0.sigma**2)
        log_b = self.log_peaks[self.shape] + farthest.sum(axis=1) + q0.log_normaliser()
        return float(logsumexp(np.log(self.weights) + log_b))

    def _sums(self, x: Array, gradient: Array) -> Array:
        """log h at x; adds its gradient to a second array, unless that is empty."""
        total = np.zeros(len(x))
        add_terms(total, gradient, np.ascontiguousarray(x, np.float64), *self._packed, self.dimension)
        if len(gradient):
            gradient /= np.where(total > 0, total, 1.0)[:, None]
        with np.errstate(divide="ignore"):
            log_h: Array = np.log(total) + self._log_unit
        return log_h

    @property
    def _log_unit(self) -> float:
        """What terms are taken in units of: the peak, times what is left of it at the usual distance sqrt(d)."""
        return float(self.log_peaks.max()) - 0.5 * self.dimension

    @functools.cached_property
    def _packed(self) -> tuple[Array, Array, Array, Array, float]:
        """What `add_terms` reads: an origin amid the centres, factors, panels of components of one shape each.

        Whitened coordinates are in units of 1 / sqrt(log2 e), so that every density is a power of two.
        """
        origin = self.centres.mean(axis=0)
        inverses = math.sqrt(LOG2_E) * np.linalg.inv(self.factors)
        scaled = self.weights * np.exp(self.log_peaks - self._log_unit)[self.shape]
        panels, ends = [], [0]
        for j, inverse in enumerate(inverses):
            here = self.shape == j
            v = (self.centres[here] - origin) @ inverse.T
            panels.append(_panels(np.concatenate([-0.5 * (v**2).sum(axis=1)[None], scaled[here][None], v.T])))
            ends.append(ends[-1] + len(panels[-1]))
        least = -0.5 * LOG2_E * self.squared_radius
        return origin, inverses, np.array(ends), np.concatenate(panels).ravel(), least


def _panels(columns: Array) -> Array:
    """[r, k] as [k / PANEL, r, PANEL]; what is added to fill the last panel is too far away to count."""
    r, k = columns.shape
    padded = np.zeros((r, -(-k // PANEL) * PANEL))
    padded[0, k:] = TOO_FAR
    padded[:, :k] = columns
    return padded.reshape(r, -1, PANEL).transpose(1, 0, 2)


@njit
def add_terms(total, gradient, x, origin, inverses, ends, panels, least, d):  # type: ignore[no-untyped-def]
    """total_n += sum_k w_k 2^(-|u_n - v_k|^2 / 2) over exponents of at least `least`, u_n = L_k^-1 (x_n - origin).

    Adds to gradient_n that of the sum, unless the array is empty. panels: float64, those of shape j from number
    ends[j] to ends[j + 1]; see `normal_tiles` for what is in one.
    """
    size = (2 + d) * PANEL
    centred, points = np.zeros((d, BLOCK)), np.zeros((d + 1, BLOCK))
    block, terms, pull = np.empty(BLOCK), np.empty((PANEL, BLOCK)), np.empty((d + 1, BLOCK))
    for start in range(0, len(x), BLOCK):
        count = min(BLOCK, len(x) - start)
        centred[:, :count] = x[start : start + count].T - origin.reshape(-1, 1)
        block[:] = 0.0
        for j in range(len(inverses)):
            whiten(points, centred, inverses[j])
            if len(gradient) == 0:
                for panel in range(ends[j], ends[j + 1]):
                    for strip in range(0, BLOCK, STRIP):
                        add_normals(block, points, strip, panels, panel * size, d, least)
                continue
            pull[:] = 0.0
            for panel in range(ends[j], ends[j + 1]):
                add_pull(pull, terms, points, panels, panel * size, d, least)
            block += pull[d]
            for i in range(d):
                pull[i] -= points[i] * pull[d]
            scaled = inverses[j].T @ pull[:d]
            gradient[start : start + count] += scaled[:, :count].T / LOG2_E
        total[start : start + count] += block[:count]


@njit
def whiten(points, centred, inverse):  # type: ignore[no-untyped-def]
    """points = u and, in the last row, -|u|^2 / 2 with u = inverse centred; the matrix is lower triangular."""
    d = len(centred)
    points[d] = 0.0
    for i in range(d):
        points[i] = 0.0
        for k in range(i + 1):
            factor = inverse[i, k]
            for n in range(BLOCK):
                points[i, n] += factor * centred[k, n]
        for n in range(BLOCK):
            points[d, n] -= 0.5 * points[i, n] * points[i, n]


@njit
def add_pull(pull, terms, points, panels, at, d, least):  # type: ignore[no-untyped-def]
    """pull[:d] += sum_p terms_p v_p and pull[d] += sum_p terms_p over one panel."""
    for strip in range(0, BLOCK, STRIP):
        if not normal_terms(terms, points, strip, panels, at, d, least):
            continue
        for p in range(PANEL):
            term = terms[p, strip : strip + STRIP]
            for i in range(d):
                factor = panels[at + (2 + i) * PANEL + p]
                row = pull[i, strip : strip + STRIP]
                for n in range(STRIP):
                    row[n] += factor * term[n]
            row = pull[d, strip : strip + STRIP]
            for n in range(STRIP):
                row[n] += term[n]
