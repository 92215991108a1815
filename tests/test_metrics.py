"""Means over the test points against closed forms and plain loops."""

import math

import numpy as np
import pytest

from dkef.core.arrays import Array
from dkef.core.streams import rng_for
from dkef.metrics.pointwise import (
    Estimate,
    NotFiniteError,
    fisher_divergence,
    log_likelihood,
    mean_over_points,
    require_finite,
    score_loss,
)
from dkef.models.gaussian.density import GaussianModel


def points(n: int = 200, d: int = 3) -> Array:
    return rng_for("test", "metrics").standard_normal((n, d))


def test_score_loss_of_the_fitted_gaussian_on_its_own_rows_is_minus_half_the_trace_of_the_precision() -> None:
    x = points() @ np.array([[1.0, 0.3, 0.0], [0.0, 2.0, 0.1], [0.0, 0.0, 0.5]])
    at_x = GaussianModel.fit(x).evaluate(x)
    # The mean of |score|^2 / 2 is then tr(precision) / 2, exactly, and the curvature is minus the precision.
    covariance = (x - x.mean(axis=0)).T @ (x - x.mean(axis=0)) / len(x)
    expected = -0.5 * np.trace(np.linalg.inv(covariance))
    assert score_loss(at_x.score, at_x.curvature).value == pytest.approx(expected, rel=1e-12)


def test_score_loss_and_its_standard_error_equal_a_loop() -> None:
    score, curvature = points(), points()[::-1]
    terms = [sum(c + s * s / 2 for s, c in zip(*row, strict=True)) for row in zip(score, curvature, strict=True)]
    mean = sum(terms) / len(terms)
    variance = sum((t - mean) ** 2 for t in terms) / (len(terms) - 1)
    found = score_loss(score, curvature)
    assert found.value == pytest.approx(mean, rel=1e-12)
    assert found.stderr == pytest.approx(math.sqrt(variance / len(terms)), rel=1e-12)


def test_fisher_divergence_has_the_factor_one_half() -> None:
    x, m = points(), np.array([1.0, 2.0, 2.0])
    found = fisher_divergence(m - x, -x)  # N(m, I) against N(0, I): |m|^2 / 2 at every point
    assert found.value == pytest.approx(4.5, rel=1e-14)
    assert found.stderr == pytest.approx(0.0, abs=1e-14)


def test_log_likelihood_subtracts_log_z_adds_the_determinant_and_joins_both_errors() -> None:
    log_density = points()[:, 0]
    plain = log_likelihood(log_density)
    assert plain.value == pytest.approx(sum(log_density) / len(log_density), rel=1e-12)
    shifted = log_likelihood(log_density, Estimate(5.0, 0.3), log_det=2.0)
    assert shifted.value == pytest.approx(plain.value - 5.0 + 2.0, rel=1e-12)
    assert plain.stderr is not None
    assert shifted.stderr == pytest.approx(math.sqrt(plain.stderr**2 + 0.09), rel=1e-12)
    assert log_likelihood(log_density, Estimate(5.0, None)).stderr is None  # an unknown error is not zero
    assert log_likelihood(log_density, Estimate(5.0, 0.3, "untrusted: why")).status == "untrusted: why"


def test_raw_units_undo_the_whitening_of_a_gaussian() -> None:
    x = points() @ np.diag([1.0, 5.0, 0.2]) + 3.0
    W = np.diag([2.0, 0.1, 7.0])
    raw, whitened = GaussianModel.fit(x), GaussianModel.fit(x @ W)
    log_det = float(np.log(np.abs(np.linalg.det(W))))
    in_raw_units = log_likelihood(whitened.log_density(x @ W), log_det=log_det)
    # Maximum likelihood is equivariant, so both routes are the same density.
    assert in_raw_units.value == pytest.approx(raw.log_density(x).mean(), rel=1e-12)


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf, 1e61])
def test_values_that_are_not_finite_are_counted_by_row_and_never_averaged(value: float) -> None:
    score, curvature = points(), points()
    score[4, 0] = score[4, 2] = score[9, 1] = value
    for call in (
        lambda: score_loss(score, curvature),
        lambda: fisher_divergence(score, curvature),
        lambda: require_finite("scores", score),
    ):
        with pytest.raises(NotFiniteError, match=r"^2 of 200 scores not finite$"):
            call()
    with pytest.raises(NotFiniteError, match=r"^2 of 200 curvatures not finite$"):
        score_loss(curvature, score)
    with pytest.raises(NotFiniteError, match=r"^1 of 200 log densities not finite$"):
        log_likelihood(score[:, 1])


def test_one_point_has_a_mean_and_no_standard_error() -> None:
    assert mean_over_points("values", np.array([3.0])) == Estimate(3.0, None)
