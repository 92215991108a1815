"""Training with other objectives: the gradient through the solve, the loss that judges, and bad settings."""

import math
from dataclasses import replace

import numpy as np
import pytest

from dkef.config.plan import Plan
from dkef.core.arrays import Array
from dkef.core.errors import ConfigError
from dkef.core.streams import rng_for
from dkef.models.kef.density import inducing_features
from dkef.models.kef.objectives.choice import draw_noise, view
from dkef.models.kef.statistics import solve
from dkef.models.kef.variables import frozen_names, initial_values, regularisers
from dkef.models.protocol import FitContext
from dkef.training.layout import Layout
from tests.models.test_objectives import OTHERS, all_signs, losses
from tests.training.small_runs import TINY, VARIANTS, rows

DEEP = {"components": 2, "layers": 3, "dtype": "float64"}


def start(spec, x: Array):
    from dkef.models.kef.graph import KefGraph

    values = initial_values(spec, x, rng_for("test init", "objectives"))
    layout = Layout.of(values, frozen_names(spec))
    theta = layout.pack(values) + 0.1 * rng_for("test shift", "objectives").normal(size=sum(layout.sizes))
    return KefGraph(spec, layout), theta


@pytest.mark.parametrize("name", ["deep mixture", "gaussian on the data", "linear"])
@pytest.mark.parametrize("objective", OTHERS)
def test_the_split_gradient_equals_finite_differences_through_the_solve(objective: str, name: str):
    spec = replace(TINY, objective=objective, slices=2, dtype="float64", **VARIANTS[name])
    x = rows(name, 40)
    graph, theta = start(spec, x)
    fit_rows, loss_rows = x[:20], x[20:]
    noise = [draw_noise(spec, (20, 2), rng_for("test noise", objective, part)) for part in ("Dt", "Dv")]

    def loss(at: Array) -> float:
        weights = regularisers(spec, graph.layout.unpack(at))
        solution = solve(graph.statistics(at, fit_rows, noise[0]), weights)
        assert solution is not None
        parameters = graph.model(at)[0]
        seen = view(spec, parameters, loss_rows, inducing_features(parameters), noise[1])
        return float(losses(seen, solution.alpha).mean())

    step = graph.step_gradient(theta, fit_rows, loss_rows, *noise)
    assert step is not None
    assert step.loss == pytest.approx(loss(theta), abs=1e-9)
    direction = rng_for("test direction", name).normal(size=(3, theta.size))
    h = 1e-4  # five points, as for the exact loss; differences of values over t^2 are rounded to 1e-12
    tolerance = 1e-6 if objective == "finite_difference" else 1e-7
    for u in direction / np.linalg.norm(direction, axis=1, keepdims=True):
        f = {j: loss(theta + j * h * u) for j in (-2, -1, 1, 2)}
        slope = (f[-2] - 8 * f[-1] + 8 * f[1] - f[2]) / (12 * h)
        assert step.gradient @ u == pytest.approx(slope, rel=tolerance, abs=tolerance)


@pytest.mark.parametrize("objective", ["sliced", "sliced_vr", "curvature_propagation"])
def test_over_all_signs_the_step_is_the_exact_step(objective: str):
    # Without lambda_C, which along directions is another term. All signs as slices leave nothing to chance.
    keys = {"components": 1, "layers": 2, "width": 2, "dtype": "float64", "use_lambda_c": False}
    x = rows("all signs", 40)
    exact, theta = start(replace(TINY, **keys), x)
    columns = 6 if objective == "curvature_propagation" else 2  # two layers and the features, of width 2
    spec = replace(TINY, objective=objective, slices=2**columns, **keys)
    signs = np.tile(all_signs(columns), (20, 1, 1))
    ours = start(spec, x)[0].step_gradient(theta, x[:20], x[20:], signs, signs)
    theirs = exact.step_gradient(theta, x[:20], x[20:])
    assert ours is not None
    assert theirs is not None
    assert ours.loss == pytest.approx(theirs.loss, rel=1e-10)
    np.testing.assert_allclose(ours.gradient, theirs.gradient, rtol=1e-8, atol=1e-10)


@pytest.mark.parametrize("objective", ["sliced", "sliced_vr", "curvature_propagation"])
def test_at_a_fixed_alpha_the_mean_gradient_over_random_signs_is_the_exact_one(objective: str):
    import tensorflow as tf

    spec = replace(TINY, objective=objective, slices=1, **DEEP)
    x = rows("mean gradient", 12)
    graph, theta = start(spec, x)
    alpha = 0.3 * rng_for("test alpha").normal(size=spec.inducing_points)
    direction = rng_for("test direction", "mean gradient").normal(size=theta.size)

    def slope(spec, noise: Array | None) -> float:
        at = tf.constant(theta)
        with tf.GradientTape() as tape:
            tape.watch(at)
            parameters = graph.model(at)[0]
            drawn = None if noise is None else tf.constant(noise)
            seen = view(spec, parameters, tf.constant(x), inducing_features(parameters), drawn)
            f, q0 = seen.sums(tf.constant(alpha)[None]), seen.base()
            first, second = q0.first + f.first[..., 0], q0.second + f.second[..., 0]
            loss = (tf.reduce_sum(first**2) / 2 + tf.reduce_sum(second)) / len(x)
        return float(tape.gradient(loss, at).numpy() @ direction)

    rng, draws = rng_for("test signs", objective), 60
    found = [slope(replace(spec, slices=8), draw_noise(replace(spec, slices=8), x.shape, rng)) for _ in range(draws)]
    error = np.std(found, ddof=1) / math.sqrt(draws)
    truth = slope(replace(spec, objective="exact"), None)
    assert abs(np.mean(found) - truth) < 4 * error  # 60 nearly normal draws: once in 5000 by chance
    assert error < 0.5 * abs(truth) + 0.05 * np.linalg.norm(direction)  # so the line above says something


@pytest.mark.parametrize("objective", OTHERS)
def test_a_run_is_judged_by_the_exact_loss(objective: str):
    spec = replace(TINY, objective=objective, slices=3, **DEEP)
    train, valid = rows("run", 60), rows("run, validation", 25)
    fit = spec.fit(train, valid, FitContext())
    at = fit.model.evaluate(valid)
    loss = float((at.curvature + 0.5 * at.score**2).sum(axis=1).mean())
    assert fit.status == "ok"
    assert fit.notes["final_validation_loss"] == pytest.approx(loss, rel=1e-6)
    assert fit.notes["cpu_seconds_per_step"] > 0
    assert fit.notes["cpu_seconds_per_validation"] > 0
    assert [row["minibatch_loss"] for row in fit.trace] == [
        row["minibatch_loss"] for row in spec.fit(train, valid, FitContext()).trace
    ]


@pytest.mark.parametrize("stopping", ["converged", "folds", "fixed"])
@pytest.mark.parametrize("objective", ["sliced", "denoising"])
def test_every_end_of_phase_2_works_with_other_objectives(objective: str, stopping: str):
    spec = replace(TINY, objective=objective, phase2_stopping=stopping, noise_std=0.0)
    assert spec.fit(rows("phase 2", 60), rows("phase 2, validation", 25), FitContext()).status == "ok"


@pytest.mark.parametrize(
    ("override", "sentence"),
    [
        ("dkef: model.objective=slised", r"model\.objective is 'slised'; allowed is one of exact, sliced, sliced_vr"),
        ("dkef: model.slices=0", r"model\.slices is 0; allowed is >= 1"),
        ("dkef: model.denoising_std=1.5", r"model\.denoising_std is 1\.5; allowed is > 0 and < 1, the standard dev"),
        ("dkef: model.denoising_std=0", r"model\.denoising_std is 0(\.0)?; allowed is > 0"),
        ("maf: model.objective=sliced", r"model maf has no such key, of this experiment .*dkef.* have it"),
    ],
)
def test_a_bad_objective_stops_when_planning_with_one_sentence(override: str, sentence: str):
    with pytest.raises(ConfigError, match=sentence) as caught:
        Plan("laptop", (override,)).check()
    assert "\n" not in str(caught.value)
