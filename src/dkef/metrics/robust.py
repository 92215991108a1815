"""Summaries of row-wise values that one row cannot decide, beside their mean."""

import math

import numpy as np

from dkef.core.arrays import Array
from dkef.metrics.pointwise import Estimate, require_finite


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
