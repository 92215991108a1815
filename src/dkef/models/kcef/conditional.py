"""Fitting one conditional p(y | u) of a kernel conditional exponential family by score matching.

The model is log p~(y | u) = f(u, y) + log q0(y) with f in the Hilbert space of the product kernel

    K((u, y), (u', y')) = exp(-g_x |u - u'|^2) exp(-g_y (y - y')^2).

Write K_b for K at row b and d for a derivative in that row's y. The empirical score-matching loss of f plus the
ridge lambda |f|^2 / 2 is the quadratic <f, xi> + <f, C f> / 2 + lambda |f|^2 / 2 (constants of q0 dropped), where

    xi = mean_b [d^2 K_b + (log q0)'(y_b) d K_b],   C = mean_b dK_b (x) dK_b,

so that (C + lambda) f = -xi. Trying f = -xi / lambda + sum_b beta_b dK_b leaves one system in n unknowns,

    (G + n lambda I) beta = h / lambda,   G_bc = <dK_b, dK_c>,   h_b = <dK_b, xi>.

Cross-validation. All F fits that leave one fold V of equal size out have the same number n_T of rows, hence share
A = G + n_T lambda I. With B = A^-1, the inverse of the block that a fold keeps is B_TT - B_TV B_VV^-1 B_VT, so one
inverse serves every fold, exactly.
"""

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from scipy.linalg import cho_factor, cho_solve, lapack
from scipy.optimize import minimize

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
    out = [k, -2 * g * r * k]
    for j in range(1, order):
        out.append(-2 * g * (r * out[j] + j * out[j - 1]))
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


class Statistics(NamedTuple):
    """What the fits on the columns of `kept` need; linear in the kernel, so tangents have the same shape."""

    G: Array  # [n, n], <dK_b, dK_c>
    R: Array  # [n, n], <d^2 K_b, dK_c>
    h: Array  # [n, F], <dK_b, xi>
    e: Array  # [n, F], <d^2 K_b, xi>

    @classmethod
    def of(cls, k2: Array, k3: Array, k4: Array, q1: Array, kept: Array) -> "Statistics":
        """From derivatives in r = y_b - y_c: a derivative in y_b is one in r, one in y_c is minus one in r."""
        mean = kept / kept.sum(axis=0)  # [n, F]
        weighted = q1[:, None] * mean
        return cls(-k2, -k3, k3 @ mean - k2 @ weighted, k4 @ mean - k3 @ weighted)


def kernel_derivatives(rows: Rows, hyper: Hyper) -> list[Array]:
    """The product kernel between all rows, and its first four derivatives in r; each [n, n]."""
    k = np.exp(-hyper.g_x * rows.squared - hyper.g_y * rows.r**2)
    return derivatives(k, rows.r, hyper.g_y, 4)


def fit_beta(rows: Rows, hyper: Hyper) -> Array:
    """Solve (G + n lambda I) beta = h / lambda on all rows; returns [n]."""
    n = len(rows.q1)
    _, _, k2, k3, k4 = kernel_derivatives(rows, hyper)
    stats = Statistics.of(k2, k3, k4, rows.q1, np.ones((n, 1)))
    beta: Array = cho_solve(cho_factor(stats.G + n * hyper.lam * np.eye(n)), stats.h[:, 0] / hyper.lam)
    return beta


class FoldSolver:
    """Applies the inverse of A restricted to the rows each fold keeps, from one inverse of A."""

    def __init__(self, A: Array, folds: int) -> None:
        factor, failed = lapack.dpotrf(A, lower=1)
        if failed:
            raise np.linalg.LinAlgError(f"G + n lambda I is not positive definite (pivot {failed})")
        lower, _ = lapack.dpotri(factor, lower=1)
        self.B = np.tril(lower) + np.tril(lower, -1).T
        self.size = len(A) // folds
        self.kept = np.kron(1 - np.eye(folds), np.ones((self.size, 1)))  # [n, F], 0 where the fold is held out

    def solve(self, rhs: Array) -> Array:
        """Column v: A_TT^-1 rhs_T on the rows T that fold v keeps, 0 on those it holds out; [n, F]."""
        out: Array = self.B @ (rhs * self.kept)
        for v in range(out.shape[1]):
            held = slice(v * self.size, (v + 1) * self.size)
            out[:, v] -= self.B[:, held] @ np.linalg.solve(self.B[held, held], out[held, v])
        out *= self.kept
        return out


def cross_validated_score(rows: Rows, hyper: Hyper, folds: int) -> tuple[float, Array]:
    """Mean held-out score-matching loss over contiguous equal folds, and its gradient in (g_x, g_y, lambda).

    The loss is mean_b [f'' + (log q0)' f' + f'^2 / 2] with f fitted without b's fold; terms of q0 alone are left
    out. The gradient follows by differentiating the system A beta = h / lambda in each direction:
    A dbeta = d(h / lambda) - dA beta. The number of rows must be a multiple of `folds`.
    """
    n, lam = len(rows.q1), hyper.lam
    n_kept = n - n // folds
    k = kernel_derivatives(rows, hyper)
    solver = FoldSolver(n_kept * lam * np.eye(n) - k[2], folds)
    stats = Statistics.of(k[2], k[3], k[4], rows.q1, solver.kept)
    held = 1 - solver.kept

    beta = solver.solve(stats.h / lam)
    f1 = ((stats.G @ beta - stats.h / lam) * held).sum(axis=1)
    f2 = ((stats.R @ beta - stats.e / lam) * held).sum(axis=1)
    value = float(np.mean(f2 + rows.q1 * f1 + 0.5 * f1**2))

    def slope(df1: Array, df2: Array, dbeta: Array) -> float:
        df1 = ((df1 + stats.G @ dbeta) * held).sum(axis=1)
        df2 = ((df2 + stats.R @ dbeta) * held).sum(axis=1)
        return float(np.mean(df2 + (rows.q1 + f1) * df1))

    gradient = []
    for tangent in (_tangent_g_x, _tangent_g_y):
        dG, dR, dh, de = Statistics.of(*tangent(rows, k), rows.q1, solver.kept)
        dG_beta = dG @ beta
        dbeta = solver.solve(dh / lam - dG_beta)
        gradient.append(slope(dG_beta - dh / lam, dR @ beta - de / lam, dbeta))
    dbeta = solver.solve(-stats.h / lam**2 - n_kept * beta)
    gradient.append(slope(stats.h / lam**2, stats.e / lam**2, dbeta))
    return value, np.array(gradient)


def _tangent_g_x(rows: Rows, k: list[Array]) -> tuple[Array, Array, Array]:
    """d/dg_x of the second, third and fourth derivative of the kernel."""
    return -rows.squared * k[2], -rows.squared * k[3], -rows.squared * k[4]


def _tangent_g_y(rows: Rows, k: list[Array]) -> tuple[Array, Array, Array]:
    """d/dg_y of the same: Leibniz on d/dg_y k = -r^2 k."""
    r = rows.r

    def of(j: int) -> Array:
        tangent: Array = -(r * (r * k[j] + 2 * j * k[j - 1]) + j * (j - 1) * k[j - 2])
        return tangent

    return of(2), of(3), of(4)


@dataclass(frozen=True)
class Search:
    """L-BFGS-B for hyper-parameters on the penalised held-out score.

    scale "plain" moves g_x, g_y and lambda themselves, as the method's authors do: the slope in lambda is a thousand
    times the others, so with a loose tolerance the search settles lambda and hardly moves g_x and g_y. "log" moves
    their logarithms and gets to the minimum.
    """

    start: Hyper
    folds: int
    penalty: float  # times g_x^2 + g_y^2 + lambda^2 is added to the held-out score
    scale: str  # plain | log
    lower: Hyper
    upper: float
    max_iterations: int
    tolerance: float

    def run(self, rows: Rows) -> tuple[Hyper, list[dict[str, float]], bool]:
        """Best hyper-parameters, one record an iteration, and whether the search converged.

        Rows beyond the largest multiple of `folds` take no part in the search, so that all folds have one size.
        """
        rows = rows.first(len(rows.q1) // self.folds * self.folds)
        # without conditioning variables k_x is 1 and g_x is no parameter
        free = np.array([bool(rows.squared.any()), True, True])
        scores: dict[bytes, float] = {}
        trace: list[dict[str, float]] = []

        def theta(t: Array) -> Array:
            values = np.zeros(3)
            values[free] = np.exp(t) if self.scale == "log" else t
            return values

        def objective(t: Array) -> tuple[float, Array]:
            at = theta(t)
            score, slope = cross_validated_score(rows, Hyper(*at), self.folds)
            scores[t.tobytes()] = score
            slope = slope + 2 * self.penalty * at
            slope = (slope * at if self.scale == "log" else slope)[free]
            return (score + self.penalty * float(at @ at)) / unit, slope / unit

        def record(t: Array) -> None:
            g_x, g_y, lam = map(float, theta(t))
            trace.append({"held_out_score": scores[t.tobytes()], "g_x": g_x, "g_y": g_y, "lambda": lam})

        start, box = np.array(self.start)[free], np.array([self.lower, (self.upper,) * 3])[:, free]
        if self.scale == "log":
            start, box = np.log(start), np.log(box)
        unit = 1.0
        _, slope = objective(start)
        record(start)
        if self.scale == "log":
            # L-BFGS-B begins with a step as long as the slope: at most one e-fold, or it may leap to where f is 0
            unit = max(1.0, float(np.abs(slope).max()))
        found = minimize(
            objective, start, jac=True, method="L-BFGS-B", callback=record, bounds=list(zip(*box, strict=True)),
            options={"maxiter": self.max_iterations, "ftol": self.tolerance, "gtol": self.tolerance},
        )  # fmt: skip
        return Hyper(*map(float, theta(found.x))), trace, bool(found.success)
