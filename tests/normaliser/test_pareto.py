"""The tail index against draws of known shape, SciPy's likelihood, and laws without tails."""

import math

import numpy as np
import pytest
from scipy import stats

from dkef.normaliser.moments import Moments
from dkef.normaliser.pareto import TAIL, pareto_k_hat, tail_size


def largest_of(r: np.ndarray) -> np.ndarray:
    return np.sort(np.log(r))[::-1][: TAIL + 1]


@pytest.mark.parametrize("k", [0.3, 0.7, 1.2])
def test_the_shape_of_pareto_draws_is_found(k):
    """Standard error of one estimate is (1 + k) / sqrt(256); the mean of 40 seeds is held to 4 of its errors."""
    found = [
        pareto_k_hat(largest_of(stats.genpareto.rvs(k, size=20_000, random_state=seed) + 1), 20_000)
        for seed in range(40)
    ]
    assert np.mean(found) == pytest.approx(k, abs=4 * (1 + k) / 16 / math.sqrt(40) + 0.02)  # 0.02: grid and prior


def test_it_agrees_with_the_maximum_of_the_likelihood():
    r = stats.genpareto.rvs(0.5, size=20_000, random_state=1) + 1
    largest = largest_of(r)
    excess = np.exp(largest[:TAIL]) - np.exp(largest[TAIL])
    shape, _, _ = stats.genpareto.fit(excess, floc=0)
    assert pareto_k_hat(largest, 20_000) == pytest.approx(shape, abs=0.03)  # a tenth of a standard error apart or so


def test_bounded_weights_have_no_tail():
    assert pareto_k_hat(largest_of(np.random.default_rng(0).uniform(1, 2, 20_000)), 20_000) < 0


def test_the_scale_of_the_weights_does_not_matter():
    r = stats.genpareto.rvs(0.5, size=20_000, random_state=2) + 1
    assert pareto_k_hat(largest_of(r) + 300, 20_000) == pytest.approx(pareto_k_hat(largest_of(r), 20_000), abs=1e-9)


def test_too_few_or_equal_weights_have_no_index():
    assert pareto_k_hat(np.zeros(10), 10) is None
    assert pareto_k_hat(np.zeros(TAIL + 1), 20_000) is None
    assert tail_size(50) == 10


def test_weights_too_far_apart_for_floating_point_still_have_a_finite_index():
    # Pareto weights u^-k have logs of mean k above any threshold; 256 of them tell k to k / 16.
    log_r = 200 * np.random.default_rng(4).exponential(size=20_000)
    largest = np.sort(log_r)[::-1][: TAIL + 1]
    assert pareto_k_hat(largest, 20_000) == pytest.approx(200, abs=4 * 200 / 16)


def test_merged_moments_keep_the_largest_of_all_parts():
    log_r = np.random.default_rng(3).normal(0, 2, 5000)
    parts = [Moments.of_weights(part) for part in np.array_split(log_r, 7)]
    assert Moments.merge(parts).largest == Moments.of_weights(log_r).largest == tuple(np.sort(log_r)[::-1][: TAIL + 1])
    assert Moments.of_record(Moments.merge(parts).record(), "a test") == Moments.merge(parts)
