"""Statistics and score loss of many rows, without gradients in theta: what validation, phase 2 and the last alpha need.

The formulas are those of `kernels`. What is of size n x d x m is formed for a few rows at a time and stays in the
cache; G and U are symmetric, so one triangle of each is computed, over about a thousand rows times coordinates at
once, and added up in float64. Two extra columns beside the derivatives of k make h and b part of the same product.
"""

import functools
from collections.abc import Iterator

import numpy as np
from scipy.linalg import blas

from dkef.core.arrays import Array
from dkef.models.kef.base_measure import base_jet
from dkef.models.kef.loops import add_loss_slopes, block_derivatives, block_gradients
from dkef.models.kef.packed import PackedKernel
from dkef.models.kef.parameters import BaseMeasure, KefParameters
from dkef.models.kef.statistics import Statistics, on_one_thread

# Measured at m = 300, R = 3, W = 30: anything from half to twice these sizes costs the same.
TILE = 64  # rows times coordinates whose products with one component's basis are formed at once
BLOCK = 1100  # rows times coordinates of one contribution to G and U
CHUNK = 200  # rows whose activations and kernel values are computed at once


class TiledKernel:
    """Sums over rows for one kernel, inducing points and q0, with features and derivatives in one precision."""

    def __init__(self, parameters: KefParameters, dtype: str) -> None:
        with np.errstate(all="ignore"):  # a diverged theta gives NaN, which the caller looks for
            self.kernel = PackedKernel.of(parameters, dtype)
        self.m, self.columns, self.dtype = self.kernel.m, self.kernel.basis.shape[2], np.dtype(dtype)
        q0 = parameters.q0
        self.q0 = BaseMeasure(*(np.asarray(part, dtype) for part in (q0.mu, q0.sigma, q0.beta)))

    @on_one_thread
    def statistics(self, x: Array) -> Statistics:
        """Means over the rows of x [n, d], in float64."""
        n, m, columns = len(x), self.m, self.columns
        if n == 0:
            raise ValueError("no rows to take statistics of")
        syrk = blas.ssyrk if self.dtype == np.float32 else blas.dsyrk
        G, U = np.zeros((columns, columns)), np.zeros((columns, columns))
        with np.errstate(all="ignore"):
            for first, second in self.blocks(x):
                G += syrk(1.0, first.T).T  # SciPy's upper triangle by columns is our lower one by rows
                U += syrk(1.0, second.T).T
        sums = symmetric(G[:m, :m]), symmetric(U[:m, :m]), U[m, :m], G[m, :m], U[m + 1, :m]
        return Statistics(*(part / n for part in sums))

    def blocks(self, x: Array) -> Iterator[tuple[Array, Array]]:
        """d_i k and d_i^2 k of consecutive rows, [rows d, m'] each; the next pair overwrites them.

        Column m of the former is d_i log q0, columns m and m + 1 of the latter are 1 and d_i^2 log q0.
        """
        x = np.asarray(x, self.dtype)
        d, m, columns = x.shape[1], self.m, self.columns
        size = max(1, BLOCK // d)
        chunk = size * max(1, CHUNK // size)
        buffers = np.empty((2, size * d, columns), self.dtype)
        for begin in range(0, len(x), chunk):
            piece = x[begin : begin + chunk]
            rows, q0 = self.kernel.rows(piece), base_jet(self.q0, piece)
            for at in range(0, len(piece), size):
                some = slice(at, at + size)
                first, second = buffers[:, : piece[some].size]
                block_derivatives(self.kernel.arrays, rows, at, tile_rows(d), first, second)
                first[:, m], second[:, m], second[:, m + 1] = q0.first[some].ravel(), 1.0, q0.second[some].ravel()
                yield first, second

    @on_one_thread
    def loss_rows(self, x: Array, alpha: Array) -> Array:
        """sum_i [ d_i^2 log p~ + (d_i log p~)^2 / 2 ] at each row of x, for the coefficients alpha; [n] in float64."""
        x = np.asarray(x, self.dtype)
        with np.errstate(all="ignore"):
            parts = [self._loss_rows(x[i : i + CHUNK], alpha) for i in range(0, len(x), CHUNK)]
        return np.concatenate(parts).astype(np.float64)

    def _loss_rows(self, x: Array, alpha: Array) -> Array:
        (n, d), kernel = x.shape, self.kernel
        rows, q0 = kernel.rows(x), base_jet(self.q0, x)
        padded = np.zeros(self.columns, self.dtype)
        padded[: self.m] = alpha
        a = rows.k * padded
        e = a @ kernel.basis.transpose(0, 2, 1)
        first, second = q0.first.ravel(), q0.second.sum(axis=1)
        block_gradients(kernel.arrays, rows, a, e, self._moments(a, d), tile_rows(d), first, second)
        squares = np.square(first.reshape(n, d)).sum(axis=1)
        loss: Array = second + 0.5 * squares
        return loss

    def _moments(self, a: Array, d: int) -> Array:
        """sum_m a_m b_m b_m' as triangles [r, n, w (w + 1) / 2], where less work than d products with b; else n = 0."""
        if d <= (self.kernel.column.max() + 2) // 2:
            return np.empty((len(a), 0, 0), self.dtype)
        moments: Array = a @ self._outer_products.transpose(0, 2, 1)
        return moments

    @functools.cached_property
    def _outer_products(self) -> Array:
        """b_m b_m' as triangles, with twice what is off the diagonal; [r, w (w + 1) / 2, m']."""
        i, j = np.tril_indices(int(self.kernel.column.max()) + 1)
        times = np.where(i == j, 1, 2).astype(self.dtype)[:, None]
        outer: Array = times * self.kernel.basis[:, i] * self.kernel.basis[:, j]
        return outer


class KeptDerivatives:
    """d_i k at all rows of x, for the slope of the score loss in alpha at any of them and any alpha."""

    @on_one_thread
    def __init__(self, tiled: TiledKernel, x: Array) -> None:
        n, d = x.shape
        self.m = tiled.m
        self.first = np.empty((n, d, tiled.columns), tiled.dtype)
        self.second = np.empty((n, tiled.columns), tiled.dtype)  # summed over coordinates
        at = 0
        with np.errstate(all="ignore"):
            for first, second in tiled.blocks(x):
                rows = slice(at, at + len(first) // d)
                self.first[rows], at = first.reshape(-1, d, tiled.columns), rows.stop
                self.second[rows] = second.reshape(-1, d, tiled.columns).sum(axis=1)

    @staticmethod
    def size(tiled: TiledKernel, x: Array) -> int:
        """Bytes that they take."""
        return int(tiled.dtype.itemsize * tiled.columns * (x.size + len(x)))

    def slope(self, alpha: Array, numbers: Array | None = None) -> Array:
        """Derivative in alpha [m] of the mean loss over the rows of the given numbers, or over all; [m] in float64."""
        rows = np.arange(len(self.first)) if numbers is None else numbers
        with_q0 = np.zeros(self.first.shape[2], self.first.dtype)
        with_q0[: self.m], with_q0[self.m] = alpha, 1.0
        total = np.zeros(self.first.shape[2])
        add_loss_slopes(self.first, self.second, rows, with_q0, total)
        return total[: self.m] / len(rows)


def tile_rows(d: int) -> int:
    """Rows of a tile."""
    return max(1, TILE // d)


def symmetric(lower: Array) -> Array:
    """The matrix with the given lower triangle."""
    whole: Array = np.tril(lower) + np.tril(lower, -1).T
    return whole
