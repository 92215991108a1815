"""Sums of cut normal densities at many points, and their gradients: what is packed how, and in which order it is used.

    sum_k w_k 2^(-|u_k - v_k|^2 / 2) over exponents of at least `least`,     u_k = B_k (x - o),   v_k = B_k (c_k - o),

with B_k = sqrt(log2 e) L_k^-1. Components of one centre whose factors are multiples of one another make one *site* of
several widths: one distance serves them all, their exponents being in fixed ratios r. Sites with the same factor and
the same widths make a *group*, for which points are whitened once, from an origin o amid its centres.
"""

import functools
import math
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np

from dkef.core.arrays import Array
from dkef.core.compiled import njit
from dkef.normaliser.simd.normal_tiles import (
    CHAINS,
    DOUBLE_STRIP,
    add_near,
    lowest_bit,
    near_bits,
    slope_tile,
    whiten_tile,
)
from dkef.normaliser.simd.tiles import STRIP
from dkef.normaliser.simd.vector import BLOCK, LANES, PANEL, VECTORS

LOG2_E = 1 / math.log(2)
SAME = 1e-12  # relative difference of factors that are multiples of one another but for rounding
MANY = 12  # coordinates, see `neighbours`
FAR = 1e5  # |v|^2 up to which v.u - |v|^2 / 2 - |u|^2 / 2 is right to 1e-9
NOWHERE = -1e30  # exponent of what is near no point
FLOAT32_ROUNDING = 2.0**-24


class NormalSums(NamedTuple):
    """What `add_sums` reads. Coordinates are filled up with zeros to `rows`, a multiple of PANEL."""

    origin: Array  # [d], amid all centres
    groups: Array  # int64 [g, 4]: sites, widths, where the group begins in `exact` and in `rough`
    # Of each group: B (its origin - origin) [rows], B [rows, rows], r [widths], and panels of -|v|^2 / 2, v and w as in
    # `add_near`. A single site is the origin of its group, and v is left out.
    exact: Array  # float64
    rough: Array  # float32: panels as in `near_bits`, of groups with more sites
    least: float


@dataclass(frozen=True)
class _Group:
    factor: Array  # [d, d]: L of the widest components
    rates: Array  # [t]: squared ratios of the greatest width to all of them
    centres: Array  # [k, d]
    weights: Array  # [t, k]

    @functools.cached_property
    def origin(self) -> Array:
        middle: Array = self.centres.mean(axis=0)
        return middle

    @functools.cached_property
    def whitening(self) -> Array:
        """[d, d]: B"""
        return math.sqrt(LOG2_E) * np.linalg.inv(self.factor)

    @functools.cached_property
    def v(self) -> Array:
        """[k, d]"""
        return (self.centres - self.origin) @ self.whitening.T

    def split(self) -> "list[_Group]":
        """Itself; or every site alone, if float64 exponents would lose digits that are asked for."""
        if (self.v**2).sum(axis=1).max() <= FAR:
            return [self]
        pairs = zip(self.centres, self.weights.T, strict=True)
        return [replace(self, centres=centre[None], weights=weights[:, None]) for centre, weights in pairs]


def normal_sums(weights: Array, centres: Array, shape: Array, factors: Array, squared_radius: float) -> NormalSums:
    """Components with factors L [j, d, d], cut off at a squared radius; those without weight are left out."""
    origin = centres.mean(axis=0)
    table, exact, rough = [], [np.empty(0)], [np.empty(0)]
    for group in _groups(weights, centres, shape, factors):
        table.append([len(group.centres), len(group.rates), sum(map(len, exact)), sum(map(len, rough))])
        fill = -len(origin) % PANEL
        start = group.whitening @ (group.origin - origin)
        exact += [np.pad(start, (0, fill)), np.pad(group.whitening, (0, fill)).ravel(), group.rates]
        norms, v = -0.5 * (group.v**2).sum(axis=1), group.v.T
        if len(group.centres) == 1:
            v = v[:0]
        else:
            rough.append(_panels(np.concatenate([upper_bound(norms, len(v))[None], v]), filling=NOWHERE))
        v = np.pad(v, ((0, -len(v) % CHAINS), (0, 0)))
        exact.append(_panels(np.concatenate([norms[None], v, group.weights])))
    groups = np.array(table, np.int64).reshape(-1, 4)
    least = -0.5 * LOG2_E * squared_radius
    return NormalSums(origin, groups, np.concatenate(exact), np.concatenate(rough).astype(np.float32), least)


def _groups(weights: Array, centres: Array, shape: Array, factors: Array) -> Iterator[_Group]:
    same_as, widths = _directions(factors), factors[:, 0, 0].tolist()
    sites: dict[tuple[int, bytes], dict[float, float]] = {}  # weights by width
    first: dict[tuple[int, bytes], int] = {}
    for k, (j, weight) in enumerate(zip(shape.tolist(), weights.tolist(), strict=True)):
        if weight > 0:
            key = same_as[j], centres[k].tobytes()
            site = sites.setdefault(key, {})
            site[widths[j]] = site.get(widths[j], 0.0) + weight
            first.setdefault(key, k)
    groups: dict[tuple[int, tuple[float, ...]], list[tuple[int, bytes]]] = {}
    for key, site in sites.items():
        groups.setdefault((key[0], tuple(sorted(site, reverse=True))), []).append(key)
    for (direction, found), members in groups.items():
        group = _Group(
            found[0] / widths[direction] * factors[direction], (found[0] / np.array(found)) ** 2,
            centres[[first[key] for key in members]],
            np.array([[sites[key][width] for key in members] for width in found]),
        )  # fmt: skip
        yield from group.split()


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

    With c = -|v|^2 / 2 and n = -|u|^2 / 2, the sum fl(c + n + sum_i v_i u_i) errs by at most d + 1 roundings of |c| +
    |n| + sum |v_i u_i|, the last of which is at most |c| + |n|; the products, and rounding of v, u, c and n, cost 4
    more of |c| + |n|. The two that are left are for |v| and |u| which are themselves rounded.
    """
    raised: Array = (1 - (2 * d + 8) * FLOAT32_ROUNDING) * minus_half_square
    return raised


_upper_bound = njit(inline="always")(upper_bound)


def _panels(columns: Array, filling: float = 0.0) -> Array:
    """[r, k] as [k / PANEL, r, PANEL], flat; what fills the last panel has this in its first row, and no weight."""
    r, k = columns.shape
    padded = np.pad(columns, ((0, 0), (0, -k % PANEL)))
    padded[0, k:] = filling
    return padded.reshape(r, -1, PANEL).transpose(1, 0, 2).ravel()


def neighbours(x: Array, sums: NormalSums) -> Array:
    """An order of points in which those of one block are close in two coordinates, so that few sites are near them.

    It halves the time where there are two coordinates, saves a twentieth with eleven and nothing with more. Results do
    not depend on it.
    """
    n, d = x.shape
    if d > MANY or len(sums.rough) == 0:
        return np.arange(n)
    order = np.argsort(x[:, 0])
    for rows in np.array_split(order, max(1, round(math.sqrt(n / BLOCK)))):
        rows[:] = rows[np.argsort(x[rows, -1])]
    return order


@njit
def add_sums(total, gradient, x, sums):  # type: ignore[no-untyped-def]
    """total_n += the sum at x_n; gradient_n += its gradient, unless that array is empty.

    Here and below loops stand where array expressions would do: those compile for seconds, because of the messages of
    errors that they could raise.
    """
    d = x.shape[1]
    rows = -(-d // PANEL) * PANEL
    centred, slope = np.zeros((rows, BLOCK)), np.empty((rows, BLOCK))
    points, rough = np.zeros((rows + 1, BLOCK)), np.zeros((d + 1, BLOCK), np.float32)
    block, pull = np.empty(BLOCK), np.empty((2 + rows, BLOCK))
    with_gradient = len(gradient) > 0
    for start in range(0, len(x), BLOCK):
        count = min(BLOCK, len(x) - start)
        for n in range(count):
            for i in range(d):
                centred[i, n] = x[start + n, i] - sums.origin[i]
        block.fill(0.0)
        slope.fill(0.0)
        for g in range(len(sums.groups)):
            at = sums.groups[g, 2]
            whiten(points, centred, sums.exact, at)
            if not with_gradient:
                add_group(block, points, rough, sums, g, d)
                continue
            pull.fill(0.0)
            if add_group(pull, points, rough, sums, g, d):
                add_slope(block, slope, pull, points, sums.exact, at + rows)
        for n in range(count):
            total[start + n] += block[n]
        if with_gradient:
            for n in range(count):
                for i in range(d):
                    gradient[start + n, i] += slope[i, n] / LOG2_E


@njit(inline="always")
def whiten(points, centred, exact, at):  # type: ignore[no-untyped-def]
    """points[:rows] = u and points[rows] = -|u|^2 / 2."""
    rows = len(centred)
    for n in range(BLOCK):
        points[rows, n] = 0.0
    for first in range(0, rows, PANEL):
        for strip in range(0, BLOCK, DOUBLE_STRIP):
            whiten_tile(points, first, centred, strip, exact, at)


@njit(inline="always")
def add_slope(block, slope, pull, points, exact, at):  # type: ignore[no-untyped-def]
    """Add what `add_near` has left in `pull`: the sum to `block`, and B' sum_k s_k (v_k - u) to `slope`."""
    rows = len(slope)
    for n in range(BLOCK):
        block[n] += pull[0, n]
    for i in range(rows):
        for n in range(BLOCK):
            pull[2 + i, n] -= points[i, n] * pull[1, n]
    for first in range(0, rows, PANEL):
        for strip in range(0, BLOCK, DOUBLE_STRIP):
            slope_tile(slope, first, pull, strip, exact, at)


@njit(inline="always")
def add_group(results, points, rough, sums, g, d):  # type: ignore[no-untyped-def]
    """Add the terms of one group to `results`, see `add_near`; returns whether any point may be near a site."""
    rows = len(points) - 1
    sites, widths = sums.groups[g, 0], sums.groups[g, 1]
    at, rough_at = sums.groups[g, 2], sums.groups[g, 3]
    rates = at + rows + rows * rows
    at = rates + widths
    if sites == 1:
        for n in range(0, BLOCK, LANES):
            add_near(results, n, points, rows, 0, sums.exact, rates, widths, at, sums.least)
        return True
    roughen(rough, points)
    least = np.float32(sums.least * (1 + 2 * FLOAT32_ROUNDING))
    found, filled = False, -(-d // CHAINS) * CHAINS
    for _ in range(-(-sites // PANEL)):
        for strip in range(0, BLOCK, STRIP):
            bits = near_bits(rough, strip, sums.rough, rough_at, d, least)
            found |= bits != 0
            while bits != 0:
                bit = lowest_bit(bits)
                bits &= bits - 1
                n, site = strip + bit % VECTORS * LANES, at + bit // VECTORS
                add_near(results, n, points, rows, filled, sums.exact, rates, widths, site, sums.least)
        at += (1 + filled + widths) * PANEL
        rough_at += (1 + d) * PANEL
    return found


@njit(inline="always")
def roughen(rough, points):  # type: ignore[no-untyped-def]
    """u in float32 and, in the last row, the upper bound of -|u|^2 / 2: see `upper_bound`."""
    d = len(rough) - 1
    for i in range(d):
        for n in range(BLOCK):
            rough[i, n] = points[i, n]
    for n in range(BLOCK):
        rough[d, n] = _upper_bound(points[len(points) - 1, n], d)
