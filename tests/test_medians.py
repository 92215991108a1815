"""Order-statistic intervals and the signed-rank test against enumeration, simulation and SciPy."""

import itertools
import math

import numpy as np
import pytest
from scipy.stats import wilcoxon

from dkef.core.streams import rng_for
from dkef.metrics.medians import median_interval, signed_rank_p_value


def test_the_interval_of_fifteen_runs_is_the_fourth_lowest_to_the_fourth_highest() -> None:
    found = median_interval(rng_for("test", "shuffle").permutation(15).astype(float))
    assert (found.median, found.low, found.high) == (7.0, 3.0, 11.0)
    misses = 2 * sum(math.comb(15, i) for i in range(4)) / 2**15  # at most 3 of 15 on one side
    assert found.coverage == pytest.approx(1 - misses, abs=1e-15)
    assert found.coverage is not None
    assert found.coverage >= 0.95 > 1 - 2 * sum(math.comb(15, i) for i in range(5)) / 2**15  # the next is too narrow


@pytest.mark.parametrize("n", [2, 5, 6, 9, 15])
def test_the_claimed_coverage_is_the_share_of_samples_that_hold_the_median(n: int) -> None:
    trials = 4000
    samples = rng_for("test", "coverage", n).exponential(size=(trials, n))  # skewed; its median is log 2
    found = [median_interval(sample) for sample in samples]
    held = np.mean([f.low <= math.log(2) <= f.high for f in found if f.low is not None and f.high is not None])
    coverage = found[0].coverage
    assert coverage is not None
    # Four standard deviations of a share of 4000 trials.
    assert abs(held - coverage) < 4 * math.sqrt(coverage * (1 - coverage) / trials)


def test_few_runs_get_the_extremes_and_the_coverage_these_have() -> None:
    found = median_interval(np.array([3.0, 1.0, 2.0]))
    assert (found.low, found.median, found.high, found.coverage) == (1.0, 2.0, 3.0, 0.75)


def test_one_run_has_a_median_and_no_interval_and_none_has_neither() -> None:
    one, none = median_interval(np.array([3.0])), median_interval(np.array([]))
    assert (one.median, one.low, one.high, one.coverage) == (3.0, None, None, None)
    assert (none.median, none.low, none.high, none.coverage) == (None, None, None, None)


@pytest.mark.parametrize("n", [6, 7, 15, 30])
def test_the_signed_rank_p_value_equals_scipy_where_there_are_no_ties(n: int) -> None:
    for trial in range(5):
        differences = rng_for("test", "wilcoxon", n, trial).standard_normal(n) + 0.3
        assert signed_rank_p_value(differences) == pytest.approx(
            wilcoxon(differences, method="exact").pvalue, rel=1e-10
        )


def test_the_signed_rank_p_value_with_ties_equals_the_enumeration_of_all_signs() -> None:
    differences = np.array([1.0, -1.0, 2.0, 2.0, 2.0, -3.0, 4.0])
    ranks = np.array([1.5, 1.5, 4.0, 4.0, 4.0, 6.0, 7.0])
    observed = ranks[differences > 0].sum()
    sums = [ranks[list(signs)].sum() for signs in itertools.product([False, True], repeat=7)]
    low, high = np.mean(np.array(sums) <= observed), np.mean(np.array(sums) >= observed)
    assert signed_rank_p_value(differences) == pytest.approx(min(1.0, 2 * min(low, high)), abs=1e-14)


def test_the_smallest_p_value_of_n_differences_is_two_to_the_one_minus_n() -> None:
    for n in (5, 6, 15):
        assert signed_rank_p_value(np.arange(1.0, n + 1)) == pytest.approx(2.0 ** (1 - n), rel=1e-12)
        assert signed_rank_p_value(-np.arange(1.0, n + 1)) == pytest.approx(2.0 ** (1 - n), rel=1e-12)
