"""Integrals of a density on the line or in the plane by Gauss-Legendre rules, each with an estimate of its error.

The space is cut into panels: those of a box around the origin, and of as many shells around it as hold mass, each shell
twice as wide as the one before and with panels twice as wide. Every integral is computed twice, the second time with
panels of half the width. Its error is the difference of the two plus what the shells that were left out may hold.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from dkef.core.arrays import Array, in_blocks, log_sum_exp
from dkef.core.errors import DkefError
from dkef.data.synthetic.distributions import Distribution
from dkef.metrics.pointwise import require_finite

LogDensity = Callable[[Array], Array]  # [n, d] to [n]
Score = Callable[[Array], Array]  # [n, d] to [n, d]

# A power of two, so that the edges of Square (3) and of Cosine (4) are edges of panels.
HALF_WIDTH = 16.0
PANELS = {1: 256, 2: 32}  # along a side of the box, and of each shell
ORDER = 8  # nodes of a panel along each coordinate: exact for polynomials of degree 15
SHELLS = 8  # the last one ends at 16 * 2^8 = 4096
LOOK_ORDER = 2  # nodes of a panel when levels are only searched for mass
# A shell is left out if its share of the model's mass is below the first of these, and stands in the error, and if its
# share of the truth's is below the second: scores may differ wildly where it is small.
NEGLIGIBLE = math.log(1e-6), math.log(1e-9)
# Where the true density is this much below its maximum it has no part in expectations: exp(-45) = 3e-20.
NO_MASS = 45.0
BLOCK = 50_000  # points given to a model at once


class Integral(NamedTuple):
    """A value and an estimate of how far it may be off."""

    value: float
    error: float


class Nodes(NamedTuple):
    """Points [n, d] and the logarithms of their weights [n]."""

    x: Array
    log_w: Array


class Sums(NamedTuple):
    """What one rule gives."""

    log_z: float
    points: int
    true_mass: float | None = None  # of the true density: 1, unless the rule is too coarse for it
    kl: float | None = None  # KL(p_true || p~ / Z)
    fisher: float | None = None  # half the mean squared distance of the scores under p_true


@dataclass(frozen=True)
class Quadrature:
    """Integrals of one model; those that need the true density are None where it is not known."""

    log_z: Integral
    true_mass: Integral | None
    kl: Integral | None
    fisher: Integral | None
    reach: float  # every |x_d| up to here was integrated over
    points: int  # at which the density was evaluated
    edge: bool  # whether the outermost shell still holds mass: the integrals may then miss some


def panel_nodes(low: Array, width: float, order: int) -> Nodes:
    """Gauss-Legendre nodes of the panels with these lower corners [k, d]; order^d of them in each."""
    d = low.shape[1]
    t, w = np.polynomial.legendre.leggauss(order)
    offsets = np.stack(np.meshgrid(*[0.5 * width * (t + 1)] * d, indexing="ij"), axis=-1).reshape(-1, d)
    weights = np.stack(np.meshgrid(*[0.5 * width * w] * d, indexing="ij"), axis=-1).reshape(-1, d).prod(axis=1)
    x = (low[:, None, :] + offsets).reshape(-1, d)
    return Nodes(x, np.tile(np.log(weights), len(low)))


def shell(level: int, d: int, split: int = 1, order: int = ORDER) -> Nodes:
    """Nodes of the box (level 0) or of the shell between half widths 16 * 2^(level - 1) and 16 * 2^level.

    split: into how many parts every panel is cut along each coordinate.
    """
    n = PANELS[d] * split
    half = HALF_WIDTH * 2.0**level
    width = 2 * half / n
    index = np.stack(np.meshgrid(*[np.arange(n)] * d, indexing="ij"), axis=-1).reshape(-1, d)
    if level:
        inner = ((index >= n // 4) & (index < 3 * n // 4)).all(axis=1)
        index = index[~inner]
    return panel_nodes(index * width - half, width, order)


def integrate(
    log_density: LogDensity, d: int, truth: Distribution | None = None, score: Score | None = None
) -> Quadrature:
    """log Z of a density on R^d, d = 1 or 2; with the true density KL, and with the model's score Fisher divergence.

    Raises NotFiniteError where the log density is NaN or +inf, or, at points that the truth can draw, -inf.
    """
    if d not in PANELS:
        raise DkefError(f"quadrature in {d} dimensions was asked for; it is possible in 1 and 2")
    levels, left_out, looked_at = levels_with_mass(log_density, d, truth)
    coarse, fine = (_sums([shell(level, d, split) for level in levels], log_density, truth, score) for split in (1, 2))

    def both(name: str, missing: float) -> Integral | None:
        value, other = getattr(fine, name), getattr(coarse, name)
        return None if value is None else Integral(value, abs(value - other) + missing)

    # A share e of mass left out lowers log Z, and with it KL, by e; the truth's own is negligible.
    share = math.exp(left_out - fine.log_z)
    log_z = both("log_z", share)
    assert log_z is not None
    return Quadrature(
        log_z=log_z,
        true_mass=both("true_mass", 0.0),
        kl=both("kl", share),
        fisher=both("fisher", 0.0),
        reach=HALF_WIDTH * 2.0 ** max(levels),
        points=coarse.points + fine.points + looked_at,
        edge=max(levels) == SHELLS,
    )


def levels_with_mass(log_density: LogDensity, d: int, truth: Distribution | None) -> tuple[list[int], float, int]:
    """Levels worth integrating over, log of the mass that a coarse look gives the others, and the points of that look.

    Modes far away need not be connected with the box by mass, so all shells are looked at. A mode is missed only if it
    is narrower than half a panel: in the plane 0.5 in the box and 2^level / 2 in a shell, on the line an eighth of it.
    """
    densities = [log_density] if truth is None else [log_density, truth.log_density]
    masses, points = [], 0
    for level in range(SHELLS + 1):
        nodes = shell(level, d, order=LOOK_ORDER)
        with np.errstate(all="ignore"):  # so far out that a density may overflow
            masses.append([_log_sum(_in_blocks(density, nodes.x) + nodes.log_w) for density in densities])
        points += len(nodes.x)
    found = np.array(masses)  # [levels, densities]
    kept = (found > log_sum_exp(found, axis=0) + NEGLIGIBLE[: len(densities)]).any(axis=1)
    kept[0] = True
    left_out = found[~kept, 0]
    return [int(level) for level in np.flatnonzero(kept)], _log_sum(left_out), points


def box_share(log_density: LogDensity, low: Array, high: Array, log_z: Integral) -> Integral:
    """Share of the mass Z in the box between two corners [d], whose edges are edges of panels."""

    def log_mass(panels: int) -> float:
        width = (high - low) / panels
        index = np.stack(np.meshgrid(*[np.arange(panels)] * len(low), indexing="ij"), axis=-1).reshape(-1, len(low))
        unit = panel_nodes(index.astype(np.float64), 1.0, ORDER)
        log_p = _in_blocks(log_density, low + unit.x * width)
        require_finite("log densities of the box", log_p)
        return float(log_sum_exp(log_p + unit.log_w)) + float(np.log(width).sum())

    coarse, fine = (math.exp(log_mass(panels) - log_z.value) for panels in (16, 32))
    return Integral(fine, abs(fine - coarse) + fine * log_z.error)


def _sums(parts: list[Nodes], log_density: LogDensity, truth: Distribution | None, score: Score | None) -> Sums:
    x = np.concatenate([part.x for part in parts])
    log_w = np.concatenate([part.log_w for part in parts])
    log_p = _in_blocks(log_density, x)
    require_finite("log densities of the quadrature", np.where(np.isneginf(log_p), 0.0, log_p))
    log_z = float(log_sum_exp(log_p + log_w))
    if truth is None:
        return Sums(log_z, len(x))
    log_t = truth.log_density(x)
    drawn = log_t > log_t.max() - NO_MASS
    weight = np.exp(log_t[drawn] + log_w[drawn])
    require_finite("log densities where the truth has mass", log_p[drawn])
    kl = float(weight @ (log_t[drawn] - log_p[drawn] + log_z))
    fisher = None
    if score is not None:
        apart = _in_blocks(score, x[drawn]) - truth.score(x[drawn])
        require_finite("scores where the truth has mass", apart)
        fisher = 0.5 * float(weight @ (apart**2).sum(axis=1))
    return Sums(log_z, len(x), float(weight.sum()), kl, fisher)


def _in_blocks(function: Callable[[Array], Array], x: Array) -> Array:
    return in_blocks(lambda rows: [function(rows)], x, BLOCK)[0]


def _log_sum(log_terms: Array) -> float:
    """log of the sum; terms that are not numbers count as nothing."""
    usable = log_terms[np.isfinite(log_terms)]
    return float(log_sum_exp(usable)) if len(usable) else -math.inf
