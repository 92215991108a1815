"""Phase 2: regularisers for all training rows, judged by rows that alpha was not fitted to."""

import math
from dataclasses import replace

import numpy as np
import pytest

from dkef.core.arrays import Array
from dkef.core.streams import rng_for
from dkef.models.kef import phase2 as module
from dkef.models.kef.density import density_jet
from dkef.models.kef.graph import KefGraph
from dkef.models.kef.phase2 import FOLDS, Phase2, without
from dkef.models.kef.spec import KernelExponentialFamily
from dkef.models.kef.statistics import solve
from dkef.models.kef.tiles import TiledKernel
from dkef.models.kef.variables import assemble, frozen_names, initial_values, regularisers
from dkef.models.protocol import FitContext
from dkef.training.layout import Layout
from tests.training.small_runs import rows

SPEC = KernelExponentialFamily(
    components=1, layers=1, width=4, inducing_points=8, phase2_batch_rows=10, noise_std=0.0,
    dtype="float64", phase2_stopping="converged",
)  # fmt: skip


TRAIN, VALID = rows("train", 83), rows("valid", 45)


def phase2(spec: KernelExponentialFamily) -> tuple[Phase2, Array]:
    """Phase 2 of a model that phase 1 has not touched, and its vector."""
    values = initial_values(spec, TRAIN, rng_for("test start"))
    layout = Layout.of(values, frozen_names(spec))
    return Phase2(KefGraph(spec, layout), TRAIN, VALID, FitContext()), layout.pack(values)


def loss(stage: Phase2, theta: Array, lambdas: tuple[float, float], fit: Array, judge: Array) -> float:
    """J on the rows `judge` of alpha fitted to the rows `fit`, from the derivatives of log p~ at each of them."""
    values = stage.graph.layout.unpack(theta)
    weights = regularisers(stage.spec, values)._replace(alpha=lambdas[0], c=lambdas[1])
    parameters = assemble(stage.spec, values, alpha=None)
    solution = solve(TiledKernel(parameters, "float64").statistics(fit), weights)
    assert solution is not None
    log_p = density_jet(parameters, judge, solution.alpha)
    return float((log_p.second + 0.5 * log_p.first**2).sum(axis=1).mean())


def mean_loss(stage: Phase2, theta: Array, lambdas: tuple[float, float]) -> float:
    if stage.spec.phase2_stopping == "converged":
        return loss(stage, theta, lambdas, TRAIN, VALID)
    parts = [np.arange(k, len(TRAIN), FOLDS) for k in range(FOLDS)]
    return float(np.mean([loss(stage, theta, lambdas, np.delete(TRAIN, k, axis=0), TRAIN[k]) for k in parts]))


@pytest.mark.parametrize("end", ["converged", "folds"])
def test_no_pair_of_regularisers_on_a_grid_is_better_than_the_one_found(end: str):
    stage, theta = phase2(replace(SPEC, phase2_stopping=end))
    final = stage.run(theta)
    found = mean_loss(stage, theta, (final.lambda_alpha, final.lambda_c))
    decades = 10.0 ** np.arange(-6, 2)
    grid = [mean_loss(stage, theta, (a, c)) for a in decades for c in decades]
    assert found < mean_loss(stage, theta, (SPEC.lambda_alpha, SPEC.lambda_c)) - 1e-3  # there was something to find
    assert found <= min(grid) + 1e-4  # the search ends within a hundredth of a decade
    assert final.iterations < 200


def test_the_alpha_kept_is_that_of_all_training_rows_at_the_regularisers_found():
    stage, theta = phase2(replace(SPEC, phase2_stopping="folds"))
    final = stage.run(theta)
    assert final.validation_loss == pytest.approx(
        loss(stage, theta, (final.lambda_alpha, final.lambda_c), TRAIN, VALID), rel=1e-9
    )


@pytest.mark.parametrize(
    ("change", "wide"),
    [
        ({"phase2_stopping": "folds"}, True),
        ({"phase2_stopping": "converged"}, True),
        ({"phase2_stopping": "fixed", "phase2_iterations": 0, "lambda_alpha": 1e-7}, True),
        ({"phase2_stopping": "fixed", "phase2_iterations": 0}, False),
    ],
)
def test_statistics_are_in_float64_where_lambda_is_or_may_become_too_small_for_float32(change: dict, wide: bool):
    stage, theta = phase2(replace(SPEC, dtype="float32", **change))
    exact, _ = phase2(replace(SPEC, **change))
    error = np.abs(stage.run(theta).alpha / exact.run(theta).alpha - 1).max()
    assert error < 1e-9 if wide else 1e-9 < error < 1e-3


def test_the_quadratic_from_statistics_is_the_loss_up_to_that_of_q0():
    stage, theta = phase2(SPEC)
    (trial,) = stage.trials(theta, stage.statistics(theta, TRAIN))
    parameters = assemble(SPEC, stage.graph.layout.unpack(theta), alpha=None)
    alpha = rng_for("test alpha").normal(size=8)

    def score_loss(alpha: Array) -> float:
        log_p = density_jet(parameters, VALID, alpha)
        return float((log_p.second + 0.5 * log_p.first**2).sum(axis=1).mean())

    assert trial.loss(alpha) == pytest.approx(score_loss(alpha) - score_loss(0 * alpha), rel=1e-9)
    assert trial.loss(None) == math.inf


def test_statistics_of_what_remains_are_those_of_the_remaining_rows():
    stage, theta = phase2(SPEC)
    whole, part = stage.statistics(theta, TRAIN), stage.statistics(theta, TRAIN[:9])
    for rest, direct in zip(without(whole, 83, part, 9), stage.statistics(theta, TRAIN[9:]), strict=True):
        np.testing.assert_allclose(rest, direct, rtol=0, atol=1e-12)


def test_noise_is_on_the_rows_of_the_fit_and_not_on_those_that_judge():
    stage, theta = phase2(replace(SPEC, noise_std=0.3, phase2_stopping="folds"))
    trial = stage.trials(theta, stage.statistics(theta, stage.train))[0]
    np.testing.assert_allclose(trial.judge.G, stage.statistics(theta, TRAIN[::FOLDS]).G, rtol=1e-12)
    noised = np.delete(stage.train, np.arange(0, 83, FOLDS), axis=0)
    np.testing.assert_allclose(trial.fit.G, stage.statistics(theta, noised).G, rtol=0, atol=1e-12)


def test_steps_while_improving_end_at_the_best_regularisers_met_on_the_way():
    stage, theta = phase2(replace(SPEC, phase2_stopping="improving", phase2_learning_rate=0.3, patience=5))
    final, fixed = stage.run(theta), phase2(replace(SPEC, phase2_stopping="fixed", phase2_learning_rate=0.3))[0]
    before = loss(stage, theta, (SPEC.lambda_alpha, SPEC.lambda_c), TRAIN, VALID)
    assert final.validation_loss < before  # at this rate later steps overshoot
    assert final.iterations < SPEC.phase2_iterations
    assert final.validation_loss <= fixed.run(theta).validation_loss


@pytest.mark.parametrize(("size", "per_pass"), [(10, 4), (45, 1), (200, 1)])
def test_steps_take_their_rows_from_passes_over_the_validation_rows_in_batches_of_their_own_size(size, per_pass):
    stage, _ = phase2(replace(SPEC, phase2_batch_rows=size, batch_rows=7))
    one_pass = np.concatenate([stage.batch(i) for i in range(per_pass)])
    assert len(one_pass) == per_pass * min(size, len(VALID))
    assert len(np.unique(one_pass, axis=0)) == len(one_pass)  # no row twice
    assert {tuple(row) for row in one_pass} <= {tuple(row) for row in VALID}


def test_a_fixed_number_of_steps_moves_the_regularisers_by_no_more_than_adam_can():
    stage, theta = phase2(replace(SPEC, phase2_stopping="fixed", phase2_iterations=50, phase2_learning_rate=0.01))
    final = stage.run(theta)
    before = loss(stage, theta, (SPEC.lambda_alpha, SPEC.lambda_c), TRAIN, VALID)
    assert final.iterations == 50
    assert final.validation_loss < before
    assert abs(math.log10(final.lambda_alpha / SPEC.lambda_alpha)) <= 0.5


@pytest.mark.parametrize("alpha", [None, np.full(8, math.inf), np.array([math.nan, *np.ones(7)])])
def test_a_run_that_ends_without_a_finite_alpha_keeps_q0_alone_and_says_that_it_is_not_solved(alpha, monkeypatch):
    stage, theta = phase2(replace(SPEC, phase2_iterations=0, phase2_stopping="fixed"))
    monkeypatch.setattr(Phase2, "alpha", lambda *_: alpha)
    final = stage.run(theta)
    assert not final.solved
    assert (final.alpha == 0).all()
    assert math.isfinite(final.validation_loss)


def test_slopes_from_kept_derivatives_are_those_of_the_graph_on_the_same_rows(monkeypatch):
    stage, theta = phase2(replace(SPEC, phase2_stopping="fixed"))
    alpha = rng_for("test alpha").normal(size=8)
    witnesses = [stage.graph.loss_gradients(theta, alpha, stage.batch(i))[1] for i in range(9)]  # tapes, two passes
    kept = stage.partials(theta)
    monkeypatch.setattr(module, "KEPT_BYTES", 0)
    anew = stage.partials(theta)
    for i, witness in enumerate(witnesses):
        for by_alpha, by_theta in (kept(i, theta, alpha), anew(i, theta, alpha)):
            np.testing.assert_allclose(by_alpha, witness, rtol=1e-11, atol=1e-13)
            assert not by_theta.any()  # the regularisers do not enter J at a fixed alpha


def test_noised_rows_are_those_of_the_step(monkeypatch):
    stage, theta = phase2(replace(SPEC, phase2_stopping="fixed", noise_std=0.3, validation_noise=True))
    alpha = rng_for("test alpha").normal(size=8)
    witness = stage.graph.loss_gradients(theta, alpha, stage.batch(3))[1]
    np.testing.assert_allclose(stage.partials(theta)(3, theta, alpha)[0], witness, rtol=1e-11, atol=1e-13)
    assert not np.isin(stage.batch(3), VALID).any()


@pytest.mark.parametrize("moving", ["lambda", "lambda_and_q0"])
def test_the_gradient_equals_finite_differences_through_the_solve(moving: str):
    stage, theta = phase2(replace(SPEC, phase2_stopping="fixed", phase2_parameters=moving))
    statistics = stage.statistics(theta, TRAIN)

    def loss(at: Array) -> float:
        alpha = stage.alpha(at, statistics)
        return float(stage.graph.tiled(at).loss_rows(stage.batch(2), alpha).mean())

    partials = stage.partials(theta)
    gradient = stage.gradient(theta, statistics, stage.solution(theta, statistics), lambda *at: partials(2, *at))
    moving_places = np.flatnonzero(stage.moving)
    assert not gradient[stage.moving == 0].any()
    for place in moving_places:
        unit, h = np.eye(len(theta))[place], 1e-5
        slope = (loss(theta + h * unit) - loss(theta - h * unit)) / (2 * h)
        assert gradient[place] == pytest.approx(slope, rel=1e-5, abs=1e-8)
