"""Has a fit collapsed: does its mass lie in peaks that are narrower than the gaps between training rows?

Score matching sees log densities only where rows are. A kernel family with narrow kernels can pile up mass at training
rows, or at an inducing point between them, without paying for it. Draws of the model show it: they lie close to each
other, and perhaps close to the rows.
"""

from typing import Any

import numpy as np
from scipy.spatial import cKDTree
from scipy.special import softmax

from dkef.core.arrays import Array
from dkef.core.streams import rng_for
from dkef.normaliser.integrand import Integrand
from dkef.normaliser.proposals.defensive_mixture import DefensiveMixture, log_ratio

DRAWS, KEPT = 1 << 16, 1000
NEAR = 0.5  # of the median distance of a row to its nearest neighbour
COLLAPSED = 0.5  # nearest neighbours of draws at less than this share of the distance that rows have


def concentration(
    integrand: Integrand, mixture: DefensiveMixture, rows: Array, name: tuple[str | int, ...]
) -> dict[str, Any]:
    """What draws of p~ (by resampling those of g) say, with what the rows [n, d] say for comparison."""
    rng = rng_for("normalise concentration", *name)
    x = mixture.sample(DRAWS, rng)
    weights = softmax(log_ratio(integrand, mixture, x))
    chosen = np.unique(rng.choice(DRAWS, size=KEPT, p=weights))  # a draw that is taken twice says nothing new
    return of_draws(x[chosen], rows, rng)


def of_draws(draws: Array, rows: Array, rng: np.random.Generator) -> dict[str, Any]:
    """Distances among draws [m, d] and to rows [n, d], and the same among rows.

    mass_near_rows            share of draws within `distance` of a row
    rows_near_rows            share of rows within `distance` of another row: what the data themselves have
    nearest_neighbour_ratio   median distance of a draw to its nearest draw, over that of as many rows; near 1 for a
                              model that has spread its mass as the data are
    """
    among_rows = _nearest(rows)
    distance = NEAR * float(np.median(among_rows))
    as_many = rng.permutation(rows)[: len(draws)]
    some = draws[: len(as_many)]
    ratio = float(np.median(_nearest(some)) / np.median(_nearest(as_many))) if len(some) > 1 else 0.0
    return {
        "draws": len(draws),
        "distance": distance,
        "mass_near_rows": float((cKDTree(rows).query(draws)[0] < distance).mean()),
        "rows_near_rows": float((among_rows < distance).mean()),
        "nearest_neighbour_ratio": ratio,
        "collapsed": bool(ratio < COLLAPSED),
    }


def _nearest(x: Array) -> Array:
    """Distance of each point to the nearest other one."""
    distances: Array = cKDTree(x).query(x, k=2)[0][:, 1]
    return distances
