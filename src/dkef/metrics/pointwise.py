"""Metrics that are means over the test points, and summaries that one point cannot decide beside them.

None hides a value that is not finite.
"""

import math
from dataclasses import dataclass

import numpy as np

from dkef.core.arrays import Array
from dkef.core.errors import DkefError

# The variances of the discrepancies are fourth powers of scores: what lies beyond this would overflow in them, and
# counts as not finite from the start.
LARGEST = 1e60


class NotFiniteError(DkefError):
    """Some values are NaN, infinite or beyond all use; the message counts them."""


@dataclass(frozen=True)
class Estimate:
    """A value, its standard error where there is one, and "ok" or the doubt that comes with it."""

    value: float
    stderr: float | None = None
    status: str = "ok"


def require_finite(what: str, values: Array) -> None:
    """Stop with a count unless every row is finite: a mean over the rest would be a mean over the easy points."""
    usable = np.abs(values) <= LARGEST  # NaN compares as False
    if bad := int((~usable.reshape(len(values), -1).all(axis=1)).sum()):
        raise NotFiniteError(f"{bad} of {len(values)} {what} not finite")


def mean_over_points(what: str, values: Array) -> Estimate:
    """Mean of one value a test point [n], with the standard error of independent points."""
    require_finite(what, values)
    n = len(values)
    return Estimate(float(values.mean()), float(values.std(ddof=1)) / math.sqrt(n) if n > 1 else None)


def median_over_points(what: str, values: Array) -> Estimate:
    """Median of one value a test point [n]; the error is half the interval of order statistics that covers 68 %.

    The number of values below the true median is binomial with standard deviation sqrt(n) / 2.
    """
    require_finite(what, values)
    n, ordered = len(values), np.sort(values)
    middle, reach = (n - 1) / 2, math.sqrt(n) / 2
    low, high = math.floor(middle - reach), math.ceil(middle + reach)
    error = float(ordered[high] - ordered[low]) / 2 if low >= 0 and high < n else None
    return Estimate(float(np.median(values)), error)


def largest_share(what: str, values: Array) -> Estimate:
    """Share of the single largest row in the sum of magnitudes [n]: near 1 where one row decides the mean."""
    require_finite(what, values)
    total = float(np.abs(values).sum())
    return Estimate(float(np.abs(values).max()) / total if total > 0 else 0.0)


def row_score_losses(score: Array, curvature: Array) -> Array:
    """sum_d [curvature_d + score_d^2 / 2] of each row; both arrays are [n, d]."""
    require_finite("scores", score)
    require_finite("curvatures", curvature)
    losses: Array = (curvature + 0.5 * score**2).sum(axis=1)
    return losses


def score_loss(score: Array, curvature: Array) -> Estimate:
    """The score-matching loss J, the mean over rows; both arrays are [n, d]."""
    return mean_over_points("score losses", row_score_losses(score, curvature))


def row_squared_distances(score: Array, true_score: Array) -> Array:
    """Half the squared distance between a model's score and the true one at each row, both [n, d]."""
    require_finite("scores", score)
    require_finite("true scores", true_score)
    distances: Array = 0.5 * ((score - true_score) ** 2).sum(axis=1)
    return distances


def fisher_divergence(score: Array, true_score: Array) -> Estimate:
    """Half the mean squared distance between a model's score and the true one, both [n, d].

    The factor one half is that of the paper's definition; the authors' own helper leaves it out.
    """
    return mean_over_points("squared distances", row_squared_distances(score, true_score))


def log_likelihood(log_density: Array, log_z: Estimate | None = None, log_det: float = 0.0) -> Estimate:
    """Mean of log density - log Z + log_det over the test points [n].

    log_z: the normaliser's estimate, None for a normalised model; its error is independent of the test points', and
    a doubt about it is one about the likelihood.
    log_det: log |det W| turns a likelihood of whitened rows into one of raw rows.
    """
    mean = mean_over_points("log densities", log_density)
    log_z = log_z or Estimate(0.0, 0.0)
    errors = [error for error in (mean.stderr, log_z.stderr) if error is not None]
    stderr = math.hypot(*errors) if len(errors) == 2 else None
    return Estimate(mean.value - log_z.value + log_det, stderr, log_z.status)
