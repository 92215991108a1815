"""Medians of a few runs, with statements that are exact for any distribution of the runs."""

from dataclasses import dataclass

import numpy as np
from scipy.stats import binom, rankdata

from dkef.core.arrays import Array


@dataclass(frozen=True)
class MedianInterval:
    """A sample median and the order statistics around it.

    `coverage` is the probability that the interval holds the median of any continuous distribution. Few values
    cannot reach the coverage asked for: five give at most 0.9375, and one gives no interval.
    """

    median: float | None
    low: float | None
    high: float | None
    coverage: float | None


def median_interval(values: Array, confidence: float = 0.95) -> MedianInterval:
    """Median of values [n] and the narrowest symmetric pair of order statistics with at least this coverage.

    The pair (x_(k), x_(n+1-k)) misses the median when at most k - 1 of n fair coins show the same face. Where even
    the extremes do not reach `confidence`, the extremes are given with the coverage that they have.
    """
    n = len(values)
    if n == 0:
        return MedianInterval(None, None, None, None)
    ordered = np.sort(values)
    median = float(np.median(ordered))
    if n == 1:
        return MedianInterval(median, None, None, None)
    coverages = 1 - 2 * binom.cdf(np.arange((n + 1) // 2), n, 0.5)  # for k = 1, 2, ...
    k = max(1, int((coverages >= confidence).sum()))
    return MedianInterval(median, float(ordered[k - 1]), float(ordered[n - k]), float(coverages[k - 1]))


def signed_rank_p_value(differences: Array) -> float:
    """Two-sided p-value of Wilcoxon's signed-rank test, exact with ties too; differences [n] must not be zero.

    Under "symmetric about 0" every sign is a fair coin given the sizes. The distribution of the sum of positive
    ranks is built rank by rank; twice the mid-ranks are whole numbers.
    """
    ranks = np.rint(2 * rankdata(np.abs(differences))).astype(int)
    weights = np.ones(1)
    for rank in ranks:
        longer = np.zeros(len(weights) + rank)
        longer[: len(weights)] += 0.5 * weights
        longer[rank:] += 0.5 * weights
        weights = longer
    positive = int(ranks[differences > 0].sum())
    tail = min(weights[: positive + 1].sum(), weights[positive:].sum())
    return min(1.0, 2 * float(tail))
