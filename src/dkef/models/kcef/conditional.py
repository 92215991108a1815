"""Fitting one conditional p(y | u) of a kernel conditional exponential family by score matching.

The model is log p~(y | u) = f(u, y) + log q0(y) with f in the Hilbert space of the product kernel

    K((u, y), (u', y')) = exp(-g_x |u - u'|^2) exp(-g_y (y - y')^2).

Write K_b for K at row b and d for a derivative in that row's y. The empirical score-matching loss of f plus the
ridge lambda |f|^2 / 2 is the quadratic <f, xi> + <f, C f> / 2 + lambda |f|^2 / 2 (constants of q0 dropped), where

    xi = mean_b [d^2 K_b + (log q0)'(y_b) d K_b],   C = mean_b dK_b (x) dK_b,

so that (C + lambda) f = -xi. Trying f = -xi / lambda + sum_b beta_b dK_b leaves one system in n unknowns,

    (G + n lambda I) beta = h / lambda,   G_bc = <dK_b, dK_c>,   h_b = <dK_b, xi>.

dkef.models.kcef.cross_validation chooses (g_x, g_y, lambda).
"""

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from dkef.core.arrays import Array


class Hyper(NamedTuple):
    """Inverse squared length scales of the two kernels, and the ridge."""

    g_x: float
    g_y: float
    lam: float


def derivatives(k: Array, r: Array, g: float, order: int) -> list[Array]:
    """k, k', ..., k^(order) in r of c exp(-g r^2), given its values k = c exp(-g r^2) at r.

    Leibniz on k' = -2 g r k gives k^(j+1) = -2 g (r k^(j) + j k^(j-1)).
    """
    slope = -2 * g * r
    out = [k, slope * k]
    for j in range(1, order):
        out.append(slope * out[j] - 2 * g * j * out[j - 1])
    return out[: order + 1]


@dataclass(frozen=True)
class Rows:
    """The training rows of one conditional, as the fit sees them."""

    squared: Array  # [n, n], |u_b - u_c|^2
    r: Array  # [n, n], y_b - y_c
    q1: Array  # [n], (log q0)'(y_b)

    @classmethod
    def of(cls, u: Array, y: Array, base_std: float) -> "Rows":
        norms = (u**2).sum(axis=1)
        squared = np.maximum(norms[:, None] - 2 * u @ u.T + norms, 0.0)
        return cls(squared, y[:, None] - y, -y / base_std**2)

    def first(self, n: int) -> "Rows":
        """The same for the first n rows only."""
        return Rows(self.squared[:n, :n], self.r[:n, :n], self.q1[:n])


def kernel(rows: Rows, hyper: Hyper) -> Array:
    """The product kernel between all rows; [n, n]."""
    k: Array = np.exp(-hyper.g_x * rows.squared - hyper.g_y * rows.r**2)
    return k


def fit_beta(rows: Rows, hyper: Hyper) -> Array:
    """Solve (G + n lambda I) beta = h / lambda on all rows; returns [n].

    A derivative in y_b is one in r = y_b - y_c, one in y_c is minus one in r: so
    G = -k2 and h = mean_c [k3 - q1_c k2].
    """
    from scipy.linalg import cho_factor, cho_solve  # a fitted density does without

    n = len(rows.q1)
    _, _, k2, k3 = derivatives(kernel(rows, hyper), rows.r, hyper.g_y, 3)
    h = (k3.sum(axis=1) - k2 @ rows.q1) / n
    beta: Array = cho_solve(cho_factor(n * hyper.lam * np.eye(n) - k2), h / hyper.lam)
    return beta
