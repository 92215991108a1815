"""Kernel conditional exponential family (Arbel and Gretton 2018) along a full graph: p(x) = prod_i p(x_i | x_<i).

Each factor is log p(y | u) = f(u, y) + log q0(y) - log Z(u) with y = x_i, u = x_<i and q0 = N(0, base_std^2). The fit
(kcef_fit) gives, with k(r) = exp(-g_y r^2) and its derivatives k', k'',

    f(u, y) = sum_b exp(-g_x |u - u_b|^2) w_b(y),   w_b(y) = -gamma_b k'(y - y_b) - k''(y - y_b) / (n lambda),

where gamma_b = beta_b - (log q0)'(y_b) / (n lambda) takes in the part of xi / lambda that lies in the span of the dK_b.

log Z(u) is an integral over one variable: the trapezoidal rule on a fixed grid, whose error for such integrands falls
faster than any power of the spacing. One grid serves all u, so that f on it is a matrix product. The derivatives of
log Z(u) are moments under the conditional p(y | u) on the same grid:

    d log Z / du_j = E[f_j],   d^2 log Z / du_j^2 = E[f_jj] + Var[f_j].

They enter the joint score and curvature through every later factor, because x_j conditions all x_i with i > j.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, NamedTuple, Self

import numpy as np

from dkef.core.arrays import Array, blocks, log_sum_exp
from dkef.models.kcef.conditional import Hyper, Rows, derivatives, fit_beta
from dkef.models.protocol import DensityModel, Evaluation

ROWS = 100  # a block of which derivatives are formed: ten arrays [rows, N] that should stay in the cache
REACH = 9.0  # the grid ends so many base_std beyond the data, where q0 has fallen by exp(-40)


class Local(NamedTuple):
    """One factor at n points: value, first and second derivative, in y and in each conditioning variable."""

    log_p: Array  # [n]
    d_y: Array  # [n]
    d_yy: Array  # [n]
    d_u: Array  # [n, p]
    d_uu: Array  # [n, p]


class Normaliser(NamedTuple):
    """log Z(u) at n points, with its first and second derivative in each conditioning variable."""

    log_z: Array  # [n]
    d_u: Array  # [n, p]
    d_uu: Array  # [n, p]


def distinct_rows(u: Array) -> tuple[Array, Array]:
    """Distinct rows of u [n, p] and the place of each row among them: on a grid, or where p is 0, there are few."""
    if u.shape[1] == 0:
        return u[:1], np.zeros(len(u), dtype=int)
    distinct, row_of = np.unique(u, axis=0, return_inverse=True)
    return distinct, row_of


@dataclass(frozen=True)
class Conditional:
    """One fitted factor p(y | u), normalised by quadrature on `nodes` equally spaced points in [low, high]."""

    u: Array  # [N, p], training rows of the conditioning variables
    y: Array  # [N]
    gamma: Array  # [N]
    hyper: Hyper
    base_std: float
    low: float
    high: float
    nodes: int

    @classmethod
    def fit(cls, u: Array, y: Array, hyper: Hyper, base_std: float, tolerance: float) -> Self:
        """Closed-form fit, with a grid fit for `tolerance` nats of error in log Z at the training rows.

        The grid is widened while its ends matter and refined while its spacing does, up to 2^14 nodes.
        """
        rows = Rows.of(u, y, base_std)
        gamma = fit_beta(rows, hyper) - rows.q1 / (len(y) * hyper.lam)
        reach = REACH * base_std
        low, high = float(min(y.min(), 0.0) - reach), float(max(y.max(), 0.0) + reach)
        nodes = 2 ** math.ceil(math.log2((high - low) * math.sqrt(2 * hyper.g_y) + 64)) + 1
        fitted = cls(u, y, gamma, hyper, base_std, low, high, nodes)
        while fitted.nodes < 2**14:
            spacing, tails = fitted.quadrature_errors(u).max(axis=0)
            if tails > tolerance:
                fitted = replace(fitted, low=2 * fitted.low, high=2 * fitted.high, nodes=2 * fitted.nodes - 1)
            elif spacing > tolerance:
                fitted = replace(fitted, nodes=2 * fitted.nodes - 1)
            else:
                break
        return fitted

    @property
    def grid(self) -> Array:
        return np.linspace(self.low, self.high, self.nodes)

    @property
    def step(self) -> float:
        return (self.high - self.low) / (self.nodes - 1)

    def log_q0(self, y: Array) -> Array:
        return -0.5 * (y / self.base_std) ** 2 - math.log(self.base_std * math.sqrt(2 * math.pi))

    def features(self, y: Array, order: int = 0) -> list[Array]:
        """w_b(y) and its derivatives in y up to `order`, for y [n]; each [n, N]."""
        r = y[:, None] - self.y
        k = derivatives(np.exp(-self.hyper.g_y * r**2), r, self.hyper.g_y, order + 2)
        scale = 1 / (len(self.y) * self.hyper.lam)
        return [-self.gamma * k[j + 1] - scale * k[j + 2] for j in range(order + 1)]

    def weights(self, u: Array) -> Array:
        """exp(-g_x |u - u_b|^2) for u [n, p]; returns [n, N]."""
        squared = (u**2).sum(1)[:, None] - 2 * u @ self.u.T + (self.u**2).sum(1)
        weights: Array = np.exp(-self.hyper.g_x * np.maximum(squared, 0.0))
        return weights

    def quadrature_errors(self, u: Array, batch: int = 200) -> Array:
        """Estimated errors of log Z at u [n, p]: from the spacing of the grid, and from the tails left out; [n, 2].

        The first is what halving the grid changes. The rule converges so fast that the coarser grid's error exceeds
        the finer one's by far, so this errs on the safe side. For the second, beyond the ends f has decayed and the
        integrand falls like q0's tail: its integral is at most base_std^2 / |end| times its value there.
        """
        features, log_q0 = self.features(self.grid)[0], self.log_q0(self.grid)
        log_step = math.log(self.step)
        errors = np.empty((len(u), 2))
        for rows in blocks(len(u), batch):
            log_joint = self.weights(u[rows]) @ features.T + log_q0
            fine = log_sum_exp(log_joint, axis=1) + log_step
            coarse = log_sum_exp(log_joint[:, ::2], axis=1) + log_step + math.log(2)
            ends = np.exp(log_joint[:, [0, -1]] - fine[:, None])
            errors[rows, 0] = np.abs(fine - coarse)
            errors[rows, 1] = ends @ (self.base_std**2 / np.abs([self.low, self.high]))
        return errors

    def moments_over_u(self, weighted: Array, u: Array) -> tuple[Array, Array]:
        """First and second derivative in each u_j of sum_b exp(-g_x |u - u_b|^2) w_b, from its summands [n, N]."""
        g = self.hyper.g_x
        total = weighted.sum(axis=1, keepdims=True)
        about_u = u * total - weighted @ self.u  # sum_b (u - u_b) ...
        square = u**2 * total - 2 * u * (weighted @ self.u) + weighted @ self.u**2
        return -2 * g * about_u, 4 * g**2 * square - 2 * g * total

    def normaliser(self, u: Array, grid_features: Array) -> Normaliser:
        """log Z(u) and its derivatives at u [n, p]; `grid_features` are features(grid)[0]."""
        weights = self.weights(u)
        log_joint = weights @ grid_features.T + self.log_q0(self.grid)  # [n, nodes]
        log_total = log_sum_exp(log_joint, axis=1, keepdims=True)
        density = np.exp(log_joint - log_total)  # sums to 1 over the grid
        d_u, d_uu = self.moments_over_u(weights * (density @ grid_features), u)
        for j in range(u.shape[1]):
            f_j = -2 * self.hyper.g_x * (weights * (u[:, [j]] - self.u[:, j])) @ grid_features.T
            d_uu[:, j] += (density * (f_j - d_u[:, [j]]) ** 2).sum(axis=1)
        return Normaliser(log_total[:, 0] + math.log(self.step), d_u, d_uu)

    def local(self, u: Array, y: Array, grid_features: Array, batch: int) -> Local:
        """The factor and its derivatives at u [n, p], y [n], so many rows at once."""
        distinct, row_of = distinct_rows(u)
        # at least one part, even of no rows
        size = min(batch, ROWS)
        parts = [self.normaliser(distinct[rows], grid_features) for rows in blocks(max(len(distinct), 1), size)]
        log_z, z_u, z_uu = (np.concatenate(part)[row_of] for part in zip(*parts, strict=True))
        local = Local(*(np.empty_like(a) for a in (y, y, y, u, u)))
        for rows in blocks(len(u), size):
            weights = self.weights(u[rows])
            levels, level_of = np.unique(y[rows], return_inverse=True)  # on a grid they are few
            w, w1, w2 = (part[level_of] for part in self.features(levels, order=2))
            d_u, d_uu = self.moments_over_u(weights * w, u[rows])
            local.log_p[rows] = (weights * w).sum(axis=1) + self.log_q0(y[rows]) - log_z[rows]
            local.d_y[rows] = (weights * w1).sum(axis=1) - y[rows] / self.base_std**2
            local.d_yy[rows] = (weights * w2).sum(axis=1) - 1 / self.base_std**2
            local.d_u[rows], local.d_uu[rows] = d_u - z_u[rows], d_uu - z_uu[rows]
        return local

    def log_p(self, u: Array, y: Array, grid_features: Array, batch: int = 1000) -> Array:
        """The value alone; [n]. Where points make up a grid, f is one product over its rows and columns."""
        distinct, row_of = distinct_rows(u)
        levels, column_of = np.unique(y, return_inverse=True)
        on_grid = len(distinct) * len(levels) <= 2 * len(y)
        columns = np.concatenate([grid_features, self.features(levels)[0]]) if on_grid else grid_features
        log_z, f = np.empty(len(distinct)), np.empty((len(distinct), len(columns) - self.nodes))
        for rows in blocks(len(distinct), min(batch, ROWS)):
            sums = self.weights(distinct[rows]) @ columns.T
            log_z[rows] = log_sum_exp(sums[:, : self.nodes] + self.log_q0(self.grid), axis=1) + math.log(self.step)
            f[rows] = sums[:, self.nodes :]
        if on_grid:
            value = f[row_of, column_of]
        else:
            value = np.empty(len(u))
            for rows in blocks(len(u), batch):
                value[rows] = np.einsum("nb,nb->n", self.weights(u[rows]), self.features(y[rows])[0])
        return value + self.log_q0(y) - log_z[row_of]

    def sample(self, u: Array, grid_features: Array, rng: np.random.Generator) -> Array:
        """One y for each row of u [n, p], by inverting the CDF of the density interpolated linearly on the grid."""
        log_joint = self.weights(u) @ grid_features.T + self.log_q0(self.grid)
        density = np.exp(log_joint - log_joint.max(axis=1, keepdims=True))
        cdf = np.cumsum((density[:, 1:] + density[:, :-1]) / 2, axis=1)
        target = rng.random(len(u)) * cdf[:, -1]
        cell = np.minimum((cdf < target[:, None]).sum(axis=1), self.nodes - 2)
        row = np.arange(len(u))
        left, right = density[row, cell], density[row, cell + 1]
        rest = target - np.where(cell > 0, cdf[row, np.maximum(cell - 1, 0)], 0.0)
        # within the cell: left t + (right - left) t^2 / 2 = rest, solved in the form that does not cancel
        slope = left + np.sqrt(np.maximum(left**2 + 2 * (right - left) * rest, 0.0))
        t = 2 * rest / np.maximum(slope, np.finfo(float).tiny)
        drawn: Array = self.low + self.step * (cell + np.clip(t, 0.0, 1.0))
        return drawn


class KcefModel(DensityModel):
    """The product of the conditionals, factor i conditioned on all coordinates before i."""

    def __init__(self, conditionals: tuple[Conditional, ...]) -> None:
        self.conditionals = conditionals

    @property
    def dimension(self) -> int:
        return len(self.conditionals)

    def evaluate(self, x: Array, batch: int = 1000) -> Evaluation:
        log_p, score, curvature = np.zeros(len(x)), np.zeros(x.shape), np.zeros(x.shape)
        for i, conditional in enumerate(self.conditionals):
            grid_features = conditional.features(conditional.grid)[0]
            at = conditional.local(x[:, :i], x[:, i], grid_features, batch)
            log_p += at.log_p
            score[:, i] += at.d_y
            score[:, :i] += at.d_u
            curvature[:, i] += at.d_yy
            curvature[:, :i] += at.d_uu
        return Evaluation(log_p, score, curvature)

    def log_density(self, x: Array, batch: int = 1000) -> Array:
        log_p = np.zeros(len(x))
        for i, conditional in enumerate(self.conditionals):
            grid_features = conditional.features(conditional.grid)[0]
            log_p += conditional.log_p(x[:, :i], x[:, i], grid_features, batch)
        return log_p

    def log_z_error(self, x: Array) -> Array:
        """Estimated error of the log density at x that the quadrature of all factors causes; [n]."""
        total = np.zeros(len(x))
        for i, conditional in enumerate(self.conditionals):
            total += conditional.quadrature_errors(x[:, :i]).sum(axis=1)
        return total

    def sample(self, n: int, rng: np.random.Generator, batch: int = 1000) -> Array:
        x = np.zeros((n, self.dimension))
        for i, conditional in enumerate(self.conditionals):
            grid_features = conditional.features(conditional.grid)[0]
            for rows in blocks(n, batch):
                x[rows, i] = conditional.sample(x[rows, :i], grid_features, rng)
        return x

    def arrays(self) -> dict[str, Array]:
        parts = self.conditionals
        return {
            "x": np.column_stack([c.y for c in parts]),  # [N, d], training rows
            "gamma": np.column_stack([c.gamma for c in parts]),  # [N, d]
            "hyper": np.array([c.hyper for c in parts]),  # [d, 3]: g_x, g_y, lambda
            "grid": np.array([(c.low, c.high) for c in parts]),  # [d, 2]
            "nodes": np.array([c.nodes for c in parts]),  # [d]
        }

    def settings(self) -> dict[str, Any]:
        return {"base_std": self.conditionals[0].base_std}

    @classmethod
    def restore(cls, settings: Mapping[str, Any], arrays: Mapping[str, Array]) -> Self:
        x, gamma, grid = arrays["x"], arrays["gamma"], arrays["grid"]
        return cls(
            tuple(
                Conditional(
                    x[:, :i], x[:, i], gamma[:, i], Hyper(*map(float, arrays["hyper"][i])), settings["base_std"],
                    float(grid[i, 0]), float(grid[i, 1]), int(arrays["nodes"][i]),
                )
                for i in range(x.shape[1])
            )
        )  # fmt: skip
