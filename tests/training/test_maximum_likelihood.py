"""Maximum likelihood of flows: the steps, the stopping rules, and runs that are interrupted or diverge."""

import dataclasses
import logging
import math

import numpy as np
import pytest

from dkef.core.arrays import Array
from dkef.core.errors import ConfigError
from dkef.core.streams import rng_for
from dkef.models.flows.density import FlowModel, draw_flow
from dkef.models.flows.fit import flow_shape
from dkef.models.flows.spec import Flow
from dkef.models.flows.steps import compile_flow
from dkef.models.gaussian.density import GaussianModel
from dkef.models.protocol import Fit, FitContext
from dkef.training import loop
from dkef.training.layout import Layout
from dkef.training.minibatches import Minibatches

MADE = Flow(layers=1, width=16, batch_rows=50, validation_interval=5, max_iterations=20)
MADE_MOG = dataclasses.replace(MADE, layers=0, components=3)
MAF = dataclasses.replace(MADE, layers=2, batch_norm=True)
REAL_NVP = dataclasses.replace(MAF, transform="coupling")
MAF_MOG = dataclasses.replace(MAF, components=3)
FIVE = {"made": MADE, "made_mog": MADE_MOG, "real_nvp": REAL_NVP, "maf": MAF, "maf_mog": MAF_MOG}
every_flow = pytest.mark.parametrize("spec", FIVE.values(), ids=FIVE.keys())


def bent_rows(n: int, *cell: str | int) -> Array:
    """Rows around a parabola in the first two of three coordinates, the third correlated with the first."""
    z = rng_for("test", "bent", *cell).standard_normal((n, 3))
    return np.stack([z[:, 0], z[:, 0] ** 2 - 1 + 0.3 * z[:, 1], 0.8 * z[:, 0] + 0.6 * z[:, 2]], axis=1)


TRAIN, VALID = bent_rows(180, "train"), bent_rows(60, "valid")


def fit(spec: Flow, context: FitContext | None = None) -> Fit:
    return spec.fit(TRAIN, VALID, context or FitContext("bent", "flow", 0))


@every_flow
def test_the_trained_density_in_tensorflow_is_the_saved_density_in_numpy(spec):
    fitted = fit(spec)
    best = max(record["validation_log_likelihood"] for record in fitted.trace)
    # float32 against float64, means of numbers of order 10.
    assert fitted.model.log_density(VALID).mean() == pytest.approx(best, abs=2e-5)
    assert fitted.notes["best_validation_log_likelihood"] == best


@every_flow
def test_training_never_moves_a_masked_weight(spec):
    spec = dataclasses.replace(spec, weight_decay=0.1)
    shape = flow_shape(spec, 3)
    drawn, _ = draw_flow(shape, (16, 16), spec.degrees, spec.input_order, FitContext("bent", "flow", 0).rng("init"))
    fitted = fit(spec).model.arrays()
    for name, free in drawn.free.items():
        assert not fitted[name][free == 0].any()
        assert np.any(fitted[name] != drawn.parameters[name].astype(np.float32))


@pytest.mark.parametrize("spec", [MAF, MADE_MOG], ids=["maf", "made_mog"])
def test_steps_are_those_of_adam_on_the_penalised_mean_negative_log_likelihood(spec):
    spec = dataclasses.replace(spec, weight_decay=0.5, learning_rate=0.01)
    shape = flow_shape(spec, 3)
    drawn, orders = draw_flow(shape, (16, 16), "sequential", "sequential", rng_for("test", "adam"))
    layout = Layout.of(drawn.parameters)
    free = layout.pack(drawn.free).astype(np.float32)
    compiled = compile_flow(spec, shape, layout, free, jit=False)
    batches = TRAIN[:100].reshape(2, 50, 3).astype(np.float32)
    zeros = np.zeros_like(free)
    # Away from 0 every coordinate feels the penalty, even a shift before batch normalisation, which removes it.
    away = 0.3 * rng_for("test", "start").standard_normal(len(free)) * free
    start = (layout.pack(drawn.parameters) + away).astype(np.float32)
    one, two = (
        compiled.advance(start, zeros, zeros, np.int32(0), batches, np.int32(steps)).theta.numpy() for steps in (1, 2)
    )

    def loss(theta: Array, x: Array) -> float:
        # Batch statistics are those of the minibatch: the model with statistics over just these rows.
        model = FlowModel.with_statistics(shape, layout.unpack(theta), orders, x)
        return float(-model.log_density(x).mean() + 0.25 * theta @ theta)

    def slope(theta: Array, x: Array, index: int) -> float:
        h = 1e-5 * np.eye(len(theta))[index]
        return (loss(theta + h, x) - loss(theta - h, x)) / 2e-5

    for index in rng_for("test", "coordinates").choice(np.flatnonzero(free), 12, replace=False):
        g1, g2 = slope(start, batches[0].astype(float), index), slope(one, batches[1].astype(float), index)
        m, v = 0.9 * 0.1 * g1 + 0.1 * g2, 0.999 * 0.001 * g1**2 + 0.001 * g2**2
        step = 0.01 * math.sqrt(1 - 0.999**2) / (1 - 0.9**2) * m / (math.sqrt(v) + 1e-8)
        # Adam divides by the gradient's own size: float32 gradients of 1e-3 leave relative errors near 1e-3.
        assert two[index] - one[index] == pytest.approx(-step, rel=5e-3, abs=1e-6)
        assert one[index] - start[index] == pytest.approx(-0.01 * np.sign(g1), rel=1e-3)


def test_the_reported_training_loss_is_the_mean_over_the_steps_since_the_last_validation():
    single, block = (fit(dataclasses.replace(MADE, validation_interval=k, max_iterations=6)).trace for k in (1, 3))
    losses = np.array([record["training_loss"] for record in single])
    # Sums of three float32 numbers.
    np.testing.assert_allclose(
        [record["training_loss"] for record in block], losses.reshape(2, 3).mean(axis=1), rtol=1e-6
    )


def test_minibatches_show_every_row_once_a_pass_and_depend_on_their_number_alone():
    rows = np.arange(70, dtype=np.float32)[:, None]
    batches = Minibatches(rows, 20, FitContext().rng)
    stream = batches.between(0, 21).ravel()  # 420 rows: six passes
    for number in range(6):
        assert sorted(stream[70 * number : 70 * (number + 1)]) == list(range(70))
    assert not np.array_equal(stream[:70], stream[70:140])
    again = Minibatches(rows, 20, FitContext().rng)
    assert np.array_equal(again.between(13, 17).ravel(), stream[260:340])


def test_made_learns_a_correlated_gaussian():
    mixing = np.array([[1.0, 0.0], [1.2, 0.5]])
    x = rng_for("test", "gaussian").standard_normal((3000, 2)) @ mixing.T
    spec = Flow(width=20, learning_rate=0.01, patience=300, validation_interval=20)
    fitted = spec.fit(x[:2000], x[2000:2500], FitContext("gaussian", "made", 0))
    best = GaussianModel.fit(x[:2000]).log_density(x[2500:]).mean()
    assert fitted.stopped == "converged"
    assert fitted.model.log_density(x[2500:]).mean() == pytest.approx(best, abs=0.03)


def test_mixture_conditionals_learn_two_separate_clusters():
    rng = rng_for("test", "clusters")
    x = rng.standard_normal((2500, 2)) * 0.5 + np.array([4.0, 0.0]) * rng.choice([-1, 1], (2500, 1))
    spec = Flow(layers=0, components=4, width=20, learning_rate=0.01, patience=300, validation_interval=20)
    fitted = spec.fit(x[:1500], x[1500:2000], FitContext("clusters", "made_mog", 0))
    entropy = 2 * (0.5 * math.log(2 * math.pi * math.e) + math.log(0.5)) + math.log(2)
    # The mean of 500 log densities has a standard error of sqrt(1 / 500) = 0.045.
    assert fitted.model.log_density(x[2000:]).mean() == pytest.approx(-entropy, abs=0.15)


def test_patience_is_counted_in_minibatches_or_in_epochs():
    for unit, minibatches in (("minibatches", 8), ("epochs", 8 * 4)):  # 180 rows are four minibatches of 50
        spec = dataclasses.replace(MADE, patience=8, patience_unit=unit, validation_interval=2, max_iterations=None,
                                   learning_rate=0.05)  # fmt: skip
        fitted = fit(spec)
        assert fitted.stopped == "converged"
        assert fitted.notes["iterations"] - fitted.notes["best_iteration"] == minibatches
        assert fitted.trace[0]["iteration"] == minibatches / 4


def test_the_saved_model_is_the_best_of_the_run_and_not_its_last():
    fitted = fit(dataclasses.replace(MADE, learning_rate=0.05, max_iterations=400, patience=1000))
    last = fitted.trace[-1]["validation_log_likelihood"]
    assert fitted.model.log_density(VALID).mean() > last + 0.01


def test_a_run_stops_at_its_iteration_limit_between_validations():
    fitted = fit(dataclasses.replace(MADE, max_iterations=13))
    assert fitted.stopped == "max_iterations"
    assert [record["iteration"] for record in fitted.trace] == [5, 10, 13]


def test_a_run_stops_when_its_time_is_up():
    fitted = fit(dataclasses.replace(MADE, time_budget_hours=1e-9, max_iterations=None))
    assert fitted.stopped == "time_budget"
    assert fitted.status == "ok"
    assert len(fitted.trace) == 1


def test_a_diverged_run_is_recorded_and_carries_the_last_good_model():
    fitted = fit(dataclasses.replace(MADE_MOG, learning_rate=1e30))
    assert (fitted.status, fitted.stopped) == ("diverged", "diverged")
    assert np.isfinite(fitted.model.log_density(VALID)).all()


def test_sums_of_exponentials_as_they_stand_lose_a_run_to_one_far_row():
    """What the authors' MADE-MOG does: 0 in float32 for the density of a row at 100, and no gradient."""
    far = np.concatenate([TRAIN, [[100.0, 0.0, 0.0]]])
    for rows, plain in ((TRAIN, "ok"), (far, "diverged")):
        for spec, status in ((MADE_MOG, "ok"), (dataclasses.replace(MADE_MOG, stable_mixture=False), plain)):
            assert spec.fit(rows, VALID, FitContext("bent", "flow", 0)).status == status


def test_without_far_rows_sums_as_they_stand_change_rounding_only():
    stable, plain = fit(MADE_MOG), fit(dataclasses.replace(MADE_MOG, stable_mixture=False))
    np.testing.assert_allclose(plain.model.log_density(VALID), stable.model.log_density(VALID), rtol=1e-4)


@pytest.mark.parametrize(("spec", "steps"), [(MAF_MOG, 64), (REAL_NVP, 2)], ids=["maf_mog", "real_nvp"])
def test_an_interrupted_run_continues_and_ends_with_the_same_numbers(spec, steps, tmp_path, monkeypatch):
    # With blocks of 2 steps the fifth checkpoint lies between two validations, of which there is one in 5 steps.
    monkeypatch.setattr("dkef.models.flows.fit.BLOCK_STEPS", steps)
    spec = dataclasses.replace(spec, max_iterations=47)
    whole = fit(spec)
    monkeypatch.setattr(loop, "CHECKPOINT_SECONDS", 0.0)
    write, written = loop.write_progress, []

    def write_and_stop(*arguments: object) -> None:
        write(*arguments)
        written.append(1)
        if len(written) == 5:
            raise KeyboardInterrupt

    monkeypatch.setattr(loop, "write_progress", write_and_stop)
    context = FitContext("bent", "flow", 0, checkpoint=tmp_path / "checkpoint.h5")
    with pytest.raises(KeyboardInterrupt):
        fit(spec, context)
    resumed = fit(spec, context)
    assert len(written) > 5
    assert resumed.trace == whole.trace
    assert resumed.notes == whole.notes
    for name, array in whole.model.arrays().items():
        assert np.array_equal(resumed.model.arrays()[name], array)


def test_a_checkpoint_of_other_code_or_settings_is_not_continued_and_the_log_says_so(tmp_path, monkeypatch, caplog):
    context = FitContext("bent", "flow", 0, checkpoint=tmp_path / "checkpoint.h5")
    fit(MADE, context)
    wider = dataclasses.replace(MADE, width=MADE.width + 1)
    with caplog.at_level(logging.INFO):
        fit(wider, context)
        assert "checkpoint.h5 is of other settings, data or code; training starts again" in caplog.text
        caplog.clear()
        monkeypatch.setattr("dkef.training.checkpoint.sources_digest", lambda *modules: "an edit")
        fit(wider, context)
        assert "training starts again" in caplog.text
        assert "continuing" not in caplog.text
        fit(wider, context)
    assert "continuing from iteration" in caplog.text


def test_a_run_says_how_far_it_is_and_how_long_it_may_take(caplog):
    with caplog.at_level(logging.INFO):
        fit(MADE)
    assert "iteration 20: validation loss" in caplog.text
    assert "iterations/s, stopped: max_iterations" in caplog.text


def test_seeds_and_models_have_their_own_random_streams():
    densities = [
        fit(dataclasses.replace(MADE, max_iterations=1), FitContext("bent", "flow", seed)).model.log_density(VALID)
        for seed in (0, 0, 1)
    ]
    assert np.array_equal(densities[0], densities[1])
    assert not np.allclose(densities[0], densities[2])


def test_compiling_changes_rounding_only():
    plain, compiled = (
        fit(dataclasses.replace(MADE, jit_compile=jit)).model.log_density(VALID) for jit in (False, True)
    )
    # 20 steps of Adam in float32.
    np.testing.assert_allclose(compiled, plain, rtol=0, atol=1e-3)


def test_only_long_runs_are_compiled_unless_asked():
    # three times the patience: 600 minibatches whatever the rows, or 600 epochs of rows / 50 minibatches
    assert dataclasses.replace(MADE, max_iterations=None).expected_steps(rows=10**6) == 600
    epochs = dataclasses.replace(MADE, max_iterations=None, patience_unit="epochs")
    assert epochs.expected_steps(rows=500) == 6000
    assert not epochs.compiles(rows=999)
    assert epochs.compiles(rows=1000)
    assert not dataclasses.replace(epochs, max_iterations=11_999).compiles(rows=10**6)
    assert not MADE.compiles(rows=10**6)
    assert dataclasses.replace(MADE, jit_compile=True).compiles(rows=1)
    assert not dataclasses.replace(epochs, jit_compile=False).compiles(rows=10**6)


@pytest.mark.parametrize(
    ("key", "value"),
    [("learning_rate", 0.0), ("layers", 0), ("width", 0), ("degrees", "equal"), ("max_iterations", 0),
     ("transform", "radial"), ("weight_decay", -1.0), ("patience_unit", "seconds"), ("validation_interval", 0),
     ("batch_rows", 0)],
)  # fmt: skip
def test_values_out_of_range_are_named(key, value):
    with pytest.raises(ConfigError, match=rf"^{key} is .*; allowed is "):
        Flow(**{key: value})
