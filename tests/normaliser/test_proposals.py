"""log Z by every proposal: unbiased, bounded, reproducible, and chosen by cost."""

import logging
import math
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from scipy.special import logsumexp

from dkef.config import code as dependencies
from dkef.config.schema.normaliser import Annealing, DefensiveMixtureSettings, Normaliser
from dkef.core.errors import DkefError
from dkef.models.kef.parameters import KefParameters
from dkef.normaliser.bias_bound import bias_bound
from dkef.normaliser.chunks import ChunkRun
from dkef.normaliser.estimate import estimate, run_pilot
from dkef.normaliser.integrand import KernelIntegrand
from dkef.normaliser.moments import Moments
from dkef.normaliser.proposals.annealing import AnnealedWeights, Schedule, tight_covariance
from dkef.normaliser.proposals.defensive_mixture import DefensiveMixture, MixtureWeights
from dkef.normaliser.proposals.normals import CutNormals
from dkef.normaliser.proposals.store import (
    Proposal,
    fit_proposal,
    kept_proposal,
    read_proposal,
    weights_of,
    write_proposal,
)
from tests.normaliser.coverage import bump, log_z_of_bump
from tests.normaliser.examples import log_moment, random_kef

LOG = logging.getLogger("test")
MIXTURE = DefensiveMixtureSettings(
    centres=150, clusters=3, modes=5, mode_starts=40, adapt_draws=500, adapt_rounds=2, renewals=1
)
ANNEALING = Annealing(temperatures=12, steps=1, leapfrog=2, pilot_chains=64)
SETTINGS = Normaliser(
    samples=4000,
    bound_samples=2000,
    pilot_samples=2000,
    chunk_samples=1000,
    defensive_mixture=MIXTURE,
    annealing=ANNEALING,
)
KINDS = ["mixture", "annealed"]


def rows_for(parameters: KefParameters) -> np.ndarray:
    """Rows that are not drawn from the model: what h is built around decides its quality, never its correctness."""
    d = parameters.z.shape[1]
    return parameters.q0.mu + 0.8 * np.random.default_rng(0).normal(size=(150, d))


def weights_for(kind: str, parameters: KefParameters, *name: str | int):
    proposal = fit_proposal(kind, KernelIntegrand(parameters), rows_for(parameters), SETTINGS, name)
    return weights_of(proposal, KernelIntegrand(parameters), name)


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


@pytest.mark.parametrize("kind", KINDS)
def test_one_gaussian_bump_agrees_with_its_series(kind):
    models = [bump(np.random.default_rng(seed).normal(size=3), 1.2, 0.7, 1.5 + 0.1 * seed) for seed in range(20)]
    truths = [log_z_of_bump(model) for model in models]
    assert_standard(standard_scores(kind, models, truths, SAMPLES[kind]))


def test_a_poor_guide_makes_chains_slow_and_not_wrong(monkeypatch):
    """With a hundredth of g to guide them, chains have the mean Z all the same, and other weights."""
    models = [random_kef(seed, d=2, alpha_scale=1.5) for seed in range(20)]
    guided = weights_for("annealed", models[0], "guide").log_r("z", 0, 100)
    monkeypatch.setattr("dkef.normaliser.proposals.annealing.GUIDE_SHARE", 0.01)
    assert not np.allclose(weights_for("annealed", models[0], "guide").log_r("z", 0, 100), guided)
    assert_standard(standard_scores("annealed", models, [log_moment(p) for p in models], SAMPLES["annealed"]))


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
    proposal = fit_proposal(kind, KernelIntegrand(parameters), rows_for(parameters), SETTINGS, ("file",))
    write_proposal(tmp_path / "p.h5", proposal)
    again = read_proposal(tmp_path / "p.h5", KernelIntegrand(parameters))
    assert again.digest == proposal.digest
    one, two = (weights_of(p, KernelIntegrand(parameters), ("file",)).log_r("z", 1, 300) for p in (proposal, again))
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
    proposal = fit_proposal(kind, KernelIntegrand(parameters), rows_for(parameters), settings, ("folder",))
    run = ChunkRun(KernelIntegrand(parameters), settings, ("folder",), 1, LOG, proposal)
    record = run.in_folder(tmp_path)
    assert record == estimate(kind, weights_of(proposal, KernelIntegrand(parameters), ("folder",)), settings)
    assert record["proposal"] == kind
    other = fit_proposal("q0", KernelIntegrand(parameters), None, settings, ("folder",))
    files = {stage: sorted(tmp_path.glob(f"{stage}/*.json")) for stage in ("variance", "bound_z", "z")}
    with pytest.raises(DkefError, match="proposal"):
        ChunkRun(KernelIntegrand(parameters), settings, ("folder",), 1, LOG, other).merge(
            tmp_path / "pilot.json", files
        )


def test_annealing_from_a_known_mixture_is_annealing_from_the_one_it_would_fit():
    parameters = random_kef()
    mixture = fit_proposal("mixture", KernelIntegrand(parameters), rows_for(parameters), SETTINGS, ("known",))
    alone = fit_proposal("annealed", KernelIntegrand(parameters), rows_for(parameters), SETTINGS, ("known",))
    assert (
        fit_proposal("annealed", KernelIntegrand(parameters), None, SETTINGS, ("known",), mixture=mixture).digest
        == alone.digest
    )


def test_a_kept_proposal_is_fitted_anew_when_what_it_was_fitted_for_changes(tmp_path, monkeypatch):
    parameters, file = random_kef(), tmp_path / "p.h5"
    told: list[str] = []

    def ask(settings: Normaliser = SETTINGS, model: KefParameters = parameters, rows: int = 150) -> None:
        kept_proposal(
            file, "mixture", KernelIntegrand(model), rows_for(parameters)[:rows], settings, ("kept",), told.append
        )

    ask()
    first = len(told)
    ask()
    ask(replace(SETTINGS, annealing=replace(ANNEALING, temperatures=99), samples=77))  # not read by a mixture
    assert len(told) == first
    for again, arguments in enumerate(
        [
            {"settings": replace(SETTINGS, defensive_mixture=replace(MIXTURE, clusters=2))},
            {"model": random_kef(seed=5)},
            {"rows": 99},
        ]
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
        kept_proposal(tmp_path / name, kind, KernelIntegrand(parameters), rows_for(parameters), SETTINGS, ("kept",))
        return (tmp_path / name).read_bytes()

    first = written("first.h5")
    assert written("again.h5") == first
    edit(module)
    assert written("edited.h5") != first


def test_an_edit_of_the_code_makes_finished_parts_in_a_folder_anew(tmp_path, edit):
    parameters = random_kef()

    def written() -> dict[Path, int]:
        ChunkRun(KernelIntegrand(parameters), SETTINGS, ("folder",), 1, LOG).in_folder(tmp_path)
        return {path: path.stat().st_ino for path in sorted(tmp_path.rglob("*.json"))}

    first = written()
    assert len(first) == 9  # a pilot, 4 chunks of z and 2 each of the bound's
    assert written() == first
    edit("tiles")
    assert not first.items() & written().items()


def test_a_chain_costs_what_its_density_and_its_start_cost_at_every_step():
    parameters = random_kef(m=20)  # two kernels: 40 distances
    h = CutNormals(np.full(400, 1 / 400), np.zeros((400, 2)), np.zeros(400, int), np.eye(2)[None])
    mixture = DefensiveMixture(parameters.q0, h, 0.1)
    schedule = Schedule(np.linspace(0, 1, 6), np.ones(6), np.eye(2), steps=2, leapfrog=3)
    assert MixtureWeights(KernelIntegrand(parameters), mixture).cost == 12  # p~ and the q0 in g, and 400 / 40
    weights = AnnealedWeights(KernelIntegrand(parameters), mixture, schedule)
    places = []
    slopes = weights.slopes
    weights.slopes = lambda x: places.append(len(x)) or slopes(x)
    weights.log_r("z", 0, 5)
    assert weights.cost == 2 * 12 * len(places)  # twice: with gradients


def test_a_model_whose_f_is_not_finite_is_a_sentence_before_anything_is_fitted_to_it():
    parameters = replace(random_kef(), alpha=np.full(20, np.inf))
    with pytest.raises(DkefError, match="f is not finite"):
        fit_proposal("mixture", KernelIntegrand(parameters), rows_for(parameters), SETTINGS, ("infinite",))


def test_rows_are_asked_for_with_a_sentence():
    with pytest.raises(DkefError, match="--data"):
        fit_proposal("mixture", KernelIntegrand(random_kef()), None, SETTINGS, ())
    with pytest.raises(DkefError, match="3 columns, the model 2"):
        fit_proposal("mixture", KernelIntegrand(random_kef()), np.zeros((10, 3)), SETTINGS, ())


def test_chains_measure_their_steps_by_the_mean_precision():
    """In each direction the harmonic mean of the variances: (0.75 / 4 + 0.25 / 1)^-1 and (0.75 / 1 + 0.25 / 9)^-1."""
    rotation = np.array([[0.6, -0.8], [0.8, 0.6]])
    covariances = [rotation @ np.diag(variances) @ rotation.T for variances in ([4.0, 1.0], [1.0, 9.0])]
    h = CutNormals(np.array([0.75, 0.25]), np.zeros((2, 2)), np.arange(2), np.linalg.cholesky(covariances))
    expected = rotation @ np.diag([16 / 7, 9 / 7]) @ rotation.T
    np.testing.assert_allclose(tight_covariance(h), expected, rtol=1e-12)


# Files of proposals that no fit has written

MIXTURE_ARRAYS = {
    "weights": np.array([0.5, 0.5]), "centres": np.zeros((2, 2)), "shape": np.array([0, 0]),
    "factors": np.eye(2)[None], "q0_share": np.asarray(0.1),
}  # fmt: skip
ANNEALED_ARRAYS = MIXTURE_ARRAYS | {
    "b": np.array([0.0, 0.5, 1.0]), "step": np.ones(3), "metric": np.eye(2), "steps": np.asarray(1),
    "leapfrog": np.asarray(2),
}  # fmt: skip


@pytest.mark.parametrize(
    ("kind", "arrays", "fault"),
    [
        ("mixture", {}, "no array centres"),
        ("magic", {}, "kind is 'magic'"),
        ("q0", MIXTURE_ARRAYS, "an extra array centres"),
        (
            "mixture",
            MIXTURE_ARRAYS | {"weights": np.array([0.5, 0.6])},
            "weights are not positive numbers that add to 1",
        ),
        ("mixture", MIXTURE_ARRAYS | {"weights": np.array([0.5, np.nan])}, "weights are not all finite"),
        ("mixture", MIXTURE_ARRAYS | {"weights": np.ones(1)}, "centres have the shape"),
        ("mixture", MIXTURE_ARRAYS | {"centres": np.zeros((2, 3))}, r"the shape \(2, 3\), which does not fit"),
        ("mixture", MIXTURE_ARRAYS | {"shape": np.array([0, 1])}, "shape are not numbers from 0 to 0"),
        ("mixture", MIXTURE_ARRAYS | {"shape": np.zeros(2)}, "shape are float64, not int64"),
        ("mixture", MIXTURE_ARRAYS | {"factors": np.ones((1, 2, 2))}, "factors are not lower triangular"),
        ("mixture", MIXTURE_ARRAYS | {"factors": np.zeros((1, 2, 2))}, "factors are not lower triangular"),
        ("mixture", MIXTURE_ARRAYS | {"q0_share": np.asarray(1.0)}, "q0_share are not between 0 and 1"),
        ("annealed", MIXTURE_ARRAYS, "no array b"),
        ("annealed", ANNEALED_ARRAYS | {"b": np.array([0.0, 0.5, 0.9])}, "b are not rising from 0 to 1"),
        ("annealed", ANNEALED_ARRAYS | {"b": np.array([0.0, 1.5, 1.0])}, "b are not rising from 0 to 1"),
        ("annealed", ANNEALED_ARRAYS | {"steps": np.asarray(0)}, "steps are not at least 1"),
        ("annealed", ANNEALED_ARRAYS | {"metric": np.zeros((2, 2))}, "metric are not lower triangular"),
    ],
)
def test_a_forged_proposal_is_refused_with_what_is_wrong_in_it(tmp_path, kind, arrays, fault):
    write_proposal(tmp_path / "p.h5", Proposal(kind, arrays))
    with pytest.raises(DkefError, match=rf"p\.h5 is not a proposal of the normalise stage \(it.*{fault}.*; delete it"):
        read_proposal(tmp_path / "p.h5", KernelIntegrand(random_kef()))
