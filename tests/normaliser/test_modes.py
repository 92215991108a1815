"""Modes and masses of densities that are normals, alone and far apart, where Laplace's approximation is exact."""

import numpy as np
import pytest
from scipy.special import logsumexp, softmax

from dkef.normaliser.proposals.clusters import log_normals
from dkef.normaliser.proposals.modes import NEGLIGIBLE, Field, find_modes


def normals_field(log_masses: np.ndarray, means: np.ndarray, factors: np.ndarray) -> Field:
    """log p~ and its gradient for a sum of normals of given masses."""
    precisions = np.linalg.inv(factors @ factors.transpose(0, 2, 1))

    def field(x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        terms = log_masses + log_normals(x, means, factors)
        pull = -np.einsum("kij,nkj->nki", precisions, x[:, None] - means)
        return logsumexp(terms, axis=1), (softmax(terms, axis=1)[..., None] * pull).sum(axis=1)

    return field


def narrow_normals(d: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Three normals far apart, of widths from 0.02 to 0.2, the second with far less mass than the others."""
    rng = np.random.default_rng(d)
    means = rng.normal(size=(3, d))
    means[:, 0] = -4, 0, 4
    factors = np.linalg.cholesky(
        [(q * rng.uniform(0.02, 0.2, d) ** 2) @ q.T for q in np.linalg.qr(rng.normal(size=(3, d, d)))[0]]
    )
    return np.array([1.0, 1.0 - NEGLIGIBLE - 5, 3.0]), means, factors


@pytest.mark.parametrize("d", [1, 4, 12])
def test_narrow_normals_are_found_with_their_masses_and_covariances(d):
    log_masses, means, factors = narrow_normals(d)
    rng = np.random.default_rng(0)
    starts = np.concatenate([m + 0.2 * rng.normal(size=(30, d)) for m in means])  # a few widths away
    modes = find_modes(normals_field(log_masses, means, factors), starts, most=40)
    assert len(modes.x) == 2  # the largest first, and without the one that is too small to matter
    np.testing.assert_allclose(modes.log_mass, [3.0, 1.0], atol=1e-3)
    np.testing.assert_allclose(modes.x, means[[2, 0]], atol=1e-4)
    expected = factors[[2, 0]] @ factors[[2, 0]].transpose(0, 2, 1)
    np.testing.assert_allclose(modes.factors @ modes.factors.transpose(0, 2, 1), expected, rtol=1e-2, atol=1e-6)


def test_units_of_the_coordinates_do_not_matter():
    log_masses, means, factors = narrow_normals(3)
    units = np.array([1e-3, 1.0, 50.0])
    rng = np.random.default_rng(1)
    starts = np.concatenate([m + 0.1 * rng.normal(size=(30, 3)) for m in means])
    one = find_modes(normals_field(log_masses, means, factors), starts, 40)
    scaled = normals_field(log_masses, units * means, units[:, None] * factors)
    other = find_modes(scaled, units * starts, 40)
    np.testing.assert_allclose(other.x, units * one.x, rtol=1e-4, atol=1e-6)
    np.testing.assert_allclose(other.log_mass, one.log_mass, atol=1e-3)


def test_no_normal_is_wider_than_the_starts():
    wide = normals_field(np.zeros(1), np.zeros((1, 2)), 100 * np.eye(2)[None])
    starts = np.random.default_rng(2).normal(size=(50, 2))
    modes = find_modes(wide, starts, 10)
    assert np.abs(modes.factors).max() < 1.5 * starts.std()
