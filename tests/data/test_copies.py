"""Copies of training rows in other splits, against naive loops on small tables."""

import numpy as np
import pytest

from dkef.core.streams import rng_for
from dkef.data.copies import EXACT, NEAR, NONE, copies_among, groups_of_copies, near_distance


def test_exact_and_near_copies_are_told_apart() -> None:
    train = rng_for("copies").normal(size=(200, 3)) * [1.0, 10.0, 100.0]
    radius = near_distance(train / train.std(axis=0))
    step = 0.5 * radius * train.std(axis=0)[2]
    rows = np.stack([train[5], train[6] + [0, 0, step], train[7] + [0, 0, 3 * step], train[8] * [1, -1, 1]])
    assert copies_among(train, rows).tolist() == [EXACT, NEAR, NONE, NONE]


def test_the_kinds_are_those_of_a_naive_loop() -> None:
    rng = rng_for("copies", "loop")
    table = np.round(rng.normal(size=(300, 2)), 1)  # many equal rows
    table[::7] += 1e-9  # and some that are almost equal
    train, rows = table[:200], table[200:]
    spread = train.std(axis=0)
    radius = near_distance(np.unique(train, axis=0) / spread)
    expected = []
    for row in rows:
        distance = np.sqrt((((train - row) / spread) ** 2).sum(axis=1)).min()
        expected.append(EXACT if (train == row).all(axis=1).any() else NEAR if distance < radius else NONE)
    assert copies_among(train, rows).tolist() == expected
    assert {EXACT, NEAR, NONE} == set(expected)


def test_minus_zero_is_zero() -> None:
    train = np.array([[0.0, 1.0], [2.0, 3.0], [4.0, 9.0]])
    assert copies_among(train, np.array([[-0.0, 1.0], [2.5, 3.0]])).tolist() == [EXACT, NONE]


def test_continuous_rows_are_near_copies_only_by_chance() -> None:
    for d in (1, 2, 5):
        x = rng_for("copies", "chance", d).normal(size=(10_000, d))
        # in one and two dimensions a row has a neighbour within the radius with a chance of about 1e-4 log 2
        assert (copies_among(x[:8000], x[8000:]) != NONE).sum() <= 2


def test_a_column_that_never_changes_in_training_does_not_matter() -> None:
    train = np.array([[1.0, 5.0], [2.0, 5.0], [4.0, 5.0]])
    assert copies_among(train, np.array([[2.0, 5.0], [3.0, 5.0]])).tolist() == [EXACT, NONE]


@pytest.mark.parametrize("n", [1, 2])
def test_tables_of_one_or_two_rows_have_no_usual_distance_to_fail_on(n: int) -> None:
    train = np.arange(2.0 * n).reshape(n, 2)
    assert copies_among(train, train).tolist() == [EXACT] * n


def test_groups_number_distinct_rows_by_first_occurrence() -> None:
    rows = np.array([[1.0, 2.0], [0.0, 0.0], [1.0, 2.0], [-0.0, 0.0], [3.0, 3.0]])
    assert groups_of_copies(rows).tolist() == [0, 1, 0, 1, 2]
