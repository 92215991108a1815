"""Compiled loops behind `tiles`: jets of packed networks, and derivatives of kernels and of f made of them.

They work on tiles of a few rows, so that what one loop leaves the next still finds in the cache. A function takes the
arrays of one component of `packed.PackedKernel` and `packed.Rows`, and the place of its tile in the latter. Sums may be
re-associated, so the last bits depend on the vector unit of the machine.
"""

from collections.abc import Callable
from typing import Any

import numpy as np

from dkef.core.compiled import njit

LANES = 16  # widths are multiples of this, so that no vector is left half empty
Arrays = Any  # np.ndarray of either precision
loop: Callable[..., Any] = njit(fastmath={"reassoc", "contract", "nsz"})


@loop
def scale_kernel(k: Arrays, rho: float, smallest: float) -> None:
    """Multiply k by rho in place; what is below `smallest` becomes 0."""
    for n in range(k.shape[0]):
        for j in range(k.shape[1]):
            k[n, j] = rho * k[n, j] if k[n, j] > smallest else 0.0 * rho


@loop
def network_jets(
    start: Arrays, weight: Arrays, skip: Arrays, slope: Arrays, bend: Arrays, at: int, jet: Arrays, spare: Arrays
) -> None:
    """Fill jet [2 t d, v] with d_i phi, then d_i^2 phi, at the t rows from `at` on; spare: like jet."""
    layers, v, d = slope.shape[0], slope.shape[2], start.shape[0]
    half = jet.shape[0] // 2
    for n in range(half // d):
        for i in range(d):
            row = n * d + i
            for j in range(v):
                p = start[i, j]
                jet[row, j] = slope[0, at + n, j] * p
                jet[half + row, j] = bend[0, at + n, j] * p * p
    for layer in range(1, layers):
        np.dot(jet, weight[layer - 1], spare)
        for n in range(half // d):
            for i in range(d):
                row = n * d + i
                for j in range(v):
                    p = spare[row, j] + skip[layer - 1, i, j]
                    s = slope[layer, at + n, j]
                    jet[row, j] = s * p
                    jet[half + row, j] = bend[layer, at + n, j] * p * p + s * spare[half + row, j]


@loop
def network_laplacians(
    start: Arrays, weight: Arrays, skip: Arrays, slope: Arrays, bend: Arrays, at: int, jet: Arrays, spare: Arrays
) -> None:
    """Fill jet [t d + t, v] with d_i phi, then sum_i d_i^2 phi, at the t rows from `at` on; spare: like jet."""
    layers, v, d = slope.shape[0], slope.shape[2], start.shape[0]
    t = jet.shape[0] // (d + 1)
    squares = np.empty(v, jet.dtype)
    for layer in range(layers):
        if layer > 0:
            np.dot(jet, weight[layer - 1], spare)
        for n in range(t):
            squares[:] = 0.0
            for i in range(d):
                row = n * d + i
                for j in range(v):
                    p = start[i, j] if layer == 0 else spare[row, j] + skip[layer - 1, i, j]
                    jet[row, j] = slope[layer, at + n, j] * p
                    squares[j] += p * p
            row = t * d + n
            for j in range(v):
                passed = 0.0 * squares[j] if layer == 0 else slope[layer, at + n, j] * spare[row, j]
                jet[row, j] = bend[layer, at + n, j] * squares[j] + passed


@loop
def add_columns(jet: Arrays, d: int, phi: Arrays, at: int, column: int) -> None:
    """Put phi.P and phi.S + |P|^2 into the extra column of jet [2 t d, v]."""
    half = jet.shape[0] // 2
    for n in range(half // d):
        for row in range(n * d, (n + 1) * d):
            along = 0.0 * jet[row, 0]
            bent = along
            for j in range(phi.shape[1]):
                along += jet[row, j] * phi[at + n, j]
                bent += jet[half + row, j] * phi[at + n, j] + jet[row, j] * jet[row, j]
            jet[row, column] = along
            jet[half + row, column] = bent


@loop
def add_derivatives(
    k: Arrays, at: int, gaussian: bool, products: Arrays, d: int, first: Arrays, second: Arrays
) -> None:
    """Add one component's derivatives of k to first and second [t d, m'], from products [2 t d, m'] with its basis."""
    half = first.shape[0]
    for n in range(half // d):
        for row in range(n * d, (n + 1) * d):
            if gaussian:
                for j in range(first.shape[1]):
                    a = products[row, j]
                    first[row, j] += k[at + n, j] * a
                    second[row, j] += k[at + n, j] * (a * a + products[half + row, j])
            else:
                for j in range(first.shape[1]):
                    first[row, j] += products[row, j]
                    second[row, j] += products[half + row, j]


@loop
def block_derivatives(kernel: Arrays, rows: Arrays, begin: int, tile: int, first: Arrays, second: Arrays) -> None:
    """Fill first and second [n d, m'] with d_i k(x, z_m) and d_i^2 k(x, z_m) at the n rows from `begin` on.

    kernel, rows: the arrays of `packed`; tile: rows to take at once.
    """
    start, weight, skip, basis, column, gaussian = kernel
    slope, bend, phi, k = rows
    d, m, v = start.shape[1], basis.shape[2], phi.shape[2]
    jet, spare = np.empty((2 * tile * d, v), phi.dtype), np.empty((2 * tile * d, v), phi.dtype)
    products = np.empty((2 * tile * d, m), phi.dtype)
    n = first.shape[0] // d
    for at in range(0, n, tile):
        t = min(tile, n - at)
        own, kept, there = jet[: 2 * t * d], spare[: 2 * t * d], products[: 2 * t * d]
        a, b = first[at * d : (at + t) * d], second[at * d : (at + t) * d]
        a[:] = 0.0
        b[:] = 0.0
        for r in range(phi.shape[0]):
            network_jets(start[r], weight[r], skip[r], slope[r], bend[r], begin + at, own, kept)
            if gaussian[r]:
                add_columns(own, d, phi[r], begin + at, column[r])
            np.dot(own, basis[r], there)
            add_derivatives(k[r], begin + at, gaussian[r], there, d, a, b)


@loop
def add_gradient(
    jet: Arrays, d: int, e: Arrays, phi: Arrays, at: int, column: int, first: Arrays, second: Arrays
) -> None:
    """Add one component's d_i f to first [t d], and the part of sum_i d_i^2 f that is linear in jets to second [t].

    e [n, v]: sum_m a_m basis_m with a_m = alpha_m k(x, z_m). With g = e + e_column phi, d_i f = P_i.g; the second
    derivatives add the Laplacian of phi times g, and e_column |P_i|^2. Also puts phi.P into the extra column of jet.
    """
    t, v = jet.shape[0] // (d + 1), jet.shape[1]
    for n in range(t):
        last = e[at + n, column]
        for row in range(n * d, (n + 1) * d):
            plain = 0.0 * last
            along, square = plain, plain
            for j in range(v):
                p = jet[row, j]
                plain += p * e[at + n, j]
                along += p * phi[at + n, j]
                square += p * p
            jet[row, column] = along
            first[row] += plain + last * along
            second[n] += last * square
        row = t * d + n
        total = 0.0 * last
        for j in range(v):
            if j != column:
                total += jet[row, j] * (e[at + n, j] + last * phi[at + n, j])
        second[n] += total


@loop
def add_squares(products: Arrays, d: int, a: Arrays, at: int, second: Arrays) -> None:
    """Add sum_i sum_m a_m (p_i.b_m)^2 to second [t], from products [t d, m']."""
    for n in range(second.shape[0]):
        for row in range(n * d, (n + 1) * d):
            total = 0.0 * products[row, 0]
            for j in range(products.shape[1]):
                total += a[at + n, j] * products[row, j] * products[row, j]
            second[n] += total


@loop
def add_moments(jet: Arrays, d: int, moment: Arrays, at: int, second: Arrays) -> None:
    """The same from moment [n, w (w + 1) / 2]: sum_m a_m b_m b_m' as one triangle, twice what is off its diagonal."""
    w = int((np.sqrt(8.0 * moment.shape[1] + 1.0) - 1.0) / 2.0 + 0.5)
    for n in range(second.shape[0]):
        p = jet[n * d : (n + 1) * d]
        outer = np.dot(p.T, p)
        place = 0
        for i in range(w):
            total = 0.0 * outer[0, 0]
            for j in range(i + 1):
                total += outer[i, j] * moment[at + n, place + j]
            place += i + 1
            second[n] += total


@loop
def block_gradients(
    kernel: Arrays, rows: Arrays, a: Arrays, e: Arrays, moments: Arrays, tile: int, first: Arrays, second: Arrays
) -> None:
    """Add d_i f to first [n d], and sum_i d_i^2 f to second [n].

    kernel, rows: the arrays of `packed`; a: [r, n, m'], alpha_m k(x, z_m); e: [r, n, v], sum_m a_m basis_m; moments:
    [r, n, w (w + 1) / 2] as in `add_moments`, or with n = 0 to form all products instead.
    """
    start, weight, skip, basis, column, gaussian = kernel
    slope, bend, phi, _ = rows
    d, m, v = start.shape[1], basis.shape[2], phi.shape[2]
    jet, spare = np.empty((tile * (d + 1), v), phi.dtype), np.empty((tile * (d + 1), v), phi.dtype)
    products = np.empty((tile * d, m), phi.dtype)
    for at in range(0, len(second), tile):
        t = min(tile, len(second) - at)
        own, kept, there = jet[: t * (d + 1)], spare[: t * (d + 1)], products[: t * d]
        f, g = first[at * d : (at + t) * d], second[at : at + t]
        for r in range(phi.shape[0]):
            network_laplacians(start[r], weight[r], skip[r], slope[r], bend[r], at, own, kept)
            add_gradient(own, d, e[r], phi[r], at, column[r], f, g)
            if gaussian[r] and moments.shape[1] > 0:
                add_moments(own, d, moments[r], at, g)
            elif gaussian[r]:
                np.dot(own[: t * d], basis[r], there)
                add_squares(there, d, a[r], at, g)


@loop
def add_loss_slopes(first: Arrays, second: Arrays, rows: Arrays, alpha: Arrays, total: Arrays) -> None:
    """Add the derivative in alpha of the score loss at the given rows to total [m'].

    first: [n, d, m'], d_i k(x, z_m) with a column of d_i log q0(x), for which alpha [m'] has a 1; second: [n, m'],
    sum_i d_i^2 k(x, z_m).
    """
    of_row = np.empty_like(alpha)  # in the precision of alpha, and added up in that of total
    for n in rows:
        of_row[:] = second[n]
        for i in range(first.shape[1]):
            slope = 0.0 * alpha[0]
            for j in range(len(alpha)):
                slope += first[n, i, j] * alpha[j]
            for j in range(len(alpha)):
                of_row[j] += slope * first[n, i, j]
        for j in range(len(alpha)):
            total[j] += of_row[j]
