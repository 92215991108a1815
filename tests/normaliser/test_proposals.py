"""log Z by every proposal: unbiased, bounded, reproducible, and chosen by cost."""

import json
import logging
import math
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from scipy.special import gammaln, logsumexp

from dkef.config import code as dependencies
from dkef.config.schema.normaliser import Annealing, CoverSettings, Normaliser
from dkef.core.errors import DkefError
from dkef.models.kef.parameters import BaseMeasure, Component, KefParameters
from dkef.normaliser.bias_bound import bias_bound
from dkef.normaliser.chunks import ChunkRun
from dkef.normaliser.estimate import estimate, run_pilot
from dkef.normaliser.moments import Moments
from dkef.normaliser.proposals.annealing import AnnealedWeights, Schedule, tight_covariance
from dkef.normaliser.proposals.choice import CheapestRun, Entrant
from dkef.normaliser.proposals.cover import Cover
from dkef.normaliser.proposals.mixture import Mixture, MixtureWeights
from dkef.normaliser.proposals.store import (
    Q0,
    Proposal,
    fit_proposal,
    kept_proposal,
    read_proposal,
    weights_of,
    write_proposal,
)
from tests.normaliser.examples import log_moment, random_kef

LOG = logging.getLogger("test")
COVER = CoverSettings(
    widths=[0.5, 1.0, 2.0], clusters=3, pilot_samples=200, adapt_draws=1000, adapt_rounds=2, renewals=1
)
ANNEALING = Annealing(temperatures=12, steps=1, leapfrog=2, pilot_chains=64)
SETTINGS = Normaliser(
    samples=4000, bound_samples=2000, pilot_samples=2000, chunk_samples=1000, cover=COVER, annealing=ANNEALING
)
KINDS = ["mixture", "annealed"]


def rows_for(parameters: KefParameters) -> np.ndarray:
    """Rows that are not drawn from the model: what h is built around decides its quality, never its correctness."""
    d = parameters.z.shape[1]
    return parameters.q0.mu + 0.8 * np.random.default_rng(0).normal(size=(150, d))


def weights_for(kind: str, parameters: KefParameters, *name: str | int):
    proposal = fit_proposal(kind, parameters, rows_for(parameters), SETTINGS, name)
    return weights_of(proposal, parameters, name)


def standard_scores(kind: str, models: list[KefParameters], truths: list[float], samples: int) -> np.ndarray:
    scores = []
    for seed, (parameters, truth) in enumerate(zip(models, truths, strict=True)):
        moments = Moments.merge(weights_for(kind, parameters, "score", seed).moments("z", 0, samples))
        scores.append((moments.log_mean - truth) / moments.stderr)
    return np.array(scores)


def assert_standard(scores: np.ndarray) -> None:
    """20 standard normal scores: none beyond 4 (chance 1e-3), mean square between 0.3 and 2.2 (chance 1e-3)."""
    assert np.abs(scores).max() < 4
    assert 0.3 < np.mean(scores**2) < 2.2


SAMPLES = {"mixture": 20_000, "annealed": 1500}


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("d", [1, 2])
def test_deep_models_agree_with_quadrature(kind, d):
    models = [random_kef(seed, d=d, alpha_scale=1.5) for seed in range(20)]
    assert_standard(standard_scores(kind, models, [log_moment(p) for p in models], SAMPLES[kind]))


def bump(z: np.ndarray, sigma: float, tau: float, height: float) -> KefParameters:
    """One Gaussian kernel around z on a normal q0."""
    q0 = BaseMeasure(np.zeros(len(z)), np.full(len(z), sigma), np.full(len(z), 2.0))
    return KefParameters(np.array([height]), z[None], (Component("gaussian", 1.0, tau, ()),), q0)


def log_z_of_bump(parameters: KefParameters) -> float:
    """E exp(alpha k) = sum_j alpha^j / j! E k^j, each E k^j a Gaussian integral; as for q0 in test_estimate."""
    (alpha,), (z,), (component,) = parameters.alpha, parameters.z, parameters.components
    variance, j = parameters.q0.sigma[0] ** 2, np.arange(200)
    spread = component.tau + j * variance
    log_moments = 0.5 * len(z) * np.log(component.tau / spread) - j * (z**2).sum() / (2 * spread)
    series = logsumexp(j * math.log(alpha) - gammaln(j + 1) + log_moments)
    return float(series + len(z) * 0.5 * math.log(2 * math.pi * variance))


@pytest.mark.parametrize("kind", KINDS)
def test_one_gaussian_bump_agrees_with_its_series(kind):
    models = [bump(np.random.default_rng(seed).normal(size=3), 1.2, 0.7, 1.5 + 0.1 * seed) for seed in range(20)]
    truths = [log_z_of_bump(model) for model in models]
    assert_standard(standard_scores(kind, models, truths, SAMPLES[kind]))


@pytest.mark.parametrize(("kind", "n"), [("mixture", 30), ("annealed", 20)])
def test_the_bound_covers_the_bias_of_small_samples(kind, n):
    """200 repeats of n weights: log Z - mean log Z^ must not exceed the bound by more than its own standard error."""
    parameters = random_kef(seed=3, d=2, alpha_scale=3.0)
    weights = weights_for(kind, parameters, "cover")
    log_r = weights.log_r("z", 0, 200 * n).reshape(200, n)
    log_z = logsumexp(log_r, axis=1) - math.log(n)
    bias = log_moment(parameters) - log_z.mean()
    pilot = run_pilot(weights, 2000, percentile=30)
    variance = Moments.merge(weights.moments("variance", 0, 4000))
    bound = bias_bound(pilot.log_a, pilot.log_s, pilot.rho, log_moment(parameters), variance.log_variance, n)
    assert bias < bound + 3 * log_z.std() / math.sqrt(200)
    assert pilot.log_a < log_r.min()


@pytest.mark.parametrize("kind", KINDS)
def test_a_proposal_comes_back_from_its_file_and_gives_the_same_weights(kind, tmp_path):
    parameters = random_kef()
    proposal = fit_proposal(kind, parameters, rows_for(parameters), SETTINGS, ("file",))
    write_proposal(tmp_path / "p.h5", proposal)
    again = read_proposal(tmp_path / "p.h5", parameters)
    assert again.digest == proposal.digest
    one, two = (weights_of(p, parameters, ("file",)).log_r("z", 1, 300) for p in (proposal, again))
    np.testing.assert_array_equal(one, two)


@pytest.mark.parametrize("kind", KINDS)
def test_threads_change_nothing(kind):
    weights = weights_for(kind, random_kef(), "threads")
    n = weights.span + 77
    assert weights.moments("z", 0, n, threads=1) == weights.moments("z", 0, n, threads=3)


@pytest.mark.parametrize("kind", KINDS)
def test_chunks_in_a_folder_give_the_estimate_in_memory(kind, tmp_path):
    parameters = random_kef()
    settings = replace(SETTINGS, proposal=kind, samples=600, bound_samples=400, pilot_samples=300, chunk_samples=200)
    proposal = fit_proposal(kind, parameters, rows_for(parameters), settings, ("folder",))
    run = ChunkRun(parameters, settings, ("folder",), 1, LOG, proposal)
    record = run.in_folder(tmp_path)
    assert record == estimate(kind, weights_of(proposal, parameters, ("folder",)), settings)
    assert record["proposal"] == kind
    other = fit_proposal("q0", parameters, None, settings, ("folder",))
    files = {stage: sorted(tmp_path.glob(f"{stage}/*.json")) for stage in ("variance", "bound_z", "z")}
    with pytest.raises(DkefError, match="proposal"):
        ChunkRun(parameters, settings, ("folder",), 1, LOG, other).merge(tmp_path / "pilot.json", files)


def test_annealing_from_a_known_mixture_is_annealing_from_the_one_it_would_fit():
    parameters = random_kef()
    mixture = fit_proposal("mixture", parameters, rows_for(parameters), SETTINGS, ("known",))
    alone = fit_proposal("annealed", parameters, rows_for(parameters), SETTINGS, ("known",))
    assert fit_proposal("annealed", parameters, None, SETTINGS, ("known",), mixture=mixture).digest == alone.digest


def test_a_kept_proposal_is_fitted_anew_when_what_it_was_fitted_for_changes(tmp_path, monkeypatch):
    parameters, file = random_kef(), tmp_path / "p.h5"
    told: list[str] = []

    def ask(settings: Normaliser = SETTINGS, model: KefParameters = parameters, rows: int = 150) -> None:
        kept_proposal(file, "mixture", model, rows_for(parameters)[:rows], settings, ("kept",), told.append)

    ask()
    first = len(told)
    ask()
    ask(replace(SETTINGS, annealing=replace(ANNEALING, temperatures=99), samples=77))  # not read by a mixture
    assert len(told) == first
    for again, arguments in enumerate(
        [{"settings": replace(SETTINGS, cover=replace(COVER, clusters=2))}, {"model": random_kef(seed=5)}, {"rows": 99}]
    ):
        ask(**arguments)
        assert len(told) == (again + 2) * first
    monkeypatch.setattr("dkef.normaliser.proposals.store.sources_digest", lambda *modules: "an edit")
    ask(rows=99)
    assert len(told) == 5 * first


@pytest.fixture
def edit(monkeypatch):
    """A function that makes a module of the package look edited."""
    digest = dependencies._digest

    def edit(module: str) -> None:
        def edited(path: Path, kept: frozenset[str]) -> str:
            return "edited" if path.name == f"{module}.py" else digest(path, kept)

        monkeypatch.setattr(dependencies, "_digest", edited)
        dependencies.sources_digest.cache_clear()

    yield edit
    dependencies.sources_digest.cache_clear()


@pytest.mark.parametrize("kind", ["q0", "mixture"])
@pytest.mark.parametrize("module", ["estimate", "chunks", "bias_bound"])
def test_an_edit_of_the_code_behind_chunks_makes_another_file_of_a_proposal(tmp_path, edit, kind, module):
    parameters = random_kef()

    def written(name: str) -> bytes:
        kept_proposal(tmp_path / name, kind, parameters, rows_for(parameters), SETTINGS, ("kept",))
        return (tmp_path / name).read_bytes()

    first = written("first.h5")
    assert written("again.h5") == first
    edit(module)
    assert written("edited.h5") != first


def test_an_edit_of_the_code_makes_finished_parts_in_a_folder_anew(tmp_path, edit):
    parameters = random_kef()

    def written() -> dict[Path, int]:
        ChunkRun(parameters, SETTINGS, ("folder",), 1, LOG).in_folder(tmp_path)
        return {path: path.stat().st_ino for path in sorted(tmp_path.rglob("*.json"))}

    first = written()
    assert len(first) == 9  # a pilot, 4 chunks of z and 2 each of the bound's
    assert written() == first
    edit("tiles")
    assert not first.items() & written().items()


def test_a_chain_costs_what_its_density_and_its_start_cost_at_every_step():
    parameters = random_kef(m=20)  # two kernels: 40 distances
    cover = Cover(np.full(400, 1 / 400), np.zeros((400, 2)), np.zeros(400, int), np.eye(2)[None])
    mixture = Mixture(parameters.q0, cover, 0.1)
    schedule = Schedule(np.linspace(0, 1, 6), np.ones(6), np.eye(2), steps=2, leapfrog=3)
    assert MixtureWeights(parameters, mixture).cost == 12  # p~ and the q0 in g, and 400 / 40
    weights = AnnealedWeights(parameters, mixture, schedule)
    states = []
    state = weights.state
    weights.state = lambda x: states.append(len(x)) or state(x)
    weights.log_r("z", 0, 5)
    assert weights.cost == 2 * 12 * len(states)  # twice: with gradients


@pytest.mark.parametrize("kinds", [["rows"], ["adapted"], ["bridged"]])
def test_a_model_whose_f_is_not_finite_is_a_sentence_before_any_cover_is_chosen(kinds):
    parameters = replace(random_kef(), alpha=np.full(20, np.inf))
    settings = replace(SETTINGS, cover=replace(COVER, kinds=kinds))
    with pytest.raises(DkefError, match="f is not finite"):
        fit_proposal("mixture", parameters, rows_for(parameters), settings, ("infinite",))


def test_rows_are_asked_for_with_a_sentence():
    with pytest.raises(DkefError, match="--data"):
        fit_proposal("mixture", random_kef(), None, SETTINGS, ())
    with pytest.raises(DkefError, match="3 columns, the model 2"):
        fit_proposal("mixture", random_kef(), np.zeros((10, 3)), SETTINGS, ())


# The choice among proposals

TARGET = replace(
    SETTINGS, proposal="cheapest", samples=4_000_000, bound_samples=2_000_000, pilot_samples=400_000,
    chunk_samples=100_000, tolerance=0.01, percentile=30.0,
)  # fmt: skip


def test_q0_is_chosen_where_it_does(tmp_path):
    parameters = random_kef(seed=1, alpha_scale=0.5)
    record = CheapestRun(parameters, rows_for(parameters), TARGET, ("easy",), 1, LOG).in_folder(tmp_path)
    assert (record["proposal"], record["stopped"], record["status"]) == ("q0", "tolerance", "ok")
    assert record["log_z_bias_bound"] < 0.01
    assert abs(record["log_z"] - log_moment(parameters)) < 5 * record["log_z_stderr"]
    assert list(record["log_z_others"]) == ["mixture"]
    assert not (tmp_path / "annealed").exists()


def test_the_mixture_is_chosen_where_q0_misses_the_mass(tmp_path):
    parameters = bump(np.zeros(8), 1.0, 0.1, 28.0)  # samples of q0 seldom hit it
    rows = 0.08 * np.random.default_rng(1).normal(size=(200, 8))
    record = CheapestRun(parameters, rows, TARGET, ("hard",), 1, LOG).in_folder(tmp_path)
    assert (record["proposal"], record["status"]) == ("mixture", "ok")
    assert record["log_z_bias_bound"] < 0.01
    again = CheapestRun(parameters, rows, TARGET, ("hard",), 2, LOG).in_folder(tmp_path / "fresh")
    assert again == record
    assert CheapestRun(parameters, None, TARGET, ("hard",), 1, LOG).in_folder(tmp_path) == record  # all found there


def test_a_first_look_at_another_model_is_not_taken_for_this_one(tmp_path):
    one, other = random_kef(seed=1, alpha_scale=0.5), random_kef(seed=2, alpha_scale=0.5)
    CheapestRun(one, rows_for(one), TARGET, ("easy",), 1, LOG).in_folder(tmp_path)
    again = CheapestRun(other, rows_for(other), TARGET, ("easy",), 1, LOG)
    assert again.in_folder(tmp_path) == again.in_folder(tmp_path / "fresh")


def test_chains_are_chosen_where_the_mixture_lies_elsewhere_however_few_the_pilot_would_pay_for(tmp_path):
    parameters = bump(np.zeros(10), 1.0, 1.0, 40.0)
    rows = 0.15 + 0.16 * np.random.default_rng(2).normal(size=(200, 10))  # three standard deviations away
    settings = replace(
        TARGET, pilot_samples=20_000, cover=replace(COVER, kinds=["clusters"], widths=[1.0]),
        annealing=replace(ANNEALING, temperatures=40, leapfrog=4),
    )  # fmt: skip
    record = CheapestRun(parameters, rows, settings, ("away",), 1, LOG).in_folder(tmp_path)
    first_look = json.loads((tmp_path / "annealed" / "choice.json").read_text())
    assert first_look["count"] == 500  # 20,000 evaluations would be some twenty chains, of which none can be trusted
    assert (record["proposal"], record["stopped"], record["status"]) == ("annealed", "tolerance", "ok")
    assert record["log_z_bias_bound"] < 0.01
    assert abs(record["log_z"] - log_z_of_bump(parameters)) < 5 * record["log_z_stderr"]


def entrant(log_z: float, relative_error: float, sound: bool = True) -> Entrant:
    """10^4 weights whose mean has a given relative error; one that is not sound has a single weight in its variance."""
    n = 10_000
    log_m2 = 2 * (log_z + math.log(relative_error * n))
    log_max = log_z + 1 if sound else log_z + math.log(relative_error * n)
    return Entrant(Q0, 1, Moments(n, log_z, log_m2, log_max))


def test_an_estimate_that_is_nats_too_small_is_found_out_even_by_one_with_doubts():
    """As seen on MiniBooNE: q0 at 79.6 +- 0.08 without any doubt, a mixture at 89.6 with some; the truth is 89.6."""
    q0, mixture = entrant(79.6, 0.08), entrant(89.6, 0.06, sound=False)
    assert q0.sound
    assert not mixture.sound
    assert q0.misses_mass([q0, mixture])
    assert not mixture.misses_mass([q0, mixture])


def test_where_nothing_can_be_trusted_the_fewest_doubts_decide_and_not_how_sure_an_estimate_looks():
    """90 effective samples by the account of one that rests on a single sample, or 25 and nothing else wrong."""
    overconfident, few = entrant(30.8, 0.105, sound=False), entrant(31.0, 0.2)
    assert (len(overconfident.doubts), len(few.doubts)) == (2, 1)
    run = CheapestRun(random_kef(), None, TARGET, ("none",), 1, LOG)
    assert run._winner([overconfident, few]) is few


def test_an_estimate_with_doubts_that_is_a_little_larger_proves_nothing():
    q0, mixture = entrant(79.6, 0.08), entrant(82.0, 0.06, sound=False)
    assert not q0.misses_mass([q0, mixture])
    assert q0.misses_mass([q0, entrant(82.0, 0.06)])


def test_chains_measure_their_steps_by_the_mean_precision():
    """In each direction the harmonic mean of the variances: (0.75 / 4 + 0.25 / 1)^-1 and (0.75 / 1 + 0.25 / 9)^-1."""
    rotation = np.array([[0.6, -0.8], [0.8, 0.6]])
    covariances = [rotation @ np.diag(variances) @ rotation.T for variances in ([4.0, 1.0], [1.0, 9.0])]
    cover = Cover(np.array([0.75, 0.25]), np.zeros((2, 2)), np.arange(2), np.linalg.cholesky(covariances))
    expected = rotation @ np.diag([16 / 7, 9 / 7]) @ rotation.T
    np.testing.assert_allclose(tight_covariance(cover), expected, rtol=1e-12)


# Files of proposals that no fit has written

COVER_ARRAYS = {
    "weights": np.array([0.5, 0.5]), "centres": np.zeros((2, 2)), "shape": np.array([0, 0]),
    "factors": np.eye(2)[None], "q0_share": np.asarray(0.1),
}  # fmt: skip
ANNEALED_ARRAYS = COVER_ARRAYS | {
    "b": np.array([0.0, 0.5, 1.0]), "step": np.ones(3), "metric": np.eye(2), "steps": np.asarray(1),
    "leapfrog": np.asarray(2),
}  # fmt: skip


@pytest.mark.parametrize(
    ("kind", "arrays", "fault"),
    [
        ("mixture", {}, "no array centres"),
        ("magic", {}, "kind is 'magic'"),
        ("q0", COVER_ARRAYS, "an extra array centres"),
        ("mixture", COVER_ARRAYS | {"weights": np.array([0.5, 0.6])}, "weights are not positive numbers that add to 1"),
        ("mixture", COVER_ARRAYS | {"weights": np.array([0.5, np.nan])}, "weights are not all finite"),
        ("mixture", COVER_ARRAYS | {"weights": np.ones(1)}, "centres have the shape"),
        ("mixture", COVER_ARRAYS | {"centres": np.zeros((2, 3))}, r"the shape \(2, 3\), which does not fit"),
        ("mixture", COVER_ARRAYS | {"shape": np.array([0, 1])}, "shape are not numbers from 0 to 0"),
        ("mixture", COVER_ARRAYS | {"shape": np.zeros(2)}, "shape are float64, not int64"),
        ("mixture", COVER_ARRAYS | {"factors": np.ones((1, 2, 2))}, "factors are not lower triangular"),
        ("mixture", COVER_ARRAYS | {"factors": np.zeros((1, 2, 2))}, "factors are not lower triangular"),
        ("mixture", COVER_ARRAYS | {"q0_share": np.asarray(1.0)}, "q0_share are not between 0 and 1"),
        ("annealed", COVER_ARRAYS, "no array b"),
        ("annealed", ANNEALED_ARRAYS | {"b": np.array([0.0, 0.5, 0.9])}, "b are not rising from 0 to 1"),
        ("annealed", ANNEALED_ARRAYS | {"b": np.array([0.0, 1.5, 1.0])}, "b are not rising from 0 to 1"),
        ("annealed", ANNEALED_ARRAYS | {"steps": np.asarray(0)}, "steps are not at least 1"),
        ("annealed", ANNEALED_ARRAYS | {"metric": np.zeros((2, 2))}, "metric are not lower triangular"),
    ],
)
def test_a_forged_proposal_is_refused_with_what_is_wrong_in_it(tmp_path, kind, arrays, fault):
    write_proposal(tmp_path / "p.h5", Proposal(kind, arrays))
    with pytest.raises(DkefError, match=rf"p\.h5 is not a proposal of the normalise stage \(it.*{fault}.*; delete it"):
        read_proposal(tmp_path / "p.h5", random_kef())
