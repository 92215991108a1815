"""The full-covariance Gaussian, against SciPy and finite differences."""

import numpy as np
import pytest
from scipy.stats import multivariate_normal

from dkef.core.errors import DkefError
from dkef.core.streams import rng_for
from dkef.models.gaussian.density import GaussianModel
from dkef.models.gaussian.spec import Gaussian
from dkef.models.protocol import FitContext


@pytest.fixture
def rows():
    rng = rng_for("test", "gaussian")
    return rng.standard_normal((400, 3)) @ rng.standard_normal((3, 3)) + [1.0, -2.0, 0.5]


@pytest.fixture
def model(rows):
    return Gaussian().fit(rows, rows[:0], FitContext()).model


def test_log_density_is_that_of_scipy_with_the_maximum_likelihood_moments(rows, model):
    witness = multivariate_normal(rows.mean(0), np.cov(rows.T, bias=True))
    np.testing.assert_allclose(model.log_prob(rows), witness.logpdf(rows), rtol=1e-10)


def test_score_and_curvature_are_finite_differences_of_the_log_density(rows, model):
    x, h = rows[:20], 1e-4
    for d, step in enumerate(h * np.eye(3)):
        up, here, down = (model.log_density(x + s * step) for s in (1, 0, -1))
        # Quadratic log density: central differences are exact up to rounding, 1e-16 * 10 / h^2 = 1e-7.
        np.testing.assert_allclose(model.score(x)[:, d], (up - down) / (2 * h), atol=1e-8)
        np.testing.assert_allclose(model.curvature(x)[:, d], (up - 2 * here + down) / h**2, atol=1e-6)


def test_score_loss_of_the_fit_on_its_own_whitened_rows_is_minus_half_the_dimension(rows, model):
    whitened = np.linalg.solve(model.cholesky, (rows - model.mean).T).T
    refit = GaussianModel.fit(whitened)
    loss = (refit.curvature(whitened) + 0.5 * refit.score(whitened) ** 2).sum(1).mean()
    assert loss == pytest.approx(-1.5, abs=1e-10)


def test_samples_have_the_moments_of_the_model(model):
    drawn = model.sample(200_000, rng_for("test", "gaussian-sample"))
    covariance = model.cholesky @ model.cholesky.T
    # Standard errors: sqrt(C_ii / n) for means, at most C_ii sqrt(2 / n) for covariances; five of them.
    scale = np.sqrt(np.diag(covariance))
    assert np.all(np.abs(drawn.mean(0) - model.mean) < 5 * scale / np.sqrt(200_000))
    assert np.all(np.abs(np.cov(drawn.T) - covariance) < 5 * np.outer(scale, scale) * np.sqrt(2 / 200_000))


def test_a_constant_column_is_refused_with_the_reason(rows):
    with pytest.raises(DkefError, match="singular; remove constant or linearly dependent columns"):
        GaussianModel.fit(np.column_stack([rows, np.ones(len(rows))]))
