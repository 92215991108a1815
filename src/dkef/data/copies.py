"""Rows of one split that also stand, exactly or nearly, among the training rows.

A model that puts a spike on a training row is rewarded at its copies. So copies are looked for in the raw values,
before dequantisation makes them different.
"""

from typing import NamedTuple

import numpy as np

from dkef.core.arrays import Array

NONE, NEAR, EXACT = 0, 1, 2
NEAR_FRACTION = 0.01  # of the usual distance between neighbours
BY_CHANCE = 1e-4  # on the line a hundredth of that distance is met too often: allow for so large a share of rows
NEIGHBOUR_ROWS = 10_000  # at most so many training rows determine the usual distance
ASKED_ROWS = 1000


def copies_among(train: Array, rows: Array) -> Array:
    """For each of `rows` [n, d]: EXACT or NEAR where a training row [m, d] is a copy of it, else NONE; int8 [n].

    Near is closer than a hundredth of the usual distance between a training row and its nearest other one, with
    every column divided by its standard deviation.
    """
    from scipy.spatial import cKDTree  # a quarter of a second, for which the readers of this module have no use

    kinds = np.full(len(rows), NONE, dtype=np.int8)
    known = set(_keys(train))
    kinds[[key in known for key in _keys(rows)]] = EXACT
    scale = train.std(axis=0)
    scale[scale == 0] = 1.0
    points = np.unique(train, axis=0) / scale
    radius = near_distance(points)
    if radius > 0:
        asked = np.flatnonzero(kinds == NONE)
        distance, _ = cKDTree(points).query(rows[asked] / scale, distance_upper_bound=radius)
        kinds[asked[np.isfinite(distance)]] = NEAR
    return kinds


def near_distance(points: Array) -> float:
    """Below which two rows count as near copies, from distinct training rows [m, d] in units of their spread."""
    from scipy.spatial import cKDTree

    if len(points) < 2:
        return 0.0
    # Evenly spaced: the points are sorted, so that the first ones would be a corner of the space.
    chosen = points[np.linspace(0, len(points) - 1, min(len(points), NEIGHBOUR_ROWS)).astype(int)]
    asked = chosen[np.linspace(0, len(chosen) - 1, min(len(chosen), ASKED_ROWS)).astype(int)]
    distance, _ = cKDTree(chosen).query(asked, k=2)
    d = points.shape[1]
    return float(min(NEAR_FRACTION, BY_CHANCE ** (1 / d)) * np.median(distance[:, 1]))


class Copies(NamedTuple):
    """How many rows are copies of a training row, before any noise was added."""

    exact: int
    near: int


def count_copies(kinds: Array | None) -> Copies:
    """Numbers of exact and near copies among rows of these kinds [n]."""
    found = np.zeros(0) if kinds is None else kinds
    return Copies(int((found == EXACT).sum()), int((found == NEAR).sum()))


def groups_of_copies(rows: Array) -> Array:
    """The number of the distinct row that each row [n, d] is, counted by first occurrence; [n]."""
    numbers: dict[bytes, int] = {}
    return np.array([numbers.setdefault(key, len(numbers)) for key in _keys(rows)], dtype=np.int64)


def _keys(rows: Array) -> list[bytes]:
    """Bytes of each row, equal exactly for equal numbers: adding 0 turns -0 into 0."""
    return [row.tobytes() for row in np.ascontiguousarray(rows, dtype=np.float64) + 0.0]
