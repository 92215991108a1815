"""log Z of models that are no kernel families, against quadrature; and what each of them may be asked for."""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar, Self

import numpy as np
import pytest
from scipy.stats import kstest, multivariate_t

from dkef.config.schema.normaliser import Annealing, DefensiveMixtureSettings, Normaliser
from dkef.core.arrays import Array
from dkef.core.errors import DkefError
from dkef.metrics.quadrature import integrate
from dkef.models.protocol import DensityModel
from dkef.normaliser.integrand import Integrand, ModelIntegrand, integrand_of
from dkef.normaliser.proposals.store import fit_proposal, read_proposal, weights_of, write_proposal
from dkef.normaliser.proposals.student import StudentT
from dkef.normaliser.run import estimate_in
from tests.models.test_energy_net import random_energy

FEW = DefensiveMixtureSettings(
    centres=100, clusters=6, modes=10, mode_starts=100, adapt_draws=500, adapt_rounds=2, renewals=1
)
CHAINS = Annealing(temperatures=20)


def settings(proposal: Any, samples: int = 20_000) -> Normaliser:
    return Normaliser(
        proposal=proposal, samples=samples, bound_samples=samples, pilot_samples=min(samples, 4000),
        chunk_samples=min(samples, 4000), percentile=20.0, tolerance=0.05 if proposal == "cheapest" else None,
        half_width=0.02 if proposal == "cheapest" else None, defensive_mixture=FEW, annealing=CHAINS,
    )  # fmt: skip


@dataclass(frozen=True)
class Round:
    normalised: ClassVar[bool] = False


class RoundModel(DensityModel, of=Round):
    """log p~(x) = -(|x|^2 - 4)^2 / s: a ring with no more than a log density and a score."""

    def __init__(self, s: float = 2.0, d: int = 2) -> None:
        self.s, self.d = s, d

    @property
    def dimension(self) -> int:
        return self.d

    def log_density(self, x: Array) -> Array:
        log_p: Array = -(((x**2).sum(axis=1) - 4) ** 2) / self.s
        return log_p

    def score(self, x: Array) -> Array:
        gradient: Array = -4 * ((x**2).sum(axis=1, keepdims=True) - 4) * x / self.s
        return gradient

    def sample(self, n: int, rng: np.random.Generator) -> Array:
        angle = rng.uniform(0, 2 * math.pi, n)
        return 2 * np.stack([np.cos(angle), np.sin(angle)], axis=1) + 0.2 * rng.normal(size=(n, 2))

    def arrays(self) -> dict[str, Array]:
        return {"s": np.asarray(self.s)}

    @classmethod
    def restore(cls, settings: Mapping[str, Any], arrays: Mapping[str, Array]) -> Self:
        return cls(float(arrays["s"]))


def exact_log_z(s: float = 2.0) -> float:
    """With u = |x|^2 - 4, d^2 x = pi du: Z = pi integral_-4^inf exp(-u^2 / s) du."""
    return math.log(math.pi * math.sqrt(math.pi * s) / 2 * (1 + math.erf(4 / math.sqrt(s))))


ROWS = RoundModel().sample(500, np.random.default_rng(3))
WITH_BOUND = random_energy()
WITHOUT = random_energy(top="softplus")


@pytest.mark.parametrize("kind", ["mixture", "annealed", "cheapest"])
def test_log_z_of_a_ring_with_a_score_agrees_with_the_closed_form(kind: str, tmp_path: Path) -> None:
    samples = {"mixture": 20_000, "annealed": 600, "cheapest": 200_000}[kind]
    record = estimate_in(tmp_path, integrand_of(RoundModel(), ""), ROWS, settings(kind, samples), ("ring",), 1)
    assert abs(record["log_z"] - exact_log_z()) < 3 * record["log_z_stderr"] < 0.12
    assert record["log_z_low"] < record["log_z"] < record["log_z_high"]
    assert record["status"] == "ok"
    assert record["log_z_bias_bound"] is None
    assert record["bound_condition"] == "RoundModel states no q0, and so no lower bound of its weights"


@pytest.mark.parametrize(("model", "reason"), [
    (WITH_BOUND, None), (WITHOUT, "EnergyModel states no lower bound of log p~ - log q0 (least_f)"),
])  # fmt: skip
@pytest.mark.parametrize("kind", ["q0", "mixture", "cheapest"])
def test_log_z_of_an_energy_network_agrees_with_quadrature(
    model: DensityModel, reason: str | None, kind: str, tmp_path: Path
) -> None:
    truth = integrate(model.log_density, 2).log_z.value
    assert model.q0 is not None
    rows = model.q0.sample(400, np.random.default_rng(1))
    many = settings(kind, 200_000 if kind != "mixture" else 20_000)
    record = estimate_in(tmp_path, integrand_of(model, ""), rows, many, ("net",), 1)
    assert abs(record["log_z"] - truth) < 3 * record["log_z_stderr"] < 0.15
    if reason is None:
        assert record["bound_condition"] == "ok"
        assert 0 < record["log_z_bias_bound"] < 0.05
    else:
        assert (record["log_z_bias_bound"], record["bound_condition"]) == (None, reason)


@pytest.mark.parametrize("kind", ["q0", "mixture"])
def test_weights_of_an_energy_network_stay_above_the_stated_bound(kind: str) -> None:
    integrand = integrand_of(WITH_BOUND, "")
    assert WITH_BOUND.q0 is not None
    rows = WITH_BOUND.q0.sample(200, np.random.default_rng(2))
    weights = weights_of(fit_proposal(kind, integrand, rows, settings(kind), ("a",)), integrand, ("a",))
    assert weights.log_a is not None
    assert weights.log_a < weights.log_r("z", 0, 50_000).min()


def test_a_target_run_is_resumed_without_the_rows_and_gives_the_same(tmp_path: Path) -> None:
    integrand, goal = integrand_of(RoundModel(), ""), settings("cheapest", 100_000)
    record = estimate_in(tmp_path, integrand, ROWS, goal, ("again",), 1)
    assert estimate_in(tmp_path, integrand, None, goal, ("again",), 1) == record
    assert {entry["method"] for entry in record["methods"]} == {"mixture", "annealed"}  # there is no q0


@pytest.mark.parametrize("kind", ["mixture", "annealed"])
def test_a_proposal_without_q0_is_read_from_its_file(kind: str, tmp_path: Path) -> None:
    integrand = integrand_of(RoundModel(), "")
    proposal = fit_proposal(kind, integrand, ROWS, settings(kind), ("file",))
    write_proposal(tmp_path / "p.h5", proposal)
    again = read_proposal(tmp_path / "p.h5", integrand)
    one, two = (weights_of(p, integrand, ("file",)).log_r("z", 1, 300) for p in (proposal, again))
    np.testing.assert_array_equal(one, two)
    with pytest.raises(DkefError, match="an extra array wide_centre"):
        read_proposal(tmp_path / "p.h5", integrand_of(WITH_BOUND, ""))


def test_chunks_of_another_model_or_of_other_code_are_not_used() -> None:
    class Other(RoundModel):
        pass

    digests = {ModelIntegrand(model).digest for model in (RoundModel(), RoundModel(3.0), Other())}
    assert len(digests) == 3
    assert ModelIntegrand(RoundModel()).digest in digests


def test_a_model_without_q0_says_which_proposals_there_are(tmp_path: Path) -> None:
    with pytest.raises(DkefError, match="RoundModel has no q0 to draw from; choose the proposal mixture, annealed or"):
        estimate_in(tmp_path, integrand_of(RoundModel(), ""), ROWS, settings("q0"), ("none",), 1)


def test_a_density_that_is_zero_somewhere_is_refused_in_one_sentence(tmp_path: Path) -> None:
    class Half(RoundModel):
        def log_density(self, x: Array) -> Array:
            return np.where(x[:, 0] > 0, super().log_density(x), -np.inf)

    with pytest.raises(DkefError, match=r"Half: the log density is -inf at \[.*\]; log Z is estimated where it is fin"):
        estimate_in(tmp_path, integrand_of(Half(), ""), ROWS, settings("mixture"), ("half",), 1)


def test_the_curvature_of_a_model_that_gives_only_a_score_is_that_of_the_closed_form() -> None:
    x = np.random.default_rng(4).normal(size=(50, 2))
    exact = -(4 * ((x**2).sum(axis=1, keepdims=True) - 4) + 8 * x**2) / 2.0
    np.testing.assert_allclose(RoundModel().curvature(x), exact, rtol=1e-8, atol=1e-8)
    np.testing.assert_array_equal(RoundModel().evaluate(x).score, RoundModel().score(x))


@pytest.mark.parametrize("d", [1, 3])
def test_student_t_is_scipys(d: int) -> None:
    rng = np.random.default_rng(5)
    factor = np.tril(rng.normal(size=(d, d)), -1) + np.diag(rng.uniform(0.5, 2, d))
    t = StudentT(rng.normal(size=d), factor)
    x = t.centre + 5 * rng.normal(size=(40, d))
    exact = multivariate_t(t.centre, factor @ factor.T, df=3)
    np.testing.assert_allclose(t.log_density(x) - t.log_normaliser(), np.atleast_1d(exact.logpdf(x)), rtol=1e-12)
    h = 1e-5
    differences = [(t.log_density(x + h * e) - t.log_density(x - h * e)) / (2 * h) for e in np.eye(d)]
    np.testing.assert_allclose(t.score(x), np.stack(differences, axis=1), atol=1e-8)
    one = t.sample(4000, rng)[:, 0]  # a marginal of a multivariate t is a t
    scale = float(np.sqrt((factor @ factor.T)[0, 0]))
    assert kstest(one, "t", (3, t.centre[0], scale)).pvalue > 1e-3


def test_a_normalised_model_is_none() -> None:
    from dkef.models.gaussian.density import GaussianModel

    with pytest.raises(DkefError, match=r"model.h5 holds a GaussianModel, which is normalised and needs no log Z"):
        integrand_of(GaussianModel.fit(ROWS), "model.h5")


def test_every_model_states_what_an_integrand_needs() -> None:
    for integrand in (integrand_of(RoundModel(), ""), integrand_of(WITH_BOUND, "")):
        assert isinstance(integrand, Integrand)
        x = integrand.rounded(ROWS[:5])
        np.testing.assert_allclose(integrand.gradient(x)[0], integrand.log_density(x), rtol=1e-12)
