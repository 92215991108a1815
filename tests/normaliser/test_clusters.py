"""Gaussian clusters against scikit-learn's, and where rows are few or alike."""

import warnings

import numpy as np
import pytest
from sklearn.exceptions import ConvergenceWarning
from sklearn.mixture import GaussianMixture

from dkef.normaliser.proposals.clusters import expected, gaussian_clusters, maximised


def two_clusters(n: int, d: int, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """Rows [n, d] of which three in ten lie around (5, ..., 5) and are twice as wide; and which."""
    second = rng.random(n) < 0.3
    return np.where(second[:, None], 5 + 2 * rng.normal(size=(n, d)), rng.normal(size=(n, d))), second


@pytest.mark.parametrize("d", [1, 2, 5])
def test_one_step_is_that_of_scikit_learn(d):
    rng = np.random.default_rng(d)
    x, _ = two_clusters(300, d, rng)
    weights, means = np.array([0.2, 0.5, 0.3]), 3 * rng.normal(size=(3, d))
    factors = rng.normal(size=(3, d, d)) / d + 2 * np.eye(d)
    covariances = factors @ factors.transpose(0, 2, 1)
    other = GaussianMixture(
        3, reg_covar=0.1, max_iter=1, weights_init=weights, means_init=means, precisions_init=np.linalg.inv(covariances)
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # one step is asked for
        other.fit(x)
    shares, mean_log_density = expected(x, weights, means, covariances)
    found = maximised(x, shares, 0.1)
    for ours, theirs in zip(found, (other.weights_, other.means_, other.covariances_), strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=1e-9, atol=1e-12)
    assert expected(x, *found)[1] == pytest.approx(other.score(x), abs=1e-9)
    assert expected(x, *found)[1] > mean_log_density - 0.1  # a step does not lose, but for the ridge


def test_clusters_that_lie_apart_are_found():
    """Weights to 3 standard errors, sqrt(0.3 * 0.7 / 2000) = 0.01; means and widths to 4 of theirs."""
    x, second = two_clusters(2000, 3, np.random.default_rng(0))
    weights, means, covariances = gaussian_clusters(x, 2, np.random.default_rng(1))
    order = np.argsort(means[:, 0])
    assert weights[order[1]] == pytest.approx(second.mean(), abs=0.01)
    np.testing.assert_allclose(means[order], [[0] * 3, [5] * 3], atol=4 * 2 / np.sqrt(600))
    np.testing.assert_allclose(covariances[order[1]], 4 * np.eye(3), atol=4 * 4 * np.sqrt(2 / 600))


def test_the_fit_is_as_good_as_that_of_scikit_learn():
    """Of overlapping clusters both find some optimum; any will do that is not worse by much."""
    rng = np.random.default_rng(2)
    x = np.concatenate([rng.normal(size=(400, 4)) * rng.uniform(0.3, 2, 4) + 3 * rng.normal(size=4) for _ in range(6)])
    x = rng.permutation(x)
    found = gaussian_clusters(x, 6, np.random.default_rng(3))
    theirs = GaussianMixture(6, max_iter=50, tol=1e-2, random_state=0).fit(x)
    assert expected(x, *found)[1] > theirs.score(x) - 0.1


@pytest.mark.parametrize("distinct", [1, 2])
def test_rows_that_are_copies_give_clusters_with_covariances(distinct):
    x = np.repeat(np.eye(2)[:distinct] * 3, 60, axis=0) + 1e-3 * np.random.default_rng(0).normal(
        size=(60 * distinct, 2)
    )
    x[: 50 * distinct] = x[0]
    weights, means, covariances = gaussian_clusters(x, 5, np.random.default_rng(0))
    assert weights.sum() == pytest.approx(1)
    assert np.isfinite(means).all()
    np.linalg.cholesky(covariances)


def test_few_rows_make_one_cluster():
    x = np.random.default_rng(0).normal(size=(11, 5))  # 2 * 5 + 2 rows for a covariance
    _, means, covariances = gaussian_clusters(x, 20, np.random.default_rng(0))
    np.testing.assert_allclose(means, [x.mean(axis=0)])
    np.testing.assert_allclose(covariances[0], np.cov(x.T, bias=True) + 1e-3 * x.var(axis=0).mean() * np.eye(5))
