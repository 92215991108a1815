"""h and g against SciPy, quadrature, finite differences and their own samples; a below every r."""

import math
from dataclasses import replace

import numpy as np
import pytest
from scipy import integrate, stats
from scipy.special import logsumexp

from dkef.config.schema.normaliser import DefensiveMixtureSettings
from dkef.models.kef.parameters import BaseMeasure, Component, KefParameters
from dkef.normaliser.integrand import KernelIntegrand
from dkef.normaliser.moments import Moments
from dkef.normaliser.proposals.adapt import FIRST_SHARE, adapt
from dkef.normaliser.proposals.clusters import gaussian_clusters, log_normals
from dkef.normaliser.proposals.defensive_mixture import DefensiveMixture, MixtureWeights
from dkef.normaliser.proposals.fit import fit_defensive_mixture
from dkef.normaliser.proposals.normals import CUT, CutNormals
from tests.normaliser.examples import random_kef

FEW = DefensiveMixtureSettings(clusters=3, modes=10, mode_starts=50, adapt_draws=1000, adapt_rounds=3, renewals=1)


def random_normals(d: int = 2, k: int = 5, shapes: int = 2, seed: int = 0) -> CutNormals:
    rng = np.random.default_rng(seed)
    factors = np.tril(0.3 * rng.normal(size=(shapes, d, d)))
    factors[:, range(d), range(d)] = rng.uniform(0.3, 0.6, (shapes, d))
    return CutNormals(rng.dirichlet(np.ones(k)), rng.normal(size=(k, d)), np.arange(k) % shapes, factors)


def naive_density(h: CutNormals, x: np.ndarray) -> np.ndarray:
    """Sum of truncated normals, one SciPy density a term."""
    total = np.zeros(len(x))
    radius = stats.chi2(h.dimension).ppf(1 - CUT)
    for weight, centre, shape in zip(h.weights, h.centres, h.shape, strict=True):
        factor = h.factors[shape]
        inside = (np.linalg.solve(factor, (x - centre).T) ** 2).sum(axis=0) <= radius
        total += weight * inside * stats.multivariate_normal(centre, factor @ factor.T).pdf(x) / (1 - CUT)
    return total


def test_density_is_the_sum_of_cut_normals():
    h = random_normals(d=3)
    x = np.random.default_rng(1).normal(size=(200, 3)) * 1.5
    expected = naive_density(h, x)
    assert (expected == 0).any()  # some points lie outside all of them
    np.testing.assert_allclose(np.exp(h.log_density(x)), expected, rtol=1e-8)


@pytest.mark.parametrize("d", [1, 5, 43])
def test_density_of_many_narrow_components_is_right_to_a_millionth(d):
    """Whitened coordinates of narrow components are large; terms are differences of those."""
    rng = np.random.default_rng(d)
    factors = 0.05 * np.tril(0.2 * rng.normal(size=(3, d, d))) + 0.1 * np.eye(d)
    h = CutNormals(rng.dirichlet(np.ones(100)), 3 * rng.normal(size=(100, d)), np.arange(100) % 3, factors)
    x = h.sample(500, rng)
    log_terms = np.log(h.weights) + log_normals(x, h.centres, h.factors[h.shape]) - math.log1p(-CUT)
    squared = -2 * (log_normals(x, h.centres, h.factors[h.shape]) - h.log_peaks[h.shape] - math.log1p(-CUT))
    expected = logsumexp(np.where(squared <= h.squared_radius, log_terms, -np.inf), axis=1)
    np.testing.assert_allclose(h.log_density(x), expected, atol=1e-8)


def test_components_are_the_terms_of_the_sum():
    h = random_normals(d=3)
    x = np.random.default_rng(1).normal(size=(200, 3)) * 1.5
    terms = np.exp([component.log_density(x) for component in h.components()])
    assert ((terms == 0).any(axis=0) & (terms > 0).any(axis=0)).any()  # points that only some of them reach
    np.testing.assert_allclose(h.weights @ terms, naive_density(h, x), rtol=1e-8)


def test_sums_together_are_the_sum_of_their_shares():
    parts = [random_normals(d=3), random_normals(d=3, k=4, shapes=3, seed=1)]
    x = np.random.default_rng(1).normal(size=(200, 3)) * 1.5
    expected = 0.3 * naive_density(parts[0], x) + 0.7 * naive_density(parts[1], x)
    together = CutNormals.together(parts, np.array([0.3, 0.7]))
    np.testing.assert_allclose(np.exp(together.log_density(x)), expected, rtol=1e-8)


def test_the_heaviest_part_leaves_out_many_light_components_and_keeps_the_proportions_of_others():
    heavy, light = random_normals(d=3), random_normals(d=3, k=200, shapes=1, seed=1)
    h = CutNormals.together([light, heavy], np.array([0.04, 0.96]))
    x = np.random.default_rng(1).normal(size=(200, 3))
    np.testing.assert_allclose(np.exp(h.heaviest(0.95).log_density(x)), naive_density(heavy, x), rtol=1e-8)
    np.testing.assert_allclose(h.heaviest(1.0).log_density(x), h.log_density(x), rtol=1e-12)
    one = h.heaviest(0.01)  # a shape at the least
    assert len(one.factors) == 1
    assert one.weights.sum() == pytest.approx(1)


def test_density_integrates_to_one():
    h = random_normals(d=1, k=3)
    total, _ = integrate.quad(
        lambda x: math.exp(h.log_density(np.array([[x]]))[0]), -6, 6, limit=500,
        points=[c + s * 0.5 for c in h.centres[:, 0] for s in (-1, 1)],
    )  # fmt: skip
    assert total == pytest.approx(1, abs=1e-5)


def test_samples_follow_the_density():
    """Kolmogorov-Smirnov on the law of log h itself, whose cdf comes from a fine grid; level 0.001."""
    h = random_normals(d=1, k=3)
    grid = np.linspace(-6, 6, 200_001)
    cdf = np.cumsum(np.exp(h.log_density(grid[:, None])))
    x = h.sample(20_000, np.random.default_rng(2))[:, 0]
    assert stats.kstest(x, lambda t: np.interp(t, grid, cdf / cdf[-1])).pvalue > 0.001


def test_no_sample_lies_beyond_the_cut():
    h = replace(random_normals(d=2, k=1, shapes=1), weights=np.ones(1))
    x = h.sample(200_000, np.random.default_rng(3))
    u = np.linalg.solve(h.factors[0], (x - h.centres[0]).T)
    assert (u**2).sum(axis=0).max() <= h.squared_radius * (1 + 1e-12)
    assert np.isfinite(h.log_density(x)).mean() > 1 - 1e-5


@pytest.mark.parametrize("d", [1, 3])
def test_gradients_of_h_and_g_are_those_of_finite_differences(d):
    parameters = random_kef(d=d)
    mixture = DefensiveMixture(parameters.q0, random_normals(d), 0.2)
    x, step = 0.7 * np.random.default_rng(4).normal(size=(40, d)), 1e-4
    for density in (mixture, mixture.normals):
        log_p, gradient = density.log_density_and_gradient(x)
        np.testing.assert_allclose(log_p, density.log_density(x), rtol=1e-10)
        for i in range(d):
            e = step * np.eye(d)[i]
            f = [np.maximum(density.log_density(x + j * e), -1e300) for j in (-2, -1, 1, 2)]
            difference = (f[0] - 8 * f[1] + 8 * f[2] - f[3]) / (12 * step)
            close = np.isclose(gradient[:, i], difference, atol=1e-5, rtol=1e-5)
            assert close.mean() > 0.95  # the other points have a cut, where there is no derivative, within two steps


@pytest.mark.parametrize("beta", [1.2, 2.0, 7.8])
def test_h_over_q0_stays_below_its_bound_for_any_exponent(beta):
    h = random_normals(d=2)
    q0 = BaseMeasure(np.array([0.3, -0.2]), np.array([0.8, 1.5]), np.full(2, beta))
    x = np.random.default_rng(5).uniform(-6, 6, size=(400_000, 2))
    log_ratio = h.log_density(x) - q0.log_density(x) + q0.log_normaliser()
    assert log_ratio.max() < h.log_greatest_ratio(q0)


def test_the_base_measure_is_sampled_and_scored_as_its_density_says():
    q0 = BaseMeasure(np.array([0.5]), np.array([0.7]), np.array([3.3]))
    x = q0.sample(20_000, np.random.default_rng(6))[:, 0]
    law = stats.gennorm(3.3, loc=0.5, scale=(2 * 0.7**2) ** (1 / 3.3))
    assert stats.kstest(x, law.cdf).pvalue > 0.001
    h = 1e-6
    points = np.array([[-0.4], [0.9]])
    difference = (q0.log_density(points + h) - q0.log_density(points - h)) / (2 * h)
    np.testing.assert_allclose(q0.score(points)[:, 0], difference, rtol=1e-7)


@pytest.mark.slow
def test_a_lies_below_every_one_of_ten_million_weights():
    parameters = random_kef(d=2, alpha_scale=2.0)
    rows = 0.7 * np.random.default_rng(7).normal(size=(200, 2))
    weights = MixtureWeights(
        KernelIntegrand(parameters), fit_defensive_mixture(KernelIntegrand(parameters), rows, FEW, ("a",)), "a"
    )
    assert weights.log_a < weights.log_r("z", 0, 10_000_000, threads=2).min()


def test_log_density_of_g_is_the_mixture_of_its_parts():
    parameters = random_kef(d=2)
    mixture = DefensiveMixture(parameters.q0, random_normals(), 0.3)
    x = np.random.default_rng(15).normal(size=(50, 2))
    parts = [
        math.log(0.3) + parameters.q0.log_density(x) - parameters.q0.log_normaliser(),
        math.log(0.7) + mixture.normals.log_density(x),
    ]
    np.testing.assert_allclose(mixture.log_density(x), logsumexp(parts, axis=0), rtol=1e-12)


def effective_share(parameters: KefParameters, mixture: DefensiveMixture, samples: int = 50_000) -> float:
    z = Moments.merge(MixtureWeights(KernelIntegrand(parameters), mixture, "share").moments("z", 0, samples))
    return z.effective_sample_size / z.count


def test_adaptation_finds_mass_that_the_rows_hardly_have():
    """Two bumps; nearly all rows at the lower one. A share of effective samples of 0.3 is far from luck's 0.01."""
    q0 = BaseMeasure(np.zeros(4), np.full(4, 2.0), np.full(4, 2.0))
    z = np.zeros((2, 4))
    z[:, 0] = -2, 2
    parameters = KefParameters(np.array([9.0, 14.0]), z, (Component("gaussian", 1.0, 0.3, ()),), q0)
    rng = np.random.default_rng(16)
    rows = z[(rng.random(400) < 0.03).astype(int)] + 0.4 * rng.normal(size=(400, 4))
    weights, means, covariances = gaussian_clusters(rows, 3, rng)
    clusters = CutNormals(weights, means, np.arange(len(means)), np.linalg.cholesky(covariances))
    first = DefensiveMixture(q0, clusters.widened(1.4), 0.1)
    adapted = adapt(KernelIntegrand(parameters), first, replace(FEW, adapt_draws=1500), np.random.default_rng(17))
    assert effective_share(parameters, adapted) > 0.3
    assert effective_share(parameters, adapted) > 2 * effective_share(parameters, first)


def test_the_whole_fit_reaches_thin_mass_between_the_rows_and_q0():
    """A narrow bump with nearly all the mass on a broad one with little, which no row has ever seen."""
    q0 = BaseMeasure(np.zeros(6), np.full(6, 4.0), np.full(6, 2.0))
    kernels = (Component("gaussian", 1.0, 0.05, ()), Component("gaussian", 0.6, 3.0, ()))
    parameters = KefParameters(np.array([14.0]), np.zeros((1, 6)), kernels, q0)
    rows = 0.1 * np.random.default_rng(20).normal(size=(400, 6))
    assert (
        effective_share(parameters, fit_defensive_mixture(KernelIntegrand(parameters), rows, FEW, ("thin",)), 200_000)
        > 0.3
    )


def test_the_whole_fit_finds_a_peak_far_narrower_than_the_gaps_between_rows():
    """As KEF-G on RedWine: nearly all mass in one peak of standard deviation 0.05 around an inducing point."""
    q0 = BaseMeasure(np.zeros(6), np.full(6, 1.0), np.full(6, 2.0))
    z = np.random.default_rng(21).normal(size=(30, 6))
    alpha = np.where(np.arange(30) == 7, 40.0, 2.0)
    parameters = KefParameters(alpha, z, (Component("gaussian", 1.0, 0.1, ()),), q0)
    rows = np.random.default_rng(22).normal(size=(400, 6))
    fitted = fit_defensive_mixture(KernelIntegrand(parameters), rows, FEW, ("peak",))
    assert effective_share(parameters, fitted) > 0.3


def test_what_adaptation_began_with_keeps_its_share():
    parameters = random_kef(d=2, alpha_scale=2.0)
    rng = np.random.default_rng(19)
    first = DefensiveMixture(parameters.q0, random_normals(d=2, k=3, shapes=3), 0.1)
    adapted = adapt(KernelIntegrand(parameters), first, FEW, rng).normals
    x = first.normals.sample(1000, rng)
    assert (adapted.log_density(x) - first.normals.log_density(x)).min() > math.log(FIRST_SHARE) - 1e-9


def test_normals_have_the_densities_of_scipy():
    rng = np.random.default_rng(0)
    x, means = rng.normal(size=(7, 3)), rng.normal(size=(2, 3))
    factors = np.tril(rng.normal(size=(2, 3, 3))) + 2 * np.eye(3)
    expected = [stats.multivariate_normal(m, L @ L.T).logpdf(x) for m, L in zip(means, factors, strict=True)]
    np.testing.assert_allclose(log_normals(x, means, factors), np.transpose(expected), rtol=1e-12)
