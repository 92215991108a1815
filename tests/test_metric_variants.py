"""Variants of the metrics: without copies of training rows, robust against one row, and by quadrature."""

import dataclasses

import numpy as np
import pytest
from scipy.special import logsumexp

from dkef.config.schema.metrics import Comparison
from dkef.core.streams import rng_for
from dkef.data.copies import EXACT, NEAR, NONE
from dkef.metrics.case import Case, Normaliser
from dkef.metrics.integrals import Integrals
from dkef.metrics.registry import METRICS, OF_ROWS, outcomes
from dkef.metrics.setup import ComparisonSetup
from dkef.metrics.stein import compare_fssd, fssd, ksd
from dkef.models.evaluation import EvaluatedModel

SETTINGS = Comparison()


def evaluated(x: np.ndarray, slope: float, normalised: bool = True) -> EvaluatedModel:
    """A normal of precision `slope` at x, and the standard normal as the truth."""
    d = x.shape[1]
    log_p = 0.5 * d * np.log(slope / (2 * np.pi)) - 0.5 * slope * (x**2).sum(axis=1)
    record = {"status": "ok", "normalised": normalised, "log_z_status": "ok"}
    return EvaluatedModel(record, log_p, -slope * x, np.full(x.shape, -slope), None, -x)


def case(copies: np.ndarray | None = None, **more: object) -> Case:
    x = rng_for("variants").normal(size=(60, 3))
    setup = ComparisonSetup.draw(x, "made up", 0, SETTINGS)
    made = Case("kef_g", evaluated(x, 1.3), evaluated(x, 1.1), setup, SETTINGS, copies=copies)
    return dataclasses.replace(made, **more)  # type: ignore[arg-type]


def values(of: Case) -> dict[str, float | None]:
    return {outcome.metric: outcome.value for outcome in outcomes(of)}


def some_copies() -> np.ndarray:
    kinds = np.full(60, NONE, dtype=np.int8)
    kinds[[3, 7, 20]] = EXACT
    kinds[41] = NEAR
    return kinds


def test_without_copies_every_statistic_of_rows_is_that_of_the_other_rows() -> None:
    copies = some_copies()
    found, kept = values(case(copies)), copies == NONE
    whole = case()
    x, score = whole.setup.x[kept], whole.model.score[kept]
    assert whole.reference is not None
    other = whole.reference.score[kept]
    locations, width = whole.setup.locations, whole.fssd_width
    expected = {
        "score_loss": np.mean((-1.3 + 0.5 * score**2).sum(axis=1)),
        "log_likelihood": whole.model.log_density[kept].mean(),
        "fisher_divergence": np.mean(0.5 * ((score + x) ** 2).sum(axis=1)),
        "fssd2": fssd(x, score, locations, width).statistic,
        "fssd_p_value": compare_fssd(x, score, other, locations, width).p_value,
        "ksd2": ksd(x, score, whole.setup.median).statistic,
    }
    assert set(expected) == set(OF_ROWS)
    for name, value in expected.items():
        assert found[f"{name}_no_copies"] == pytest.approx(value, rel=1e-9), name
        assert found[f"{name}_no_copies"] != found[name]


def test_where_there_are_no_copies_there_is_nothing_to_leave_out() -> None:
    for copies in (None, np.full(60, NONE, dtype=np.int8)):
        assert not [name for name in values(case(copies)) if name.endswith("_no_copies")]


def test_a_set_of_nothing_but_copies_has_a_status_that_says_so() -> None:
    found = {o.metric: o for o in outcomes(case(np.full(60, EXACT, dtype=np.int8)))}
    assert found["score_loss_no_copies"].status == "undefined: 60 of 60 test rows are copies"
    assert found["score_loss"].status == "ok"


def test_a_subset_of_rows_for_ksd_keeps_its_points() -> None:
    setup = dataclasses.replace(case().setup, ksd_rows=np.array([0, 3, 5, 41, 59]))
    kept = some_copies() == NONE
    less = setup.rows(kept)
    assert less.x[less.ksd_rows].tolist() == setup.x[[0, 5, 59]].tolist()


def test_medians_and_largest_rows_stand_beside_means() -> None:
    whole = case()
    rows = (whole.model.curvature + 0.5 * whole.model.score**2).sum(axis=1)
    found = values(whole)
    assert found["score_loss_median"] == pytest.approx(np.median(rows))
    assert found["score_loss_largest_row"] == pytest.approx(np.abs(rows).max() / np.abs(rows).sum())
    assert found["log_likelihood_median"] == pytest.approx(np.median(whole.model.log_density))


INTEGRALS = Integrals("ok", log_z=2.0, log_z_error=1e-6, kl=0.1, kl_error=1e-6, fisher=0.3, fisher_error=1e-5)
SAMPLED = Normaliser(2.05, "ok", 0.02)


def unnormalised(**more: object) -> Case:
    x = rng_for("variants").normal(size=(60, 3))
    return case(model=evaluated(x, 1.3, normalised=False), normaliser=SAMPLED, **more)


def test_likelihoods_rest_on_quadrature_with_the_sampled_ones_beside() -> None:
    found = values(unnormalised(integrals=INTEGRALS))
    mean = unnormalised().model.log_density.mean()
    assert found["log_likelihood"] == pytest.approx(mean - 2.0)
    assert found["log_likelihood_sampled"] == pytest.approx(mean - 2.05)
    assert found["log_z"] == 2.05
    assert found["log_z_quadrature"] == 2.0
    assert found["log_z_deviation"] == pytest.approx(0.05 / 0.02, rel=1e-4)


def test_doubts_about_log_z_go_with_medians_of_likelihoods() -> None:
    x = rng_for("variants").normal(size=(60, 3))
    doubted = case(model=evaluated(x, 1.3, normalised=False), normaliser=Normaliser(2.0, "untrusted: few", 0.1))
    found = {o.metric: o for o in outcomes(doubted)}
    assert found["log_likelihood_median"].status == "untrusted: few"
    assert found["score_loss_median"].status == "ok"


def test_a_quadrature_that_doubts_itself_leaves_likelihoods_to_samples() -> None:
    doubtful = dataclasses.replace(INTEGRALS, status="untrusted: coarse")
    found = {o.metric: o for o in outcomes(unnormalised(integrals=doubtful))}
    assert found["log_likelihood"].value == found["log_likelihood_sampled"].value
    assert found["log_z_quadrature"].status == "untrusted: coarse"


def test_without_a_grid_there_is_no_metric_of_quadrature() -> None:
    assert not [name for name in values(unnormalised()) if "quadrature" in name or name.endswith("_sampled")]


def test_a_quadrature_that_failed_says_why() -> None:
    broken = {o.metric: o for o in outcomes(unnormalised(integrals=Integrals("invalid: 3 of 9 not finite")))}
    assert broken["log_z_quadrature"].status == "invalid: 3 of 9 not finite"
    assert broken["log_likelihood"].value is not None


def test_figure_6_has_a_p_value_against_dkef_with_fixed_q0() -> None:
    x = rng_for("variants").normal(size=(60, 3))
    other = evaluated(x, 0.8)
    found = values(case(fixed_q0_reference=other))
    whole = case()
    expected = compare_fssd(x, whole.model.score, other.score, whole.setup.locations, whole.fssd_width).p_value
    assert found["fssd_p_value_fixed_q0"] == pytest.approx(expected)
    assert found["fssd_p_value_fixed_q0"] != found["fssd_p_value"]
    assert "fssd_p_value_fixed_q0" not in values(whole)
    own = {o.metric: o for o in outcomes(case(name="dkef_fixed_q0"))}
    assert own["fssd_p_value_fixed_q0"].status == "undefined: the model is its own reference"


def test_variants_stand_behind_their_metric_in_the_tables() -> None:
    names = list(METRICS)
    for name in OF_ROWS:
        assert names.index(f"{name}_no_copies") == names.index(name) + 1


def test_logsumexp_is_the_witness_of_the_example_model() -> None:
    """The example is a density: its log values integrate to one on a grid."""
    axis = np.linspace(-8, 8, 81)
    grid = np.stack(np.meshgrid(axis, axis, axis), axis=-1).reshape(-1, 3)
    assert logsumexp(evaluated(grid, 1.3).log_density) + 3 * np.log(axis[1] - axis[0]) == pytest.approx(0, abs=1e-9)
