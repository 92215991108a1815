"""h and g against SciPy, quadrature, finite differences and their own samples; a below every r."""

import math
from dataclasses import replace

import numpy as np
import pytest
from scipy import integrate, stats
from scipy.special import logsumexp

from dkef.config.schema.normaliser import CoverSettings
from dkef.models.kef.parameters import BaseMeasure, Component, KefParameters
from dkef.normaliser.moments import Moments
from dkef.normaliser.proposals import cover_fit
from dkef.normaliser.proposals.clusters import log_normals
from dkef.normaliser.proposals.cover import CUT, Cover
from dkef.normaliser.proposals.cover_adapt import FIRST_SHARE, adapt
from dkef.normaliser.proposals.cover_fit import candidates, effective_shares, fit_cover
from dkef.normaliser.proposals.mixture import Mixture, MixtureWeights
from tests.normaliser.examples import random_kef

FEW = CoverSettings(
    kinds=["rows", "local", "clusters"], widths=[0.5, 1.0], clusters=3, pilot_samples=200, adapt_draws=1000,
    adapt_rounds=3, renewals=1,
)  # fmt: skip


def random_cover(d: int = 2, k: int = 5, shapes: int = 2, seed: int = 0) -> Cover:
    rng = np.random.default_rng(seed)
    factors = np.tril(0.3 * rng.normal(size=(shapes, d, d)))
    factors[:, range(d), range(d)] = rng.uniform(0.3, 0.6, (shapes, d))
    return Cover(rng.dirichlet(np.ones(k)), rng.normal(size=(k, d)), np.arange(k) % shapes, factors)


def naive_density(cover: Cover, x: np.ndarray) -> np.ndarray:
    """Sum of truncated normals, one SciPy density a term."""
    total = np.zeros(len(x))
    radius = stats.chi2(cover.dimension).ppf(1 - CUT)
    for weight, centre, shape in zip(cover.weights, cover.centres, cover.shape, strict=True):
        factor = cover.factors[shape]
        inside = (np.linalg.solve(factor, (x - centre).T) ** 2).sum(axis=0) <= radius
        total += weight * inside * stats.multivariate_normal(centre, factor @ factor.T).pdf(x) / (1 - CUT)
    return total


def test_density_is_the_sum_of_cut_normals():
    cover = random_cover(d=3)
    x = np.random.default_rng(1).normal(size=(200, 3)) * 1.5
    expected = naive_density(cover, x)
    assert (expected == 0).any()  # some points lie outside all of them
    np.testing.assert_allclose(np.exp(cover.log_density(x)), expected, rtol=2e-5)  # distances are in float32


def test_components_are_the_terms_of_the_cover():
    cover = random_cover(d=3)
    x = np.random.default_rng(1).normal(size=(200, 3)) * 1.5
    terms = np.exp([component.log_density(x) for component in cover.components()])
    assert ((terms == 0).any(axis=0) & (terms > 0).any(axis=0)).any()  # points that only some of them reach
    np.testing.assert_allclose(cover.weights @ terms, naive_density(cover, x), rtol=2e-5)


def test_covers_together_are_the_sum_of_their_shares():
    parts = [random_cover(d=3), random_cover(d=3, k=4, shapes=3, seed=1)]
    x = np.random.default_rng(1).normal(size=(200, 3)) * 1.5
    expected = 0.3 * naive_density(parts[0], x) + 0.7 * naive_density(parts[1], x)
    together = Cover.together(parts, np.array([0.3, 0.7]))
    np.testing.assert_allclose(np.exp(together.log_density(x)), expected, rtol=2e-5)


def test_density_integrates_to_one():
    cover = random_cover(d=1, k=3)
    total, _ = integrate.quad(
        lambda x: math.exp(cover.log_density(np.array([[x]]))[0]), -6, 6, limit=500,
        points=[c + s * 0.5 for c in cover.centres[:, 0] for s in (-1, 1)],
    )  # fmt: skip
    assert total == pytest.approx(1, abs=1e-5)


def test_samples_follow_the_density():
    """Kolmogorov-Smirnov on the law of log h itself, whose cdf comes from a fine grid; level 0.001."""
    cover = random_cover(d=1, k=3)
    grid = np.linspace(-6, 6, 200_001)
    cdf = np.cumsum(np.exp(cover.log_density(grid[:, None])))
    x = cover.sample(20_000, np.random.default_rng(2))[:, 0]
    assert stats.kstest(x, lambda t: np.interp(t, grid, cdf / cdf[-1])).pvalue > 0.001


def test_no_sample_lies_beyond_the_cut():
    cover = replace(random_cover(d=2, k=1, shapes=1), weights=np.ones(1))
    x = cover.sample(200_000, np.random.default_rng(3))
    u = np.linalg.solve(cover.factors[0], (x - cover.centres[0]).T)
    assert (u**2).sum(axis=0).max() <= cover.squared_radius * (1 + 1e-12)
    assert np.isfinite(cover.log_density(x)).mean() > 1 - 1e-5  # rounding to float32 at the very edge


@pytest.mark.parametrize("d", [1, 3])
def test_gradients_of_h_and_g_are_those_of_finite_differences(d):
    parameters = random_kef(d=d)
    mixture = Mixture(parameters.q0, random_cover(d), 0.2)
    # Distances are in float32, so differences need a coarse step and can be held to no more than 1e-3.
    x, step = 0.7 * np.random.default_rng(4).normal(size=(40, d)), 1e-2
    for density in (mixture, mixture.cover):
        log_p, gradient = density.log_density_and_gradient(x)
        np.testing.assert_allclose(log_p, density.log_density(x), rtol=1e-12)
        for i in range(d):
            e = step * np.eye(d)[i]
            f = [np.maximum(density.log_density(x + j * e), -1e300) for j in (-2, -1, 1, 2)]
            difference = (f[0] - 8 * f[1] + 8 * f[2] - f[3]) / (12 * step)
            close = np.isclose(gradient[:, i], difference, atol=5e-3, rtol=2e-3)
            assert close.mean() > 0.8  # the other points have a cut, where there is no derivative, within two steps


@pytest.mark.parametrize("beta", [1.2, 2.0, 7.8])
def test_h_over_q0_stays_below_its_bound_for_any_exponent(beta):
    cover = random_cover(d=2)
    q0 = BaseMeasure(np.array([0.3, -0.2]), np.array([0.8, 1.5]), np.full(2, beta))
    x = np.random.default_rng(5).uniform(-6, 6, size=(400_000, 2))
    log_ratio = cover.log_density(x) - q0.log_density(x) + q0.log_normaliser()
    assert log_ratio.max() < cover.log_greatest_ratio(q0)


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
    weights = MixtureWeights(parameters, fit_cover(parameters, rows, FEW, ("a",)), "a")
    assert weights.log_a < weights.log_r("z", 0, 10_000_000, threads=2).min()


def test_each_kind_of_cover_is_built_as_described():
    rows = np.random.default_rng(8).normal(size=(300, 2))
    found = candidates(random_kef(d=2, m=20), rows, replace(FEW, centres=100), np.random.default_rng(10))
    assert list(found) == [f"{kind} of width {w}" for kind in ("rows", "local", "clusters") for w in ("0.5", "1")]
    shared = found["rows of width 0.5"]
    np.testing.assert_allclose(shared.factors[0] @ shared.factors[0].T, 0.25 * np.cov(rows.T))
    assert len(shared.centres) == 120
    assert len(found["clusters of width 1"].centres) == 3
    for cover in found.values():
        assert cover.weights.sum() == pytest.approx(1)


def test_the_share_of_effective_samples_agrees_with_a_long_run():
    parameters = random_kef(d=2, alpha_scale=2.0)
    rows = np.random.default_rng(11).normal(size=(300, 2))
    covers = candidates(parameters, rows, FEW, np.random.default_rng(12))
    mixtures = [Mixture(parameters.q0, cover, 0.1) for cover in covers.values()]
    shares = effective_shares(parameters, mixtures, 4000, np.random.default_rng(13))
    for mixture, share in zip(mixtures, shares, strict=True):
        long = Moments.merge(MixtureWeights(parameters, mixture, "long").moments("z", 0, 100_000))
        assert share == pytest.approx(long.effective_sample_size / long.count, rel=0.1)


def test_a_cover_that_misses_half_the_mass_is_not_chosen(monkeypatch):
    """Two bumps, rows at one of them: its narrow cover alone would report nearly all samples effective."""
    bumps = random_kef(d=2, m=2, widths=(), skips=(), taus=(0.05,))
    parameters = KefParameters(np.array([6.0, 6.0]), np.array([[-1.5, 0], [1.5, 0]]), bumps.components, bumps.q0)
    narrow = Cover(np.ones(1), np.array([[-1.5, 0.0]]), np.zeros(1, int), 0.15 * np.eye(2)[None])
    wide = replace(narrow, centres=np.zeros((1, 2)), factors=1.2 * np.eye(2)[None])
    mixtures = [Mixture(bumps.q0, cover, 0.001) for cover in (narrow, wide)]
    shares = effective_shares(parameters, mixtures, 20_000, np.random.default_rng(14))
    assert shares[1] > shares[0]
    monkeypatch.setattr(cover_fit, "candidates", lambda *arguments: {"narrow": narrow, "wide": wide})
    settings = replace(FEW, q0_share=0.001, pilot_samples=20_000)
    assert fit_cover(parameters, np.zeros((1, 2)), settings, ("bumps",)).cover is wide


def test_log_density_of_g_is_the_mixture_of_its_parts():
    parameters = random_kef(d=2)
    mixture = Mixture(parameters.q0, random_cover(), 0.3)
    x = np.random.default_rng(15).normal(size=(50, 2))
    parts = [
        math.log(0.3) + parameters.q0.log_density(x) - parameters.q0.log_normaliser(),
        math.log(0.7) + mixture.cover.log_density(x),
    ]
    np.testing.assert_allclose(mixture.log_density(x), logsumexp(parts, axis=0), rtol=1e-12)


def test_adaptation_finds_mass_that_the_rows_hardly_have():
    """Two bumps; nearly all rows at the lower one. A share of effective samples of 0.3 is far from luck's 0.01."""
    q0 = BaseMeasure(np.zeros(4), np.full(4, 2.0), np.full(4, 2.0))
    z = np.zeros((2, 4))
    z[:, 0] = -2, 2
    parameters = KefParameters(np.array([9.0, 14.0]), z, (Component("gaussian", 1.0, 0.3, ()),), q0)
    rng = np.random.default_rng(16)
    rows = z[(rng.random(400) < 0.03).astype(int)] + 0.4 * rng.normal(size=(400, 4))
    settings = replace(FEW, kinds=["rows", "adapted"], adapt_draws=1500)
    found = candidates(parameters, rows, settings, np.random.default_rng(17))
    mixtures = [Mixture(q0, cover, 0.1) for cover in found.values()]
    shares = dict(zip(found, effective_shares(parameters, mixtures, 4000, rng), strict=True))
    adapted = max(share for kind, share in shares.items() if kind.startswith("adapted"))
    assert adapted > 0.3
    assert adapted > 2 * max(share for kind, share in shares.items() if kind.startswith("rows"))


def test_a_bridge_reaches_the_mass_between_the_rows_and_q0():
    """A narrow bump with nearly all the mass on a broad one with little, which no row has ever seen.

    Rare samples of the broad bump carry the second moment, so that the shares come from a long run.
    """
    q0 = BaseMeasure(np.zeros(6), np.full(6, 4.0), np.full(6, 2.0))
    kernels = (Component("gaussian", 1.0, 0.05, ()), Component("gaussian", 0.6, 3.0, ()))
    parameters = KefParameters(np.array([14.0]), np.zeros((1, 6)), kernels, q0)
    rng = np.random.default_rng(20)
    rows = 0.1 * rng.normal(size=(400, 6))
    found = candidates(parameters, rows, replace(FEW, kinds=["adapted", "bridged"], adapt_rounds=8), rng)
    share = {}
    for kind, cover in found.items():
        z = Moments.merge(MixtureWeights(parameters, Mixture(q0, cover, 0.1), kind).moments("z", 0, 200_000))
        share[kind] = z.effective_sample_size / z.count
    assert share["bridged"] > 1.5 * share["adapted of width 1.2"]


def test_what_adaptation_began_with_stays_covered():
    parameters = random_kef(d=2, alpha_scale=2.0)
    rows = np.random.default_rng(18).normal(size=(300, 2))
    rng = np.random.default_rng(19)
    first = candidates(parameters, rows, replace(FEW, kinds=["clusters"]), rng)["clusters of width 1"]
    adapted = adapt(parameters, Mixture(parameters.q0, first, 0.1), FEW, rng).cover
    x = first.sample(1000, rng)
    assert (adapted.log_density(x) - first.log_density(x)).min() > math.log(FIRST_SHARE) - 1e-4


def test_normals_have_the_densities_of_scipy():
    rng = np.random.default_rng(0)
    x, means = rng.normal(size=(7, 3)), rng.normal(size=(2, 3))
    factors = np.tril(rng.normal(size=(2, 3, 3))) + 2 * np.eye(3)
    expected = [stats.multivariate_normal(m, L @ L.T).logpdf(x) for m, L in zip(means, factors, strict=True)]
    np.testing.assert_allclose(log_normals(x, means, factors), np.transpose(expected), rtol=1e-12)
