"""Witnesses: automatic differentiation of a density written out by hand, finite differences, quadrature."""

import math
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from dkef.core.arrays import Array
from dkef.core.errors import DkefError
from dkef.core.streams import rng_for
from dkef.data.synthetic.planar import Rings
from dkef.metrics.quadrature import integrate
from dkef.models.energy_net.density import EnergyModel
from dkef.models.energy_net.fit import EnergyTraining
from dkef.models.energy_net.objectives import exact
from dkef.models.energy_net.spec import EnergyNetwork
from dkef.models.gaussian.density import GaussianModel
from dkef.models.kef.kernels import Expansion
from dkef.models.kef.parameters import BaseMeasure
from dkef.models.protocol import FitContext, fit_model
from dkef.models.storage import load_model, write_model

RINGS = Rings((3.0,), 0.4)
TINY = EnergyNetwork(layers=1, width=8, max_iterations=60, validation_interval=7, batch_rows=32)


def random_energy(d: int = 2, layers: int = 2, width: int = 7, top: str = "tanh", beta: float = 2.0) -> EnergyModel:
    rng = rng_for("test energy", d, layers, width, top)
    weights: dict[str, Array] = {"v": 2 * rng.normal(size=width)}
    for i in range(layers):
        fan_in = width if i else d
        weights[f"weight_{i}"] = rng.normal(size=(fan_in, width)) / math.sqrt(fan_in)
        weights[f"bias_{i}"] = rng.normal(size=width)
    q0 = BaseMeasure(0.3 * rng.normal(size=d), rng.uniform(0.8, 1.6, d), np.full(d, beta))
    return EnergyModel(weights, q0, top)


def by_hand(model: EnergyModel, x: Any) -> Any:
    """log p~ in TensorFlow, written out without the project's layers and jets."""
    from dkef.core.tensorflow import tf

    h, w = x, model.weights
    hidden = sum(name.startswith("weight_") for name in w)
    for i in range(hidden):
        h = tf.linalg.matmul(h, w[f"weight_{i}"]) + w[f"bias_{i}"]
        h = tf.tanh(h) if i == hidden - 1 and model.top_activation == "tanh" else tf.math.log(1 + tf.exp(h))
    q0 = model.q0
    fall = tf.abs(x - q0.mu) ** q0.beta / (2 * q0.sigma**2)
    return tf.linalg.matvec(h, w["v"]) - tf.reduce_sum(fall, axis=1)


@pytest.mark.parametrize("top", ["tanh", "softplus"])
@pytest.mark.parametrize(("d", "layers", "beta"), [(1, 1, 2.0), (2, 2, 1.5), (5, 3, 3.0)])
def test_score_and_curvature_are_those_of_automatic_differentiation(top: str, d: int, layers: int, beta: float) -> None:
    from dkef.core.tensorflow import tf

    model = random_energy(d, layers, top=top, beta=beta)
    x = rng_for("test", "energy points").normal(size=(20, d))
    rows = tf.constant(x)
    with tf.GradientTape() as outer:
        outer.watch(rows)
        with tf.GradientTape() as inner:
            inner.watch(rows)
            log_p = by_hand(model, rows)
        score = inner.gradient(log_p, rows)
    hessian = outer.batch_jacobian(score, rows).numpy()
    at = model.evaluate(x, batch=7)
    np.testing.assert_allclose(at.log_density, log_p.numpy(), rtol=1e-12, atol=1e-12)
    np.testing.assert_allclose(at.score, score.numpy(), rtol=1e-10, atol=1e-10)
    np.testing.assert_allclose(at.curvature, np.diagonal(hessian, axis1=1, axis2=2), rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("top", ["tanh", "softplus"])
def test_what_chains_use_is_the_same_density(top: str) -> None:
    model = random_energy(3, top=top)
    x = rng_for("test", "energy chains").normal(size=(10, 3))
    log_p, score = model.log_density_and_score(x)
    h = 1e-5
    differences = [(model.log_density(x + h * e) - model.log_density(x - h * e)) / (2 * h) for e in np.eye(3)]
    np.testing.assert_allclose(log_p, model.log_density(x), rtol=1e-13)
    np.testing.assert_allclose(score, np.stack(differences, axis=1), atol=1e-8)  # h^2, and 1e-15 / h of rounding


def test_f_never_falls_below_its_stated_bound_and_comes_near_it() -> None:
    model = random_energy(layers=1, width=2)
    bound = model.least_f
    assert bound is not None
    x = 50 * rng_for("test", "energy bound").normal(size=(100_000, 2))  # so far out that every tanh is -1 or 1
    f = model.log_density(x) - model.q0.log_density(x)
    rounding = 1e-15 * float(np.abs(model.log_density(x)).max())  # of the difference
    assert bound - rounding <= f.min() < bound + 1e-3 * abs(bound)
    assert random_energy(top="softplus").least_f is None


def test_the_exact_loss_is_the_sum_over_coordinates(monkeypatch: pytest.MonkeyPatch) -> None:
    jet = Expansion(np.zeros(2), np.array([[1.0, 2.0], [3.0, -4.0]]), np.array([[0.5, -1.0], [2.0, 7.0]]))
    monkeypatch.setattr("dkef.models.energy_net.objectives.density_jet", lambda layers, q0, x: jet)
    model = random_energy()
    ours = exact(model.layers, model.q0, np.ones((2, 2)))
    np.testing.assert_allclose(ours, [0.5 - 1 + (1 + 4) / 2, 2 + 7 + (9 + 16) / 2])


@pytest.mark.parametrize("top", ["tanh", "softplus"])
def test_the_gradient_of_the_loss_is_that_of_finite_differences(top: str) -> None:
    x = RINGS.sample(40, rng_for("test", "energy gradient"))
    spec = replace(TINY, top_activation=top, layers=2, width=3)
    training = EnergyTraining(spec, x[:30], x[30:], FitContext())
    theta, noise = training.start + 0.3, np.zeros((30, 2))
    _, gradient = training._on(training.loss_and_gradient, theta, x[:30], noise)
    h = 1e-5

    def loss(at: Array) -> float:
        return float(training._on(training.loss, at, x[:30]))

    differences = [(loss(theta + h * e) - loss(theta - h * e)) / (2 * h) for e in np.eye(len(theta))]
    np.testing.assert_allclose(gradient.numpy(), differences, rtol=1e-6, atol=1e-6)


def test_a_fit_of_a_ring_is_far_better_than_a_normal_distribution() -> None:
    x = RINGS.sample(2000, rng_for("test", "energy ring"))
    test = RINGS.sample(2000, rng_for("test", "energy ring test"))
    spec = EnergyNetwork(max_iterations=600, learning_rate=0.01)
    fit = fit_model(spec, x[:1800], x[1800:], FitContext(seed=3))
    assert (fit.status, fit.model.normalised) == ("ok", False)
    log_z = integrate(fit.model.log_density, 2).log_z.value
    found = float(fit.model.log_density(test).mean()) - log_z
    normal = float(GaussianModel.fit(x).log_density(test).mean())
    truth = float(RINGS.log_density(test).mean())
    # The ring gains 0.9 nats on a normal; a network that had learnt only its width would gain nothing.
    assert truth - normal > 0.8
    assert found > truth - 0.25
    losses = [row["validation_loss"] for row in fit.trace]
    assert min(losses) == fit.notes["best_validation_loss"] < losses[0] - 1


def test_an_interrupted_run_continues_and_ends_with_the_same_numbers(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("dkef.training.loop.CHECKPOINT_SECONDS", 0.0)
    x = RINGS.sample(200, rng_for("test", "energy resume"))

    class KilledError(Exception):
        pass

    def kill(iteration: int, most: int | None, best: float) -> None:
        if iteration >= 30:
            raise KilledError

    whole = TINY.fit(x[:150], x[150:], FitContext())
    checkpoint = tmp_path / "checkpoint.h5"
    with pytest.raises(KilledError):
        TINY.fit(x[:150], x[150:], FitContext(checkpoint=checkpoint, watch=kill))
    assert checkpoint.exists()
    resumed = TINY.fit(x[:150], x[150:], FitContext(checkpoint=checkpoint))
    assert resumed.trace == whole.trace
    for name, array in whole.model.arrays().items():
        np.testing.assert_array_equal(resumed.model.arrays()[name], array)


def test_a_diverged_run_carries_the_best_model_so_far(monkeypatch: pytest.MonkeyPatch) -> None:
    x = RINGS.sample(200, rng_for("test", "energy diverged"))
    spec = replace(TINY, max_skipped=5, validation_interval=5)
    monkeypatch.setattr(
        "dkef.models.energy_net.fit.loss_rows",
        lambda spec, layers, q0, rows, noise: exact(layers, q0, rows) / (rows.shape[0] != 32),
    )
    fit = spec.fit(x[:150], x[150:], FitContext())  # infinite on minibatches of 32 rows, finite on validation rows
    assert (fit.status, fit.stopped, fit.notes["skipped_steps"]) == ("diverged", "diverged", 5)
    assert np.isfinite(fit.model.log_density(x)).all()


def test_a_file_keeps_the_model(tmp_path: Path) -> None:
    x = RINGS.sample(100, rng_for("test", "energy file"))
    fit = fit_model(TINY, x[:80], x[80:], FitContext())
    write_model(tmp_path / "model.h5", fit, {})
    again = load_model(tmp_path / "model.h5")
    assert again.normalised is False
    np.testing.assert_array_equal(again.log_density(x), fit.model.log_density(x))
    assert again.least_f == fit.model.least_f


def test_samples_follow_the_density() -> None:
    model = random_energy()
    x = model.sample(2000, rng_for("test", "energy sample"))
    z = integrate(model.log_density, 2).log_z.value
    axis = np.linspace(-12, 12, 481)
    grid = np.stack(np.meshgrid(axis, axis), axis=-1).reshape(-1, 2)
    p = np.exp(model.log_density(grid) - z) * (axis[1] - axis[0]) ** 2
    mean, spread = p @ grid, np.sqrt(p @ grid**2 - (p @ grid) ** 2)
    assert p.sum() == pytest.approx(1, abs=1e-4)
    np.testing.assert_allclose(x.mean(axis=0), mean, atol=4 * spread.max() / math.sqrt(2000))


def test_numbers_that_are_not_finite_are_no_model() -> None:
    model = random_energy()
    with pytest.raises(DkefError, match="v holds a value that is not finite; lower the learning rate"):
        EnergyModel(model.weights | {"v": np.full(7, np.nan)}, model.q0, "tanh")
    with pytest.raises(DkefError, match="q0 needs beta > 1"):
        EnergyModel(model.weights, replace(model.q0, beta=np.ones(2)), "tanh")


def test_rows_that_are_not_finite_are_refused() -> None:
    with pytest.raises(DkefError, match="must be there and finite"):
        TINY.fit(np.full((10, 2), np.nan), np.zeros((2, 2)), FitContext())
