"""Balls around the inducing features of a kernel: a sample outside all of them has no kernel value that matters.

Most samples of a trained q0 are far, in features, from all inducing points of the narrower kernels, and products with
those points are most of what a sample costs. A few balls say so for a sixteenth of that price.
"""

import math

import numpy as np

from dkef.core.arrays import Array

BALLS = 18  # of 300 inducing points; with fewer more samples pass, with more the balls themselves cost too much
NEGLIGIBLE_BITS = 24  # terms that sum to less than 2^-24 are left out of f: less than float32 leaves of the others
WORTH = 0.9  # of the work without balls; samples that pass are copied once more


def reach(alpha: Array) -> float:
    """T such that sum_m |alpha_m| 2^-T is negligible."""
    return max(0.0, NEGLIGIBLE_BITS + math.log2(max(float(np.abs(alpha).sum()), 1e-300)))


def balls(z: Array, beyond: float) -> tuple[Array, Array]:
    """Centres c [BALLS, w] and limits b [BALLS]: |phi - z_m|^2 / 2 >= beyond for all m where |phi - c_k|^2 / 2 > b_k.

    z [m, w] is cut into cells around points that are chosen one by one, each the farthest from those before it.
    """
    middle = int(((z - z.mean(axis=0)) ** 2).sum(axis=1).argmin())
    cell, distance = np.zeros(len(z), dtype=np.int64), ((z - z[middle]) ** 2).sum(axis=1)
    for k in range(1, BALLS):
        other = ((z - z[distance.argmax()]) ** 2).sum(axis=1)
        cell[other < distance] = k
        distance = np.minimum(distance, other)
    # Where points coincide some cells have none; the first ball, which always has one, stands for theirs.
    members = [z[cell == k] if (cell == k).any() else z[cell == 0] for k in range(BALLS)]
    centres = np.stack([points.mean(axis=0) for points in members])
    radii = [math.sqrt(((points - c) ** 2).sum(axis=1).max()) for points, c in zip(members, centres, strict=True)]
    return centres, (np.array(radii) + math.sqrt(2 * beyond)) ** 2 / 2


def share_within(phi: Array, centres: Array, limits: Array) -> float:
    """How many of the samples with features phi [n, w] are in some ball."""
    squares = (phi**2).sum(axis=1)[:, None] - 2 * phi @ centres.T + (centres**2).sum(axis=1)
    return float((squares / 2 <= limits).any(axis=1).mean())


def tests(z: Array, alpha: Array, phi: Array) -> Array | None:
    """Weights [1 + w + 1, BALLS] of a layer on phi and -|phi|^2 / 2 whose outputs are all negative for a far sample.

    None where looking is not worth it: too few points z [m, w], or too many of the samples phi [n, w] are near.
    """
    if len(z) < 2 * BALLS:
        return None
    centres, limits = balls(z, reach(alpha))
    if share_within(phi, centres, limits) + BALLS / len(z) > WORTH:
        return None
    # in a ball: -|phi - c|^2 / 2 + limit >= 0
    constants = limits - (centres**2).sum(axis=1) / 2
    return np.concatenate([constants[None], centres.T, np.ones((1, BALLS))])
