"""log Z against closed forms and quadrature, and doubts where they belong."""

import json
import math
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from scipy.special import gammaln, logsumexp

from dkef.config.schema.normaliser import Normaliser
from dkef.models.kef.parameters import BaseMeasure, Component, KefParameters
from dkef.normaliser.estimate import Pilot, Stages, conclude, estimate, run_pilot
from dkef.normaliser.moments import Moments
from dkef.normaliser.pareto import TAIL
from dkef.normaliser.weights import SPAN, Halves, Q0Weights
from tests.normaliser.examples import log_moment, random_kef

SEEDS = 20
SMALL = Normaliser(samples=40_000, bound_samples=20_000, pilot_samples=20_000, chunk_samples=20_000)


def whole(halves: Halves) -> Moments:
    return Moments.merge(halves)


def estimate_from_q0(parameters: KefParameters, settings: Normaliser, *name: str | int) -> dict[str, Any]:
    return estimate("q0", Q0Weights(parameters, *name), settings)


def standard_scores(parameters: list[KefParameters], log_z: list[float], samples: int = 40_000) -> np.ndarray:
    """(estimate - truth) / standard error, one model and stream a seed."""
    moments = [whole(Q0Weights(p, "score", seed).moments("z", 0, samples)) for seed, p in enumerate(parameters)]
    return np.array([(m.log_mean - truth) / m.stderr for m, truth in zip(moments, log_z, strict=True)])


def assert_standard(scores: np.ndarray) -> None:
    """20 standard normal scores: none beyond 4 (chance 1e-3), mean square between 0.3 and 2.2 (chance 1e-3)."""
    assert np.abs(scores).max() < 4
    assert 0.3 < np.mean(scores**2) < 2.2


def gaussian_q0(d: int, sigma: float) -> BaseMeasure:
    return BaseMeasure(np.zeros(d), np.full(d, sigma), np.full(d, 2.0))


def record_of(*arguments: Any) -> dict[str, Any]:
    return conclude(*arguments)[0]


def test_alpha_zero_gives_the_normaliser_of_q0():
    parameters = random_kef(d=4)
    nothing = replace(parameters, alpha=np.zeros_like(parameters.alpha))
    record = estimate_from_q0(nothing, SMALL, "zero")
    assert record["log_z"] == pytest.approx(parameters.q0.log_normaliser(), abs=1e-12)
    assert record["log_z_stderr"] == 0
    assert record["effective_sample_size"] == pytest.approx(40_000)
    assert record["status"] == "ok"
    assert "not below log s" in record["bound_condition"]  # r is a constant: there is no s above a


def test_one_gaussian_bump_agrees_with_its_series():
    """E exp(alpha k) = sum_j alpha^j / j! E k^j, and E k^j is a Gaussian integral when q0 is Gaussian."""
    d, sigma, tau, models, truths = 3, 1.2, 0.7, [], []
    for seed in range(SEEDS):
        z = np.random.default_rng(seed).normal(size=(1, d))
        alpha = 1.5 + 0.1 * seed
        models.append(
            KefParameters(np.array([alpha]), z, (Component("gaussian", 1.0, tau, ()),), gaussian_q0(d, sigma))
        )
        j = np.arange(60)
        spread = tau + j * sigma**2
        log_moments = 0.5 * d * np.log(tau / spread) - j * (z**2).sum() / (2 * spread)
        series = logsumexp(j * math.log(alpha) - gammaln(j + 1) + log_moments)
        truths.append(series + d * 0.5 * math.log(2 * math.pi * sigma**2))
    assert_standard(standard_scores(models, truths))


def test_a_linear_f_agrees_with_the_shifted_gaussian():
    """With k(x, z) = x.z, p~ is a Gaussian with another mean: log Z = log Z_q0 + sigma^2 |v|^2 / 2, v = sum alpha z."""
    models, truths = [], []
    for seed in range(SEEDS):
        rng = np.random.default_rng(seed)
        alpha, z = 0.2 * rng.normal(size=4), rng.normal(size=(4, 2))
        models.append(KefParameters(alpha, z, (Component("linear", 1.0, 1.0, ()),), gaussian_q0(2, 1.5)))
        truths.append(0.5 * 1.5**2 * ((alpha @ z) ** 2).sum() + math.log(2 * math.pi * 1.5**2))
    assert_standard(standard_scores(models, truths))


@pytest.mark.parametrize("d", [1, 2])
def test_random_deep_models_agree_with_quadrature(d):
    models = [random_kef(seed, d=d, alpha_scale=1.5) for seed in range(SEEDS)]
    assert_standard(standard_scores(models, [log_moment(p) for p in models]))


def test_the_number_of_threads_changes_nothing():
    weights = Q0Weights(random_kef(), "threads")
    n = SPAN + 12_345  # two spans, the last one short
    assert weights.moments("z", 0, n, threads=1) == weights.moments("z", 0, n, threads=3)


def test_moments_are_those_of_the_weights():
    weights = Q0Weights(random_kef(), "same")
    log_r, moments = weights.log_r("z", 1, 20_001), whole(weights.moments("z", 1, 20_001))
    assert moments.count == 20_001
    assert moments.log_mean == pytest.approx(logsumexp(log_r) - math.log(20_001), abs=1e-12)
    assert moments.log_variance == pytest.approx(math.log(np.exp(log_r).var(ddof=1)), abs=1e-11)
    assert moments.log_max == pytest.approx(log_r.max(), abs=1e-13)


def test_pilot_finds_the_40th_percentile_and_a_rho_just_above():
    pilot = run_pilot(Q0Weights(random_kef(alpha_scale=2.0), "pilot"), 100_000)
    fresh = Q0Weights(random_kef(alpha_scale=2.0), "fresh").log_r("z", 0, 100_000)
    below = (fresh <= pilot.log_s).mean()
    assert below == pytest.approx(0.4, abs=0.01)  # 3 standard errors of each, and 0.001 in log s
    assert below < pilot.rho < 0.42


def test_bound_of_the_record_covers_the_error_of_a_good_estimate():
    parameters = random_kef(seed=1)
    record = estimate_from_q0(parameters, SMALL, "good")
    assert record["bound_condition"] == "ok"
    assert 0 < record["log_z_bias_bound"] < 0.01
    assert abs(record["log_z"] - log_moment(parameters)) < 5 * record["log_z_stderr"]


def test_linear_kernels_give_log_z_but_no_bound():
    record = estimate_from_q0(random_kef(kind="linear", alpha_scale=0.02), SMALL, "linear")
    assert math.isfinite(record["log_z"])
    assert record["log_z_bias_bound"] is None
    assert record["bound_condition"] == "linear kernels have no lower bound"


@pytest.mark.parametrize(("d", "tau", "height"), [(6, 0.05, 20.0), (8, 0.1, 20.0), (8, 0.2, 15.0), (5, 0.05, 15.0)])
def test_an_estimate_that_few_samples_carry_is_not_trusted_and_has_no_bound(d, tau, height):
    bump = Component("gaussian", 1.0, tau, ())  # a peak that q0 hits a few times at most
    parameters = KefParameters(np.array([height]), np.zeros((1, d)), (bump,), gaussian_q0(d, 1.0))
    record = estimate_from_q0(parameters, replace(SMALL, samples=200_000, bound_samples=200_000), "peak")
    assert record["status"].startswith("untrusted: ")
    assert record["log_z_bias_bound"] is None
    assert "rests on few samples" in record["bound_condition"]


def heavy(k: float) -> tuple[float, ...]:
    """Logs of the largest of 2000 weights with the Pareto shape k: quantiles of the Pareto law."""
    return tuple((-k * np.log((np.arange(TAIL + 1) + 0.5) / 2000) - 3).tolist())


def stages(
    variance: Moments | None = None, bound_z: Moments | None = None, z: Moments | None = None,
    second: Moments | None = None,
) -> Stages:  # fmt: skip
    fine = moments(0, 1)
    return Stages(variance or fine, bound_z or fine, (z or fine, second or z or fine))


def moments(log_mean: float, relative_spread: float, n: int = 1000) -> Moments:
    return Moments(n, log_mean, 2 * (log_mean + math.log(relative_spread)) + math.log(n), log_mean + 1)


@pytest.mark.parametrize(
    ("stages", "reason"),
    [
        (stages(z=moments(0, 10)), "effective sample size 19.8 of 2e+03"),
        (stages(bound_z=moments(0.5, 1)), "bound_z run differs by 0.5 nats"),
        (stages(variance=moments(-0.5, 1)), "variance run differs by 0.5 nats"),
        (
            stages(z=replace(moments(0, 1), log_max=math.log(40))),
            "one sample makes 0.02 of Z and 40% of the sum of squares",
        ),
        (stages(z=moments(0, 1), second=moments(0.4, 1)), "two halves differ by 0.4 nats"),
        (stages(z=replace(moments(0, 1), largest=heavy(1.0))), "a Pareto k-hat of"),
    ],
)
def test_each_doubt_is_told_in_words(stages, reason):
    assert reason in record_of("q0", Pilot(-5.0, -1.0, 0.4), stages, "samples")["status"]


def test_agreement_leaves_no_doubt():
    record = record_of("q0", Pilot(-5.0, -1.0, 0.4), stages(), "samples")
    assert (record["status"], record["bound_condition"]) == ("ok", "ok")


def test_an_odd_tail_that_makes_little_of_the_squares_is_no_doubt():
    light = tuple(-10 + value for value in heavy(1.0))
    assert (
        record_of("q0", Pilot(-5.0, -1.0, 0.4), stages(z=replace(moments(0, 1), largest=light)), "")["status"] == "ok"
    )


def test_one_sample_among_many_effective_ones_is_no_doubt():
    """10^6 weights of which one makes a fifth of the squares but a thousandth of Z."""
    many = Moments(10**6, 0.0, math.log(5e6), math.log(1e3))
    assert many.largest_square_share > 0.1
    assert record_of("mixture", Pilot(-5.0, -1.0, 0.4), stages(many, many, many), "")["status"] == "ok"


def test_a_refused_bound_tells_what_the_formula_gives():
    """One weight of 2000 makes nearly all squares; Proposition 1 written out for the 4000 samples of z."""
    r = np.append(np.random.default_rng(0).uniform(1, 2, size=1999), 200.0)
    found = Moments.of_weights(np.log(r))
    record = record_of("q0", Pilot(math.log(0.5), 0.0, 0.1), Stages(found, found, (found, found)), "samples")
    z, t = r.mean(), 0.75
    psi = math.log(z / t) + t / z - 1
    bound = psi / (z - t) ** 2 * r.var(ddof=1) / 4000  # the other term has 0.36^2000
    assert record["log_z_bias_bound"] is None
    assert record["bound_condition"].endswith(f"of the sum of squares; with it the formula gives {bound:.2g} nats")


def test_a_bound_beyond_all_numbers_is_told_in_words_because_json_has_no_infinity():
    """The variance run met a mode, 500 nats above what the run behind the bound's Z saw."""
    rng = np.random.default_rng(0)
    low, high = (Moments.of_weights(level + rng.normal(size=1000)) for level in (0.0, 500.0))
    record = record_of("q0", Pilot(-3.0, -1.5, 0.1), Stages(high, low, (low, low)), "samples")
    assert record["log_z_bias_bound"] is None
    assert record["bound_condition"] == "the bound is too large to be written as a number"
    json.dumps(record, allow_nan=False)
