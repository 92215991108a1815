"""Sums of exponentials, against SciPy's; functions of many rows, block by block."""

import numpy as np
import pytest
from scipy.special import logsumexp

from dkef.core.arrays import in_blocks, log_sum_exp

INF = np.inf


@pytest.mark.parametrize("axis", [None, 0, 1, -1])
@pytest.mark.parametrize("keepdims", [False, True])
@pytest.mark.parametrize("scale", [1.0, 1e3, 1e300])
def test_it_is_scipy_s(axis: int | None, keepdims: bool, scale: float) -> None:
    x = scale * np.random.default_rng(0).standard_normal((7, 5))
    expected = logsumexp(x, axis=axis, keepdims=keepdims)
    found = log_sum_exp(x, axis, keepdims)
    assert np.shape(found) == np.shape(expected)
    np.testing.assert_allclose(found, expected, rtol=1e-14, atol=1e-14)


@pytest.mark.parametrize(
    ("terms", "expected"),
    [
        ([], -INF),
        ([-INF, -INF], -INF),
        ([-INF, 3.0], 3.0),
        ([INF, 0.0], INF),
        ([np.nan, 0.0], np.nan),
        ([-1e308, -1e308], -1e308),
    ],
)
def test_terms_that_are_missing_or_infinite(terms: list[float], expected: float) -> None:
    with np.errstate(all="raise", under="ignore"):
        found = log_sum_exp(terms)
    np.testing.assert_equal(found, expected)


def test_rows_without_a_finite_term_leave_the_others_alone() -> None:
    x = np.array([[-INF, -INF], [0.0, 0.0], [INF, -INF]])
    np.testing.assert_array_equal(log_sum_exp(x, axis=1), [-INF, np.log(2.0), INF])


def test_the_precision_stays_that_of_the_terms() -> None:
    assert log_sum_exp(np.zeros((2, 3), dtype=np.float32), axis=-1).dtype == np.float32


@pytest.mark.parametrize("n", [0, 1, 6, 7])
def test_blocks_of_rows_give_what_all_rows_give_in_float64(n: int) -> None:
    x = np.random.default_rng(0).standard_normal((n, 2)).astype(np.float32)
    sizes: list[int] = []

    def both(rows: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        sizes.append(len(rows))
        return rows.sum(axis=1).astype(np.float32), 2 * rows

    total, twice = in_blocks(both, x, 3)
    assert max(sizes) <= 3
    assert total.dtype == twice.dtype == np.float64
    assert np.array_equal(twice, 2 * x.astype(np.float64))
    assert np.array_equal(total, x.astype(np.float64).sum(axis=1).astype(np.float32))
