"""Robust summaries of row-wise values."""

import numpy as np
import pytest
from scipy.stats import binom

from dkef.core.streams import rng_for
from dkef.metrics.pointwise import NotFiniteError, largest_share, median_over_points


def test_one_row_moves_the_mean_and_not_the_median() -> None:
    values = rng_for("robust").normal(size=159) - 10
    spoilt = np.concatenate([values[:-1], [1e6]])
    assert abs(median_over_points("x", spoilt).value - median_over_points("x", values).value) < 0.1
    assert largest_share("x", spoilt).value > 0.99
    assert largest_share("x", values).value < 0.02


def test_the_error_of_the_median_is_the_spread_of_medians() -> None:
    draws = rng_for("robust", "spread").exponential(size=(2000, 400))
    stated = np.mean([median_over_points("x", row).stderr for row in draws])
    # the interval is rounded outwards by up to one order statistic to each side: 10 % of sqrt(400) / 2 = 10
    assert stated == pytest.approx(np.median(draws, axis=1).std(), rel=0.15)


def test_the_interval_of_the_median_covers_two_thirds() -> None:
    n = 159
    low, high = np.floor(79 - np.sqrt(n) / 2), np.ceil(79 + np.sqrt(n) / 2)
    # P(x_(low) < median < x_(high)): the number of values below it lies between
    assert binom.cdf(high, n, 0.5) - binom.cdf(low, n, 0.5) == pytest.approx(0.68, abs=0.06)


def test_equal_rows_share_alike_and_zeros_have_no_largest() -> None:
    assert largest_share("x", np.full(4, -3.0)).value == pytest.approx(0.25)
    assert largest_share("x", np.zeros(4)).value == 0.0


def test_few_rows_have_a_median_without_error() -> None:
    found = median_over_points("x", np.array([3.0, 1.0]))
    assert (found.value, found.stderr) == (2.0, None)


def test_values_that_are_no_numbers_are_counted() -> None:
    for summary in (median_over_points, largest_share):
        with pytest.raises(NotFiniteError, match="1 of 3 losses not finite"):
            summary("losses", np.array([1.0, np.nan, 2.0]))
