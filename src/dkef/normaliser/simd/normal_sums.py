"""Sums of cut normal densities at many points, and their gradients: what is packed how, and in which order it is used.

    sum_k w_k 2^(-|u_k - v_k|^2 / 2) over exponents of at least `least`,     u_k = B_k (x - o),   v_k = B_k (c_k - o),

with B_k = sqrt(log2 e) L_k^-1. Components of one centre whose factors are multiples of one another make one *site* of
several widths: one distance serves them all, their exponents being in fixed ratios r. Sites with the same factor and
the same widths make a *group*, for which points are whitened once, from an origin o amid its centres.
"""

import math
from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np

from dkef.core.arrays import Array
from dkef.core.compiled import njit
from dkef.normaliser.simd.normal_tiles import CHAINS, PRODUCT_STRIP, add_near, lowest_bit, near_bits, product_tile, pull_near
from dkef.normaliser.simd.tiles import STRIP
from dkef.normaliser.simd.vector import BLOCK, LANES, PANEL, VECTORS

LOG2_E = 1 / math.log(2)
SAME = 1e-12  # relative difference of factors that are multiples of one another but for rounding
FLOAT32_ROUNDING, FLOAT32_LOWEST = 2.0**-24, -1e38


class NormalSums(NamedTuple):
    """What `add_sums` reads. Coordinates are filled up with zeros to `rows`, a multiple of PANEL."""

    origin: Array  # [d], amid all centres
    groups: Array  # int64 [g, 4]: sites, widths, where the group begins in `exact` and in `rough`
    # Of each group: B (its origin - origin) [rows], B [rows, rows], r [widths], and panels of -|v|^2 / 2, v, w as in
    # `add_near`. A single site is the origin of its group, and v is left out.
    exact: Array  # float64
    rough: Array  # float32: panels as in `near_bits`, of groups with more sites
    least: float


class _Group(NamedTuple):
    factor: Array  # [d, d]: that of the widest components
    rates: Array  # [t]: squared ratios of the greatest width to all of them
    centres: Array  # [k, d]
    weights: Array  # [t, k]


def normal_sums(weights: Array, centres: Array, shape: Array, factors: Array, squared_radius: float) -> NormalSums:
    """Components with factors L [j, d, d], cut off at a squared radius; those without weight are left out."""
    origin = centres.mean(axis=0)
    table, exact, rough = [], [np.empty(0)], [np.empty(0, np.float32)]
    for group in _groups(weights, centres, shape, factors):
        sites, widths = len(group.centres), len(group.rates)
        table.append([sites, widths, sum(map(len, exact)), sum(map(len, rough))])
        middle = group.centres.mean(axis=0)
        B = math.sqrt(LOG2_E) * np.linalg.inv(group.factor)
        v = (group.centres - middle) @ B.T
        fill = -len(B) % PANEL
        exact += [np.pad(B @ (middle - origin), (0, fill)), np.pad(B, (0, fill)).ravel(), group.rates]
        minus_half_square = -0.5 * (v**2).sum(axis=1)
        if sites == 1:
            v = v[:, :0]
        else:
            upper = upper_bound(minus_half_square, len(B))
            rough.append(_panels(np.concatenate([upper[None], v.T]), np.float32))
        v = np.pad(v, ((0, 0), (0, -v.shape[1] % CHAINS)))
        exact.append(_panels(np.concatenate([minus_half_square[None], v.T, group.weights]), np.float64))
    return NormalSums(
        origin, np.array(table, np.int64).reshape(-1, 4), np.concatenate(exact), np.concatenate(rough),
        -0.5 * LOG2_E * squared_radius,
    )  # fmt: skip


def _groups(weights: Array, centres: Array, shape: Array, factors: Array) -> Iterator[_Group]:
    same_as = _directions(factors)
    sites: dict[tuple[int, bytes], dict[float, list[int]]] = {}  # components by width
    for k in np.flatnonzero(weights):
        width = float(factors[shape[k], 0, 0])
        sites.setdefault((same_as[shape[k]], centres[k].tobytes()), {}).setdefault(width, []).append(int(k))
    groups: dict[tuple[int, tuple[float, ...]], list[dict[float, list[int]]]] = {}
    for (direction, _), site in sites.items():
        groups.setdefault((direction, tuple(sorted(site, reverse=True))), []).append(site)
    for (_, widths), members in groups.items():
        first = [site[widths[0]][0] for site in members]
        yield _Group(
            factors[shape[first[0]]], (widths[0] / np.array(widths)) ** 2, centres[first],
            np.array([[weights[site[width]].sum() for site in members] for width in widths]),
        )  # fmt: skip


def _directions(factors: Array) -> list[int]:
    """For every factor the number of the first one that it is a multiple of."""
    scaled = factors / factors[:, :1, :1]
    sums = scaled.sum(axis=(1, 2))
    found: list[int] = []
    for j, factor in enumerate(scaled):
        alike = np.flatnonzero(np.isclose(sums[:j], sums[j], rtol=1e-6, atol=1e-6))  # few are left to look at
        found.append(next((found[i] for i in alike if np.allclose(scaled[i], factor, rtol=SAME, atol=0)), j))
    return found


def upper_bound(minus_half_square: Array, d: int) -> Array:
    """-|u|^2 / 2 raised by so much that an exponent from float32 numbers is never below the true one.

    fl(c + n + sum_i u_i v_i) errs by at most (d + 1) roundings of |c| + |n| + sum |u_i v_i|, of which the last is at
    most |c| + |n|; rounding u and v costs 2 of those, c and n one each: 2 d + 6 in all, of |c| + |n|. Nothing is below
    FLOAT32_LOWEST, so that sums of very large numbers overflow upwards or not at all.
    """
    return np.maximum((1 - (2 * d + 8) * FLOAT32_ROUNDING) * minus_half_square, FLOAT32_LOWEST)


def _panels(columns: Array, kind: type) -> Array:
    """[r, k] as [k / PANEL, r, PANEL], flat; what fills the last panel has no weight and is too far away to count."""
    r, k = columns.shape
    padded = np.zeros((r, -(-k // PANEL) * PANEL))
    padded[0, k:] = FLOAT32_LOWEST
    padded[:, :k] = columns
    with np.errstate(over="ignore"):  # what is infinite in float32 counts as near
        return padded.reshape(r, -1, PANEL).transpose(1, 0, 2).astype(kind).ravel()


@njit
def add_sums(total, gradient, x, sums):  # type: ignore[no-untyped-def]
    """total_n += the sum at x_n; gradient_n += its gradient, unless that array is empty."""
    d = x.shape[1]
    rows = -(-d // PANEL) * PANEL
    centred, points = np.zeros((rows, BLOCK)), np.zeros((rows + 1, BLOCK))
    rough = np.zeros((d + 1, BLOCK), np.float32)
    block, pull, slope = np.empty(BLOCK), np.empty((rows + 2, BLOCK)), np.empty((rows, BLOCK))
    with_gradient = len(gradient) > 0
    for start in range(0, len(x), BLOCK):
        count = min(BLOCK, len(x) - start)
        centred[:d, :count] = x[start : start + count].T - sums.origin.reshape(-1, 1)
        block[:] = 0.0
        slope[:] = 0.0
        for g in range(len(sums.groups)):
            whiten(points, centred, sums.exact, sums.groups[g, 2])
            if with_gradient:
                pull[:] = 0.0
                if add_group(block, pull, points, rough, sums, g, d, True):
                    block += pull[rows + 1]
                    add_slope(slope, pull, points, sums.exact, sums.groups[g, 2] + rows)
            else:
                add_group(block, pull, points, rough, sums, g, d, False)
        total[start : start + count] += block[:count]
        if with_gradient:
            gradient[start : start + count] += slope[:d, :count].T / LOG2_E


@njit
def whiten(points, centred, exact, at):  # type: ignore[no-untyped-def]
    """points = u and, in the last row, -|u|^2 / 2; B is lower triangular."""
    rows = len(centred)
    for i in range(rows):
        points[i] = -exact[at + i]
    matrix = at + rows
    for first in range(0, rows, PANEL):
        for strip in range(0, BLOCK, PRODUCT_STRIP):
            product_tile(points, first, centred, 0, first + PANEL, strip, exact, matrix + first * rows, 1, rows)
    points[rows] = 0.0
    for i in range(rows):
        for n in range(BLOCK):
            points[rows, n] -= 0.5 * points[i, n] * points[i, n]


@njit
def add_slope(slope, pull, points, exact, matrix):  # type: ignore[no-untyped-def]
    """slope += B' sum_k s_k (v_k - u), from the sums over k of s_k v_k and, in row `rows`, of s_k."""
    rows = len(slope)
    for i in range(rows):
        pull[i] -= points[i] * pull[rows]
    for first in range(0, rows, PANEL):
        for strip in range(0, BLOCK, PRODUCT_STRIP):
            at = matrix + first * rows + first
            product_tile(slope, first, pull, first, rows - first, strip, exact, at, rows, 1)


@njit
def add_group(block, pull, points, rough, sums, g, d, with_gradient):  # type: ignore[no-untyped-def]
    """Add the terms of one group to `block`, or to `pull`; returns whether any point may be near one of its sites."""
    rows = len(points) - 1
    sites, widths, at, rough_at = sums.groups[g]
    rates = at + rows + rows * rows
    at = rates + widths
    exact, least = sums.exact, sums.least
    if sites == 1:
        for n in range(0, BLOCK, LANES):
            if with_gradient:
                pull_near(pull, n, points, rows, 0, exact, rates, widths, at, least)
            else:
                add_near(block, n, points, rows, 0, exact, rates, widths, at, least)
        return True
    roughen(rough, points)
    least32 = np.float32(least * (1 + 2 * FLOAT32_ROUNDING))
    found = False
    filled = -(-d // CHAINS) * CHAINS
    for _ in range(-(-sites // PANEL)):
        for strip in range(0, BLOCK, STRIP):
            bits = near_bits(rough, strip, sums.rough, rough_at, d, least32)
            while bits != 0:
                found = True
                bit = lowest_bit(bits)
                bits &= bits - 1
                site, n = at + bit // VECTORS, strip + bit % VECTORS * LANES
                if with_gradient:
                    pull_near(pull, n, points, rows, filled, exact, rates, widths, site, least)
                else:
                    add_near(block, n, points, rows, filled, exact, rates, widths, site, least)
        at += (1 + filled + widths) * PANEL
        rough_at += (1 + d) * PANEL
    return found


@njit
def roughen(rough, points):  # type: ignore[no-untyped-def]
    """u in float32 and, in the last row, the upper bound of -|u|^2 / 2: see `upper_bound`."""
    d = len(rough) - 1
    for i in range(d):
        for n in range(BLOCK):
            rough[i, n] = points[i, n]
    share = 1 - (2 * d + 8) * FLOAT32_ROUNDING
    norms = points[len(points) - 1]
    for n in range(BLOCK):
        rough[d, n] = max(share * norms[n], FLOAT32_LOWEST)
