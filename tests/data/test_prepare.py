import dataclasses
import math
from collections import Counter

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dkef.config.schema.dataset import Dataset, Preprocessing
from dkef.core.errors import DkefError
from dkef.core.streams import rng_for
from dkef.data.copies import EXACT
from dkef.data.prepare import (
    dequantise,
    distinct_rows,
    drop_correlated,
    median_gaps,
    prepare,
    split_sizes,
)
from dkef.data.source import RawTable
from dkef.data.splits import Splits


def table_of(x: np.ndarray) -> RawTable:
    return RawTable(np.asarray(x, dtype=float), tuple(f"c{i}" for i in range(np.shape(x)[1])))


def correlated(n: int, d: int, key: int = 0) -> RawTable:
    """Columns of very different scale, mixed."""
    rng = rng_for("test", "rows", key)
    x = rng.standard_normal((n, d)) @ rng.standard_normal((d, d)) * 10.0 ** rng.integers(-3, 4, d)
    return table_of(x + 5)


def splits_of(table: RawTable, seed: int = 0, **steps: object) -> Splits:
    dataset = Dataset("made up", None, Preprocessing(**steps))  # type: ignore[arg-type]
    return prepare(table, dataset, lambda purpose: rng_for(purpose, "made up", seed))


@given(n=st.integers(40, 400), d=st.integers(1, 6), seed=st.integers(0, 99), whiten=st.booleans())
@settings(max_examples=30, deadline=None)
def test_splits_partition_the_rows(n: int, d: int, seed: int, whiten: bool) -> None:
    table = correlated(n, d, seed)
    splits = splits_of(table, seed, whiten=whiten)
    rows = np.concatenate([splits.train_rows, splits.valid_rows, splits.test_rows])
    np.testing.assert_array_equal(np.sort(rows), np.arange(n))
    values = np.concatenate([splits.train, splits.valid, splits.test])
    scale = np.abs(table.values).max(axis=0)
    # Whitening loses about eps times the condition number of W, below 1e7 here.
    error = np.abs(splits.whitening.invert(values) - table.values[rows]) / scale
    assert error.max() < 1e-7
    assert len(splits.test) == n // 10
    assert len(splits.valid) == (n - n // 10) // 10


@given(seed=st.integers(0, 1000))
@settings(max_examples=10, deadline=None)
def test_same_seed_same_digest_and_other_seed_other_split(seed: int) -> None:
    table = correlated(200, 3)
    first, again, other = (splits_of(table, s, dequantise_gaps=1.0) for s in (seed, seed, seed + 1))
    assert first.digest == again.digest
    np.testing.assert_array_equal(first.train, again.train)
    assert first.digest != other.digest
    assert set(first.test_rows) != set(other.test_rows)


def test_the_digest_knows_the_values_and_the_whitening() -> None:
    table = correlated(200, 3)
    changed = table_of(table.values + np.eye(200, 3) * 1e-9)
    digests = {
        splits_of(table).digest,
        splits_of(changed).digest,
        splits_of(table, whiten=False).digest,
        splits_of(table, whiten_on="all").digest,
        splits_of(table, valid_max=5).digest,
    }
    assert len(digests) == 5


def test_whitened_training_rows_have_mean_zero_and_unit_covariance() -> None:
    splits = splits_of(correlated(2000, 6))
    np.testing.assert_allclose(splits.train.mean(axis=0), 0, atol=1e-8)
    np.testing.assert_allclose(np.cov(splits.train, rowvar=False, bias=True), np.eye(6), atol=1e-8)


def test_whitening_on_train_does_not_see_test_rows_and_whitening_on_all_does() -> None:
    table = correlated(500, 3)
    spoilt = table.values.copy()
    spoilt[splits_of(table).test_rows] *= 3
    for where, equal in (("train", True), ("all", False)):
        before, after = (splits_of(table_of(x), whiten_on=where) for x in (table.values, spoilt))
        assert np.array_equal(before.train, after.train) == equal


def test_whitening_on_all_is_the_authors_recipe() -> None:
    """Mean over all rows, SVD of the first rows of the shuffled table about that mean, scaled by sqrt(n)."""
    table = correlated(500, 4)
    splits = splits_of(table, whiten_on="all", whiten_rows=100)
    shuffled = table.values[np.concatenate([splits.train_rows, splits.valid_rows, splits.test_rows])]
    centred = shuffled - shuffled.mean(axis=0)
    _, s, Vt = np.linalg.svd(centred[:100], full_matrices=True)
    theirs = centred @ Vt.T * (math.sqrt(100) / s)
    ours = np.concatenate([splits.train, splits.valid, splits.test])
    np.testing.assert_allclose(np.abs(ours), np.abs(theirs), rtol=1e-7, atol=1e-7)  # signs of axes are free


def test_whitening_uses_at_most_the_allowed_rows() -> None:
    table = correlated(500, 3)
    splits = splits_of(table, whiten_rows=50)
    head = splits.train[:50]
    np.testing.assert_allclose(head.T @ head / 50, np.eye(3), atol=1e-9)
    np.testing.assert_allclose(splits.train.mean(axis=0), 0, atol=1e-9)  # the mean is that of all training rows


@pytest.mark.parametrize(
    ("n", "steps", "expected"),
    [
        (1599, {}, (1296, 144, 159)),
        (4898, {}, (3969, 440, 489)),
        (5875, {}, (4760, 528, 587)),
        (36488, {}, (31840, 1000, 3648)),
        (525123, {"test_rows": 174900}, (349223, 1000, 174900)),
        (10000, {}, (8100, 900, 1000)),
        (10000, {"test_fraction": 0.01}, (8910, 990, 100)),
        (100, {"test_fraction": 0.29}, (64, 7, 29)),  # 0.29 * 100 is 28.999...96 in binary
    ],
)
def test_split_sizes_are_those_of_the_fact_sheet(n: int, steps: dict, expected: tuple[int, int, int]) -> None:
    assert split_sizes(n, 2, Preprocessing(**steps)) == expected


@pytest.mark.parametrize(("n", "steps"), [(9, {}), (12, {}), (30, {"test_rows": 30}), (30, {"test_rows": 60}), (1, {})])
def test_too_few_rows_are_one_sentence(n: int, steps: dict) -> None:
    with pytest.raises(DkefError, match=f"^{n} rows are too few: the split gives .* use more rows"):
        split_sizes(n, 11, Preprocessing(**steps))


def test_correlation_filter_deletes_the_first_of_each_crowd() -> None:
    rng = rng_for("test", "filter")
    a, b = rng.standard_normal((2, 1000))
    x = np.stack([a, b, -a + 1e-3 * rng.standard_normal(1000), a + 1e-3 * rng.standard_normal(1000)], axis=1)
    table = drop_correlated(table_of(x), 0.98)
    # c0 goes because of c2 and c3 (its sign does not save it), then c2 because of c3.
    assert table.columns == ("c1", "c3")
    np.testing.assert_array_equal(table.values, x[:, [1, 3]])
    assert [entry.name for entry in table.removed] == ["c0", "c2"]
    assert all("above 0.98" in entry.reason for entry in table.removed)


@given(key=st.integers(0, 50))
@settings(max_examples=10, deadline=None)
def test_row_order_does_not_matter_to_filter_gaps_and_whitening(key: int) -> None:
    rng = rng_for("test", "order", key)
    x = rng.standard_normal((300, 5)).round(1)
    x[:, 4] = x[:, 0] + 0.01 * rng.standard_normal(300)
    mixed = x[rng.permutation(300)]
    assert drop_correlated(table_of(x), 0.9).columns == drop_correlated(table_of(mixed), 0.9).columns
    np.testing.assert_array_equal(median_gaps(x), median_gaps(mixed))
    keep = [0, 1, 2, 3]
    both = [splits_of(table_of(part[:, keep]), whiten_on="all").whitening for part in (x, mixed)]
    # Sums in another order differ in the last bits; the convention for signs keeps the axes.
    np.testing.assert_allclose(both[0].W, both[1].W, rtol=1e-9, atol=1e-9)
    distinct = [part[distinct_rows(part)[0]] for part in (x[:, keep], mixed[:, keep])]
    np.testing.assert_array_equal(*(np.unique(part, axis=0) for part in distinct))


def test_median_gaps_ignore_float_dust() -> None:
    steps = np.arange(20) * 0.1
    dust = np.concatenate([steps, steps + 1e-16, steps * (1 + 2e-16), [5.0]])
    assert median_gaps(dust[:, None])[0] == pytest.approx(0.1, rel=1e-9)


@pytest.mark.parametrize(("support", "half_width"), [(1.0, 0.25), (2.0, 0.5)])
def test_dequantisation_noise_has_the_asked_support(support: float, half_width: float) -> None:
    x = rng_for("test", "grid").integers(0, 40, (5000, 2)) * np.array([0.5, 0.5])
    noise = dequantise(x, support, rng_for("test", "noise")) - x
    assert np.abs(noise).max() <= half_width * (1 + 1e-12)
    assert noise.max() > 0.99 * half_width
    assert noise.min() < -0.99 * half_width
    # Uniform: variance (2h)^2 / 12, known here to about 1 % (10,000 draws).
    assert noise.var() == pytest.approx((2 * half_width) ** 2 / 12, rel=0.05)
    assert len(np.unique(noise)) == noise.size  # every entry has its own draw


def test_dropping_duplicates_keeps_first_copies_and_says_how_many_went() -> None:
    x = rng_for("test", "copies").standard_normal((120, 2))
    doubled = np.concatenate([x, x[:30]])
    splits = splits_of(table_of(doubled), drop_duplicate_rows=True, whiten=False)
    rows = np.sort(np.concatenate([splits.train_rows, splits.valid_rows, splits.test_rows]))
    np.testing.assert_array_equal(rows, np.arange(120))
    assert splits.removed[-1][:2] == ("rows", "30")
    assert len(splits_of(table_of(doubled), whiten=False).test) == 15


@pytest.mark.parametrize(
    ("damage", "sentence"),
    [
        (lambda x: x.__setitem__((3, 1), np.nan), r"column 'c1' has a missing value \(NaN\) in row 4"),
        (lambda x: x.__setitem__((3, 1), np.inf), "column 'c1' has an infinite value in row 4"),
        (lambda x: x.__setitem__((slice(None), 2), 7.0), r"column 'c2' is constant \(7 in every row\); drop it"),
        (lambda x: x.__setitem__((slice(None), 2), x[:, 0]), "columns 'c0' and 'c2' are equal in every row"),
        (lambda x: x.__setitem__((slice(None), 2), x[:, 0] - 2 * x[:, 1]), "columns are linearly dependent"),
    ],
)
def test_bad_columns_are_one_sentence(damage, sentence: str) -> None:  # type: ignore[no-untyped-def]
    x = rng_for("test", "bad").standard_normal((100, 3))
    damage(x)
    with pytest.raises(DkefError, match=sentence):
        splits_of(table_of(x))


def test_whitening_needs_more_rows_than_columns() -> None:
    with pytest.raises(DkefError, match="whitening 5 columns needs more than 5 rows and has 4"):
        splits_of(correlated(100, 5), whiten_rows=4)


def test_columns_of_very_different_units_are_not_taken_for_dependent() -> None:
    x = rng_for("test", "units").standard_normal((500, 3)) * np.array([1e6, 1.0, 1e-4])
    splits = splits_of(table_of(x))
    np.testing.assert_allclose(np.cov(splits.train, rowvar=False, bias=True), np.eye(3), atol=1e-4)


def test_preprocessing_keeps_the_raw_table_as_it_was() -> None:
    table = correlated(200, 3)
    before = table.values.copy()
    splits_of(table, dequantise_gaps=1.0)
    np.testing.assert_array_equal(table.values, before)


def copied(n: int, copies: int, seed: int = 0) -> RawTable:
    """n distinct rows, some of them standing several times in the table, in random order."""
    rng = rng_for("test", "copied", seed)
    distinct = rng.standard_normal((n, 2))
    repeated = np.concatenate([distinct, distinct[rng.integers(0, n // 4, copies)]])
    return table_of(rng.permutation(repeated))


@given(seed=st.integers(0, 200), copies=st.integers(0, 150))
@settings(max_examples=30, deadline=None)
def test_split_by_distinct_rows_keeps_all_copies_of_a_row_on_one_side(seed: int, copies: int) -> None:
    table = copied(200, copies, seed)
    splits = splits_of(table, seed, split_by="distinct_rows", whiten=False)
    parts = [{row.tobytes() for row in part} for part in (splits.train, splits.valid, splits.test)]
    assert all(parts[i].isdisjoint(parts[j]) for i, j in ((0, 1), (0, 2), (1, 2)))
    rows = np.concatenate([splits.train_rows, splits.valid_rows, splits.test_rows])
    np.testing.assert_array_equal(np.sort(rows), np.arange(200 + copies))
    assert splits.test_copies is not None
    assert not (splits.test_copies == EXACT).any()
    largest = max(Counter(row.tobytes() for row in table.values).values())
    by_rows = split_sizes(200 + copies, 2, Preprocessing())
    assert 0 <= len(splits.test) - by_rows.test < largest


def test_rows_with_many_copies_go_to_the_test_part_as_often_as_others() -> None:
    # The order is of groups: in an order of rows, groups of many would come first and hence to the training part.
    table = table_of(np.concatenate([np.repeat([[0.0, 0.0]], 20, axis=0), rng_for("test", "one").random((80, 2))]))
    tested = [0 in splits_of(table, seed, split_by="distinct_rows").test_rows for seed in range(300)]
    # the test part holds 10 of 100 rows: of 81 groups the large one is the last or among the next 9 at about 1 in 9
    assert 0.05 < np.mean(tested) < 0.19


def test_split_by_source_keeps_the_order_and_the_test_rows_of_the_source() -> None:
    table = dataclasses.replace(correlated(100, 3), test_rows=30)
    splits = splits_of(table, split_by="source", valid_max=5)
    assert splits.train_rows.tolist() == list(range(65))
    assert splits.valid_rows.tolist() == list(range(65, 70))
    assert splits.test_rows.tolist() == list(range(70, 100))
    with pytest.raises(DkefError, match=r"split_by is source, but this source sets no test rows aside"):
        splits_of(correlated(100, 3), split_by="source")


def test_too_few_distinct_rows_are_one_sentence() -> None:
    table = table_of(np.repeat([[0.0, 0.0], [1.0, 2.0], [3.0, 1.0]], 40, axis=0))
    with pytest.raises(DkefError, match="the 3 distinct rows are too few for split_by: distinct_rows"):
        splits_of(table, split_by="distinct_rows")
