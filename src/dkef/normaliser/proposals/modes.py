"""Modes of a density and the normals that fit it there (Laplace's approximation).

A kernel density may hold most of its mass in peaks far narrower than the gaps between training rows: KEF-G on RedWine,
seed 0, has all but e^-15 of it in one peak of standard deviation 0.07, where rows lie 1.1 apart. Samples from normals
around the rows never hit such a peak; a search along the gradient finds it.
"""

import math
from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from dkef.core.arrays import Array

Field = Callable[[Array], tuple[Array, Array]]  # log p~ [n] and its gradient [n, d] at points [n, d]

CLIMB, NEWTON = 30, 8  # gradient steps from every start; Newton steps from the best of them
DIFFERENCE = 1e-3  # step of the finite differences, in units of the spread of the starts
NEGLIGIBLE = 15.0  # nats of mass below the largest mode
BATCH = 2000


class Modes(NamedTuple):
    """Modes, the largest mass first."""

    x: Array  # [k, d]
    log_mass: Array  # [k]: of the normal with the height and curvature of p~ at the mode
    factors: Array  # [k, d, d]: lower factors of the inverse curvature

    def first(self, count: int) -> "Modes":
        return Modes(self.x[:count], self.log_mass[:count], self.factors[:count])


def find_modes(field: Field, starts: Array, most: int) -> Modes:
    """At most so many modes, from starts [n, d] that are as far apart as the mass is."""
    spread = starts.std(axis=0) + np.finfo(float).tiny
    scaled = _scaled(field, spread)  # so that one step size and one difference suit all coordinates
    y, log_p, score = _climb(scaled, starts / spread)
    best = _distinct(y, log_p, np.full(len(y), 1e-3))[:most]
    y, log_p = _newton(scaled, y[best], log_p[best], score[best])
    values, vectors = np.linalg.eigh(-_hessian(scaled, y))
    values = np.maximum(values, 1.0)  # no wider than the starts themselves; a saddle gets a normal, too
    log_mass = log_p + 0.5 * y.shape[1] * math.log(2 * math.pi) - 0.5 * np.log(values).sum(axis=1)
    log_mass = log_mass + np.log(spread).sum()
    kept = _distinct(y, log_mass, 1 / np.sqrt(values[:, -1]))
    kept = kept[log_mass[kept] > log_mass.max() - NEGLIGIBLE]
    covariances = np.einsum("nij,nj,nkj->nik", vectors[kept], 1 / values[kept], vectors[kept])
    factors = spread[:, None] * np.linalg.cholesky(covariances)
    return Modes(spread * y[kept], log_mass[kept], factors)


def _scaled(field: Field, spread: Array) -> Field:
    """The field as a function of y = x / spread, a batch at a time."""

    def scaled(y: Array) -> tuple[Array, Array]:
        with np.errstate(over="ignore", invalid="ignore"):  # a step that is far too long overflows, and is not taken
            parts = [field(spread * y[start : start + BATCH]) for start in range(0, len(y), BATCH)]
        log_p, score = (np.concatenate(part) for part in zip(*parts, strict=True))
        return log_p, spread * score

    return scaled


def _climb(field: Field, y: Array) -> tuple[Array, Array, Array]:
    """Gradient ascent, every point with a step of its own that grows while it helps."""
    log_p, score = field(y)
    step = 0.1 / (np.linalg.norm(score, axis=1) + 1.0)
    for _ in range(CLIMB):
        new = y + step[:, None] * score
        new_log_p, new_score = field(new)
        higher = new_log_p > log_p
        y, score = np.where(higher[:, None], new, y), np.where(higher[:, None], new_score, score)
        log_p = np.where(higher, new_log_p, log_p)
        step = np.where(higher, 1.6 * step, 0.3 * step)
    return y, log_p, score


def _newton(field: Field, y: Array, log_p: Array, score: Array) -> tuple[Array, Array]:
    """Newton's method on the magnitudes of the curvatures, damped where it leads downhill."""
    damping = np.full(len(y), 1e-3)
    for _ in range(NEWTON):
        values, vectors = np.linalg.eigh(-_hessian(field, y))
        along = np.einsum("nij,ni->nj", vectors, score)
        move = along / (np.abs(values) + damping[:, None] * np.abs(values).max(axis=1, keepdims=True))
        new = y + np.einsum("nij,nj->ni", vectors, move)
        new_log_p, new_score = field(new)
        higher = new_log_p > log_p
        y, score = np.where(higher[:, None], new, y), np.where(higher[:, None], new_score, score)
        log_p = np.where(higher, new_log_p, log_p)
        damping = np.where(higher, 0.1 * damping, 10 * damping + 1e-3)
    return y, log_p


def _hessian(field: Field, y: Array) -> Array:
    """Second derivatives [n, d, d] by central differences of the score."""
    n, d = y.shape
    steps = DIFFERENCE * np.eye(d)
    above, below = (field((y[:, None] + sign * steps).reshape(-1, d))[1].reshape(n, d, d) for sign in (1, -1))
    hessian = (above - below) / (2 * DIFFERENCE)
    symmetric: Array = 0.5 * (hessian + hessian.transpose(0, 2, 1))
    return symmetric


def _distinct(y: Array, log_height: Array, reach: Array) -> Array:
    """Indices of points, the highest first, that have no higher one within its reach."""
    kept: list[int] = []
    for i in np.argsort(-log_height, kind="stable"):
        apart = np.linalg.norm(y[kept] - y[i], axis=1)
        if np.isfinite(log_height[i]) and (apart > reach[kept]).all():
            kept.append(int(i))
    return np.array(kept, dtype=int)
