"""Moments merge in any order and grouping, and do not cancel."""

import itertools
import json
import math

import numpy as np
import pytest
from scipy.special import logsumexp

from dkef.core.errors import DkefError
from dkef.core.streams import rng_for
from dkef.normaliser.moments import Moments


def some_parts() -> tuple[np.ndarray, list[Moments]]:
    log_r = rng_for("test", "moments").normal(size=5000) * 5 + 900  # exp overflows
    return log_r, [Moments.of_weights(part) for part in np.split(log_r, [10, 700, 701, 3000])]


def test_merged_moments_are_those_of_the_whole():
    log_r, parts = some_parts()
    merged, whole = Moments.merge(parts), Moments.of_weights(log_r)
    assert merged.count == whole.count == len(log_r)
    # a few roundings of numbers near 900 (1e-13 each)
    for key in ("log_mean", "log_m2", "log_max", "log_variance"):
        assert getattr(merged, key) == pytest.approx(getattr(whole, key), abs=2e-12)
    r = np.exp(log_r - 900)
    assert whole.log_variance == pytest.approx(1800 + math.log(r.var(ddof=1)), abs=2e-12)
    assert merged.log_mean == pytest.approx(logsumexp(log_r) - math.log(len(log_r)), abs=1e-12)
    assert merged.log_sum_squares == pytest.approx(logsumexp(2 * log_r), abs=2e-12)


def test_the_order_of_the_parts_does_not_matter_at_all():
    _, parts = some_parts()
    assert len({Moments.merge(order) for order in itertools.permutations(parts)}) == 1


def test_grouping_of_the_parts_matters_less_than_1e_12():
    _, parts = some_parts()
    flat = Moments.merge(parts)
    for cut in itertools.product(range(1, 5), range(1, 5)):
        low, high = min(cut), max(cut)
        groups = [group for group in (parts[:low], parts[low:high], parts[high:]) if group]
        nested = Moments.merge(Moments.merge(group) for group in groups)
        assert nested.log_mean == pytest.approx(flat.log_mean, abs=1e-12)
        assert nested.log_m2 == pytest.approx(flat.log_m2, abs=1e-12)


def test_a_relative_spread_of_1e_8_is_not_lost():
    r = 1 + 1e-8 * rng_for("test", "spread").standard_normal(10_000)
    merged = Moments.merge(Moments.of_weights(np.log(part)) for part in np.split(r, 10))
    # log and exp leave 1e-16, which is 1e-8 of the spread; sums of plain squares would be wrong by its whole size
    assert merged.log_variance == pytest.approx(math.log(r.var(ddof=1)), abs=1e-6)


def test_equal_weights_have_full_effective_size_and_no_variance():
    moments = Moments.merge([Moments.of_weights(np.full(10, 3.0))] * 3)
    assert moments.log_m2 == -math.inf
    assert moments.effective_sample_size == pytest.approx(30)
    assert moments.largest_share == pytest.approx(1 / 30)
    assert moments.stderr == 0


def test_one_dominant_weight_is_seen_as_such():
    moments = Moments.of_weights(np.r_[np.zeros(999), 20.0])
    assert moments.effective_sample_size == pytest.approx(1, abs=1e-4)
    assert moments.largest_share > 0.999
    assert moments.largest_square_share > 0.999


def test_records_survive_json_exactly():
    _, parts = some_parts()
    for moments in (*parts, Moments.of_weights(np.zeros(3))):
        assert Moments.of_record(json.loads(json.dumps(moments.record(), allow_nan=False)), "a test") == moments


def test_nothing_cannot_be_merged():
    with pytest.raises(DkefError, match="no samples"):
        Moments.merge([])
