"""Sums of cut normals against plain loops in float64, where float32 could go wrong and where it could not."""

import math
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from scipy.linalg import solve_triangular
from scipy.special import logsumexp

from dkef.normaliser.proposals.normals import CutNormals
from dkef.normaliser.simd.normal_sums import normal_sums, upper_bound


def naive(h: CutNormals, x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """log h and its gradient, one component at a time."""
    log_terms, slopes = np.full((len(h.weights), len(x)), -np.inf), np.zeros((len(h.weights), *x.shape))
    for k, (weight, centre, shape) in enumerate(zip(h.weights, h.centres, h.shape, strict=True)):
        L = h.factors[shape]
        u = solve_triangular(L, (x - centre).T, lower=True)
        squared = (u**2).sum(axis=0)
        inside = (squared <= h.squared_radius) & (weight > 0)
        log_terms[k, inside] = math.log(weight or 1) + h.log_peaks[shape] - 0.5 * squared[inside]
        slopes[k] = -solve_triangular(L.T, u, lower=False).T
    log_h = logsumexp(log_terms, axis=0)
    shares = np.exp(log_terms - np.where(np.isfinite(log_h), log_h, 0.0))
    return log_h, np.einsum("kn,knd->nd", shares, slopes)


def check(h: CutNormals, x: np.ndarray, tolerance: float = 1e-8) -> None:
    """Both results, but for points so close to a cut that rounding decides on which side they are."""
    log_h, gradient = naive(h, x)
    found, slopes = h.log_density_and_gradient(x)
    np.testing.assert_array_equal(np.isfinite(found), np.isfinite(log_h))
    np.testing.assert_allclose(found, log_h, atol=tolerance, rtol=1e-12)
    np.testing.assert_allclose(h.log_density(x), found, atol=1e-12, rtol=1e-12)
    scale = np.abs(np.linalg.inv(h.factors)).max()
    np.testing.assert_allclose(slopes, gradient, atol=100 * tolerance * scale, rtol=1e-7)


def random_factors(rng: np.random.Generator, j: int, d: int, width: float) -> np.ndarray:
    return width * (np.tril(0.2 * rng.normal(size=(j, d, d)), -1) + np.eye(d) * rng.uniform(0.7, 1.3, (j, 1, d)))


@pytest.mark.parametrize("d", [1, 2, 5, 6, 7, 11, 22, 43])
@pytest.mark.parametrize("k", [1, 5, 6, 200])
def test_every_size_of_panel_and_block(d, k):
    rng = np.random.default_rng(100 * d + k)
    j = min(k, 3)
    h = CutNormals(rng.dirichlet(np.ones(k)), rng.normal(size=(k, d)), np.arange(k) % j, random_factors(rng, j, d, 0.5))
    for n in (1, 63, 64, 130):
        check(h, h.sample(n, rng))


@pytest.mark.parametrize("d", [2, 11, 43])
def test_widths_of_one_centre_share_a_distance(d):
    """A narrow copy, a wide one, the same component twice, one without weight; and others that are only similar."""
    rng = np.random.default_rng(d)
    base = random_factors(rng, 2, d, 0.4)
    factors = np.concatenate([base, 1.7 * base, 0.3 * base, base * (1 + 1e-9 * rng.normal(size=(2, d, d)))])
    centres = np.tile(rng.normal(size=(20, d)), (9, 1))
    weights = rng.dirichlet(np.ones(180))
    weights[::7] = 0.0
    h = CutNormals(weights / weights.sum(), centres, np.repeat(np.arange(9) % 8, 20), factors)
    table = normal_sums(h.weights, h.centres, h.shape, h.factors, h.squared_radius).groups
    assert table[:, 1].max() >= 3  # widths of a site
    assert table[:, 0].sum() < 90  # sites, of 180 components
    check(h, h.sample(300, rng))


@pytest.mark.parametrize("width", [1e-3, 1e-8])
def test_centres_that_are_very_many_widths_apart(width):
    """Whitened coordinates up to 10^8: of a distance of 1, float32 has no digit left, nor have squares in float64."""
    rng = np.random.default_rng(3)
    h = CutNormals(np.full(50, 0.02), rng.normal(size=(50, 4)), np.arange(50) % 2, random_factors(rng, 2, 4, width))
    # A point itself is rounded by 1e-16, in units of the width.
    check(h, h.sample(200, rng), tolerance=1e-8 + 1e-14 / width)


@pytest.mark.parametrize("scale", [1e-55, 1e-30, 1e19, 1e55])
def test_units_that_float32_does_not_have_move_the_density_by_a_constant(scale):
    rng = np.random.default_rng(4)
    centres, factors = rng.normal(size=(30, 3)), random_factors(rng, 1, 3, 0.3)
    h = CutNormals(np.full(30, 1 / 30), centres, np.zeros(30, int), factors)
    x = h.sample(100, rng)
    moved = CutNormals(h.weights, scale * centres, h.shape, scale * factors)
    np.testing.assert_allclose(moved.log_density(scale * x), h.log_density(x) - 3 * math.log(scale), rtol=1e-10)


def test_points_that_are_far_or_no_numbers_have_no_density():
    rng = np.random.default_rng(5)
    h = CutNormals(np.full(40, 1 / 40), rng.normal(size=(40, 3)), np.arange(40) % 2, random_factors(rng, 2, 3, 0.5))
    x = h.sample(70, rng)
    expected = h.log_density(x)
    bad = np.arange(0, 70, 3)
    for value in (1e5, 1e18, 1e20, 1e39, 1e200, np.inf, -np.inf, np.nan):
        y = x.copy()
        y[bad, rng.integers(3, size=len(bad))] = value
        log_h, gradient = h.log_density_and_gradient(y)
        assert (log_h[bad] == -np.inf).all()
        np.testing.assert_allclose(np.delete(log_h, bad), np.delete(expected, bad), rtol=1e-12)
        assert np.isfinite(np.delete(gradient, bad, axis=0)).all()


def test_a_point_at_the_cut_is_in_or_out_as_float64_says():
    """Radii a hair, 1e-9, below and above the cut; float32 knows nothing of such differences."""
    rng = np.random.default_rng(6)
    d = 22
    centres = 5 * rng.normal(size=(12, d))
    h = CutNormals(np.full(12, 1 / 12), centres, np.zeros(12, int), random_factors(rng, 1, d, 0.2))
    direction = rng.normal(size=(12, d))
    direction *= math.sqrt(h.squared_radius) / np.linalg.norm(direction, axis=1)[:, None]
    for hair, inside in ((-1e-9, True), (1e-9, False)):
        x = centres + (1 + hair) * direction @ h.factors[0].T
        assert (np.isfinite(h.log_density(x)) == inside).all()


@pytest.mark.parametrize("d", [1, 11, 43])
def test_the_bound_from_float32_is_never_below_the_exponent(d):
    """The sum in the order of the program, but with two roundings a term as on a host without FMA."""
    rng = np.random.default_rng(d)
    u = rng.normal(size=(20_000, d)) * np.exp(rng.uniform(-8, 8, (20_000, 1)))
    v = u + rng.normal(size=u.shape) * np.exp(rng.uniform(-8, 2, (20_000, 1)))
    exponent = -0.5 * ((u.astype(np.longdouble) - v) ** 2).sum(axis=1)

    def in_float32(raise_norm: Callable[[np.ndarray], np.ndarray]) -> np.ndarray:
        total = np.add(*(raise_norm(-0.5 * (a**2).sum(axis=1)).astype(np.float32) for a in (u, v)))
        for i in range(d):
            total = total + u[:, i].astype(np.float32) * v[:, i].astype(np.float32)
        assert total.dtype == np.float32
        return total

    assert (in_float32(lambda norm: upper_bound(norm, d)) >= exponent).all()
    assert (in_float32(lambda norm: norm) < exponent).any()


@pytest.mark.slow
@pytest.mark.parametrize("features", ["{'avx': True}", "{'neon': True}", "{}"], ids=["avx", "neon", "none"])
def test_hosts_with_other_registers_get_the_same_density(features, tmp_path):
    code = f"""
import llvmlite.binding as llvm
llvm.get_host_cpu_features = lambda: llvm.FeatureMap({features})
from dkef.normaliser.simd.vector import LANES
from tests.normaliser.test_normal_sums import test_every_size_of_panel_and_block as sizes
from tests.normaliser.test_normal_sums import test_widths_of_one_centre_share_a_distance as widths
assert LANES < 16
sizes(7, 200)
sizes(11, 5)
widths(11)
"""
    root = Path(__file__).parents[2]
    environment = os.environ | {"NUMBA_CACHE_DIR": str(tmp_path), "PYTHONPATH": f"{root}{os.pathsep}{root / 'src'}"}
    done = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
