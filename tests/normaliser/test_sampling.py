"""The sampler of q0 is exact to float32 precision, and its streams are what their names say."""

import numpy as np
import pytest
from scipy.stats import gennorm, kstest

from dkef.core.compiled import njit
from dkef.core.streams import rng_for
from dkef.models.kef.parameters import BaseMeasure
from dkef.normaliser.sampling import Stream, philox, proposal, tail_probabilities, tail_quantile, transform
from dkef.normaliser.simd.vector import BLOCK
from dkef.normaliser.weights import STAGES, Q0Weights
from tests.normaliser.examples import random_kef


@njit
def _transform(x, p, words, mu, scale, cubics):
    transform(x, p, words, mu, scale, cubics)


def magnitudes(beta: float, p: np.ndarray) -> np.ndarray:
    """|x| that the sampler makes of tail probabilities p, for mu = 0 and 2 sigma^2 = 1."""
    table = proposal(BaseMeasure(np.zeros(1), np.full(1, np.sqrt(0.5)), np.array([beta])))
    x = np.empty_like(p)
    for start in range(0, len(p), BLOCK):
        part = slice(start, start + BLOCK)
        words = np.zeros(BLOCK, np.uint32)
        _transform(x[part], p[part], words, table.mu[0], table.scale[0], table.cubics[0])
    return x.astype(np.float64)


@pytest.mark.parametrize(
    ("counter", "key", "words"),
    [
        ((0, 0, 0, 0), (0, 0), (0x6627E8D5, 0xE169C58D, 0xBC57AC4C, 0x9B00DBD8)),
        ((0xFFFFFFFF,) * 4, (0xFFFFFFFF,) * 2, (0x408F276D, 0x41C83B0E, 0xA20BC7C6, 0x6D5451FD)),
        (
            (0x243F6A88, 0x85A308D3, 0x13198A2E, 0x03707344),
            (0xA4093822, 0x299F31D0),
            (0xD16CFE09, 0x94FDCCEB, 0x5001E420, 0x24126EA1),
        ),
    ],
)
def test_philox_gives_the_known_answers_of_its_authors(counter, key, words):
    assert philox(*(np.uint32(c) for c in (*counter, *key))) == words


@pytest.mark.parametrize("beta", [1.01, 1.43, 2.0, 3.3, 7.8, 20.0])
def test_quantiles_agree_with_scipy_deep_into_the_tails(beta):
    rng = rng_for("test", "tails")
    p = np.exp2(-rng.uniform(1, 64, 64 * 400)).astype(np.float32)  # 2^-64 = 5e-20
    exact = gennorm.isf(p.astype(np.float64) / 2, beta)
    # float32 rounding (6e-8) of four operations and of the table, plus 1e-7 of interpolation
    np.testing.assert_allclose(magnitudes(beta, p), exact, rtol=4e-7)


@pytest.mark.parametrize("beta", [1.01, 1.43, 2.0, 3.3, 7.8, 20.0])
def test_quantiles_agree_with_scipy_near_the_centre(beta):
    p = np.linspace(0.5, 1, 64 * 100).astype(np.float32)
    exact = gennorm.isf(p.astype(np.float64) / 2, beta)
    # Absolute, because mu is added to it: the last bit of a number near 1.
    np.testing.assert_allclose(magnitudes(beta, p), exact, rtol=4e-7, atol=2.5e-7)


def test_the_exact_quantile_inverts_the_survival_function():
    p = np.exp2(-np.linspace(1e-6, 64, 5000))
    for beta in (1.2, 2.0, 6.0):
        np.testing.assert_allclose(2 * gennorm.sf(tail_quantile(beta, p), beta), p, rtol=1e-11)


def test_small_words_are_refined_and_large_ones_are_not():
    stream = Stream(np.uint32(1), np.uint32(2), np.uint32(3), np.uint32(4))
    words = np.full(BLOCK, 1 << 31, np.uint32)
    words[:4] = (0, 1, 2000, 2001)
    p = np.empty(BLOCK, np.float32)
    tail_probabilities(p, words, stream, 0, 0)
    cell = p[:4].astype(np.float64) * 2.0**31
    assert (cell // 1 == [0, 0, 1000, 1000]).all()
    assert len(set(cell)) == 4  # each with further bits of its own
    assert (p[4:] == np.float32(0.5)).all()


def test_samples_follow_q0_in_every_coordinate_and_coordinates_are_independent():
    parameters = random_kef(seed=3, d=6)
    x = Q0Weights(parameters, "ks").samples("z", 0, 200_000).astype(np.float64)
    q0 = parameters.q0
    for d in range(6):
        scale = (2 * q0.sigma[d] ** 2) ** (1 / q0.beta[d])
        # fixed streams, six tests: a correct sampler fails here once in 2,000 choices of the name
        assert kstest(x[:, d], gennorm(q0.beta[d], q0.mu[d], scale).cdf).pvalue > 1e-4
    correlations = np.corrcoef(np.hstack([x, np.abs(x - q0.mu)]).T) - np.eye(12)
    assert np.abs(correlations).max() < 5 / np.sqrt(200_000)


def test_streams_of_stages_chunks_and_models_share_no_sample():
    parameters = random_kef(d=1)
    drawn = [
        Q0Weights(parameters, name).samples(stage, chunk, 1000).ravel()
        for name in ("a", "b")
        for stage in STAGES
        for chunk in (0, 1)
    ]
    # 20,000 float32 draws have a few equal values by chance, but no stream repeats another
    for i, first in enumerate(drawn):
        for second in drawn[i + 1 :]:
            assert (first == second).mean() < 0.01


def test_a_longer_run_begins_with_the_samples_of_a_shorter_one():
    weights = Q0Weights(random_kef(), "prefix")
    np.testing.assert_array_equal(weights.samples("z", 2, 1000)[:137], weights.samples("z", 2, 137))
