"""The held-out score of one conditional of a kernel conditional exponential family, and its gradient.

Symbols as in dkef.models.kcef.conditional. All F fits that leave one fold V of equal size out have the same number
n_T of rows, hence share A = G + n_T lambda I. With B = A^-1, the inverse of the block that a fold keeps is
B_TT - B_TV B_VV^-1 B_VT, so one inverse serves every fold, exactly.

Let k_j [n, n] be the j-th derivative of the kernel in r = y_b - y_c, so that <d^i K_b, d^j K_c> = (-1)^j k_{i+j}.
Column v of [n, F] arrays belongs to the fit that leaves fold v out: beta, and M with 1 / n_T at the rows it keeps.
With Q = q1 M and gamma = beta - Q / lambda, the fitted f has at all rows

    f' = -(k_2 gamma + k_3 M / lambda),   f'' = -(k_3 gamma + k_4 M / lambda),

of which row b counts in the column of its own fold. The loss is L = mean_b [f'' + q1 f' + f'^2 / 2].

Gradient. Let w1, w2 [n, F] be dL/df' and dL/df'' and a the solution of A_TT a = (G w1 + R' w2)_T, R = -k_3. Then, with
c = a - w1 and for any change dk_j of the kernel that leaves lambda as it is,

    dL = sum_bc W2 dk_2 + W3 dk_3 + W4 dk_4,   W2 = c gamma',  W3 = c M' / lambda - w2 gamma',  W4 = -w2 M' / lambda,

so that one more solve serves both length scales and lambda. k_2 and k_4 are symmetric and k_3 is antisymmetric: what
is elementwise in W is done for one triangle, in tiles that stay in cache.
"""

from collections.abc import Iterator

import numpy as np
from scipy.linalg import lapack

from dkef.core.arrays import Array
from dkef.models.kcef.conditional import Hyper, Rows, derivatives, kernel

TILE = 64  # rows; fewer cost more calls than cache misses


def upper_tiles(n: int) -> Iterator[tuple[slice, slice]]:
    """Blocks of rows and, for each, the columns from its square on the diagonal to the end."""
    for start in range(0, n, TILE):
        yield slice(start, min(start + TILE, n)), slice(start, n)


def mirror(upper: Array) -> None:
    """Copy the upper triangle into the lower one, in place."""
    for rows, _ in upper_tiles(len(upper)):
        square = upper[rows, rows]
        below = np.tril_indices(len(square), -1)
        square[below] = square.T[below]
        upper[rows.stop :, rows] = upper[rows, rows.stop :].T


class FoldSolver:
    """Applies the inverse of A restricted to the rows each fold keeps, from one inverse of A; A is overwritten."""

    def __init__(self, A: Array, folds: int) -> None:
        # LAPACK stores by columns: the transpose of the upper triangle here is its lower one, without a copy
        factor, failed = lapack.dpotrf(A.T, lower=1, overwrite_a=1)
        if failed:
            raise np.linalg.LinAlgError(f"G + n lambda I is not positive definite (pivot {failed})")
        inverse, _ = lapack.dpotri(factor, lower=1, overwrite_c=1)
        self.B = inverse.T
        mirror(self.B)
        size = len(A) // folds
        self.kept = np.kron(1 - np.eye(folds), np.ones((size, 1)))  # [n, F], 0 where the fold is held out
        self.by_fold = self.B.reshape(folds, size, -1)  # [F, n / F, n]
        self.B_VV = own(self.B.reshape(len(A), folds, size), folds)  # [F, n / F, n / F]

    def solve(self, rhs: Array) -> Array:
        """Column v: A_TT^-1 rhs_T on the rows T that fold v keeps, 0 on those it holds out; [n, F]."""
        out: Array = self.B @ (rhs * self.kept)
        y = np.linalg.solve(self.B_VV, own(out, out.shape[1])[:, :, None])
        out -= (y.mT @ self.by_fold)[:, 0].T
        out *= self.kept
        return out


def own(columns: Array, folds: int) -> Array:
    """From [n, F, ...] what each row has in the column of its own fold, as [F, n / F, ...]."""
    fold = np.arange(folds)
    chosen: Array = columns.reshape(folds, -1, *columns.shape[1:])[fold, :, fold]
    return chosen


def kernel_derivatives(rows: Rows, hyper: Hyper, k: Array) -> None:
    """Fill k [5, n, n] with k_0 to k_4."""
    for start in range(0, len(rows.q1), TILE):
        tile = slice(start, start + TILE)
        part = Rows(rows.squared[tile], rows.r[tile], rows.q1[tile])
        for j, derivative in enumerate(derivatives(kernel(part, hyper), part.r, hyper.g_y, 4)):
            k[j, tile] = derivative


def workspace(rows: Rows) -> Array:
    """Memory for `cross_validated_score`: fetching it from the system again costs a tenth of a call."""
    return np.empty((6, *rows.r.shape))


def cross_validated_score(rows: Rows, hyper: Hyper, folds: int, work: Array | None = None) -> tuple[float, Array]:
    """Mean held-out score-matching loss over contiguous equal folds, and its gradient in (g_x, g_y, lambda).

    Terms of q0 alone are left out. The number of rows must be a multiple of `folds`.
    """
    n, lam = len(rows.q1), hyper.lam
    n_kept = n - n // folds
    work = workspace(rows) if work is None else work
    k, A = work[:5], work[5]
    kernel_derivatives(rows, hyper, k)
    np.negative(k[2], out=A)
    A[np.diag_indices(n)] += n_kept * lam
    solver = FoldSolver(A, folds)
    M = solver.kept / n_kept
    Q = rows.q1[:, None] * M
    k2, k3, k4 = (part.reshape(folds, -1, n) for part in k[2:])  # [F, n / F, n], by the fold of the row

    def at_own(part: Array, columns: Array) -> Array:
        """part @ columns, each row in the column of its own fold; [F, n / F]."""
        product: Array = (part @ columns.T[:, :, None])[:, :, 0]
        return product

    h = k[3] @ M - k[2] @ Q
    e = at_own(k4, M) - at_own(k3, Q)
    beta = solver.solve(h / lam)
    f1 = -at_own(k2, beta) - own(h, folds) / lam
    f2 = -at_own(k3, beta) - e / lam
    q1 = rows.q1.reshape(f1.shape)
    value = float(np.mean(f2 + q1 * f1 + 0.5 * f1**2))

    w1, w2 = (q1 + f1) / n, np.full_like(f1, 1 / n)
    a = solver.solve(-(w1[:, None] @ k2 + w2[:, None] @ k3)[:, 0].T)
    held = 1 - solver.kept
    c = a - held * w1.reshape(n, 1)
    slope_lam = float(e.sum() / n - np.vdot(c, h)) / lam**2 - n_kept * float(np.vdot(a, beta))
    gamma = beta - Q / lam
    left = np.hstack([c, held / n])
    factors = (c, gamma), (left, np.hstack([M / lam, -gamma])), (held / -n, M / lam)
    return value, np.array([*_slopes(rows, k, factors), slope_lam])


def _slopes(rows: Rows, k: Array, factors: tuple[tuple[Array, Array], ...]) -> tuple[float, float]:
    """sum_bc W2 dk_2 + W3 dk_3 + W4 dk_4 for d/dg_x and d/dg_y, with W_j given as pairs L, R of W_j = L R'.

    d/dg_x k_j = -|u_b - u_c|^2 k_j, and Leibniz on d/dg_y k = -r^2 k gives
    d/dg_y k_j = -(r^2 k_j + 2 j r k_{j-1} + j (j - 1) k_{j-2}).
    """
    # the two triangles together: W_j(b, c) + (-1)^j W_j(c, b)
    pairs = [
        (np.hstack([left, sign * right]), np.ascontiguousarray(np.hstack([right, left]).T))
        for (left, right), sign in zip(factors, (1, -1, 1), strict=True)
    ]
    g_x = g_y = 0.0
    for tile in upper_tiles(len(rows.q1)):
        block, columns = tile
        k0, k1, k2, k3, k4 = k[:, *tile]
        W2, W3, W4 = (left[block] @ right[:, columns] for left, right in pairs)
        for W in (W2, W3, W4):
            W[:, : len(W)] /= 2  # the square on the diagonal holds both of its triangles
        r = rows.r[tile]
        total = W2 * k2
        total += W3 * k3
        total += W4 * k4
        g_x -= float(np.vdot(rows.squared[tile], total))
        total *= r
        total += 4 * (W2 * k1)
        total += 6 * (W3 * k2)
        total += 8 * (W4 * k3)
        g_y -= float(np.vdot(r, total)) + float(2 * np.vdot(W2, k0) + 6 * np.vdot(W3, k1) + 12 * np.vdot(W4, k2))
    return g_x, g_y
