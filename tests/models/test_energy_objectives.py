"""Objectives of an energy network: expectations over all signs or by quadrature, and the loss that judges a run."""

import itertools
from dataclasses import replace

import numpy as np
import pytest

from dkef.core.arrays import Array
from dkef.core.streams import rng_for
from dkef.models.energy_net.density import layers_of
from dkef.models.energy_net.fit import base_measure, initial_values
from dkef.models.energy_net.objectives import draw_noise, exact, loss_rows
from dkef.models.energy_net.spec import EnergyNetwork
from dkef.models.protocol import FitContext
from tests.models.test_objectives import OTHERS, all_signs, quadrature
from tests.training.small_runs import rows

TOPS = ["tanh", "softplus"]


def example(top: str, depth: int):
    """A small network whose output is not small, with its q0."""
    spec = EnergyNetwork(layers=depth, width=2, top_activation=top)
    values = initial_values(spec, rows("energy", 20), rng_for("test energy", top, depth)) | {"v": np.array([1.3, -0.8])}
    return spec, layers_of(values, top), base_measure(values)


@pytest.mark.parametrize("top", TOPS)
@pytest.mark.parametrize("depth", [1, 2, 3])
@pytest.mark.parametrize("objective", ["sliced", "sliced_vr", "curvature_propagation"])
def test_over_all_signs_the_mean_is_the_exact_loss(objective: str, depth: int, top: str):
    spec, layers, q0 = example(top, depth)
    spec, x = replace(spec, objective=objective), rows("energy points", 4)
    drawn = draw_noise(spec, x.shape, rng_for("test signs"))
    assert drawn is not None
    signs = np.tile(all_signs(drawn.shape[2]), (4, 1, 1))
    np.testing.assert_allclose(loss_rows(spec, layers, q0, x, signs), exact(layers, q0, x), rtol=1e-11, atol=1e-12)
    alone = loss_rows(spec, layers, q0, x, signs[:, :1])
    assert np.abs(alone - exact(layers, q0, x)).max() > 1e-4


def test_finite_differences_approach_the_slices_with_the_square_of_the_step():
    spec, layers, q0 = example("tanh", 2)
    x, signs = rows("energy points", 4), rng_for("test energy signs").choice([-1.0, 1.0], size=(4, 3, 2))
    limit = loss_rows(replace(spec, objective="sliced"), layers, q0, x, signs)
    difference = replace(spec, objective="finite_difference")
    errors = [
        np.abs(loss_rows(replace(difference, difference_step=step), layers, q0, x, signs) - limit)
        for step in (0.1, 0.05, 0.025)
    ]
    for coarse, fine in itertools.pairwise(errors):
        np.testing.assert_allclose(coarse / fine, 4.0, rtol=0.05)  # the next term is of fourth order


def test_denoising_expects_the_exact_loss_of_noised_rows():
    spec, layers, q0 = example("tanh", 2)
    spec, x = replace(spec, objective="denoising", denoising_std=0.2), np.array([[0.4, -0.3]])
    e, weights = quadrature(16)
    ours = weights @ loss_rows(spec, layers, q0, np.repeat(x, len(e), 0), e[:, None])
    assert float(ours) == pytest.approx(float(weights @ exact(layers, q0, x + 0.2 * e)), rel=1e-8)


@pytest.mark.parametrize("top", TOPS)
def test_approximate_backprop_is_exact_for_one_layer_and_not_for_two(top: str):
    x = rows("energy points", 4)

    def error(depth: int) -> float:
        spec, layers, q0 = example(top, depth)
        ours = loss_rows(replace(spec, objective="approximate_backprop"), layers, q0, x, None)
        return float(np.abs(ours - exact(layers, q0, x)).max())

    assert error(1) < 1e-12
    assert error(2) > 1e-3


@pytest.mark.parametrize("objective", ["exact", *OTHERS])
def test_a_run_is_judged_by_the_exact_loss_and_repeats_itself(objective: str):
    spec = EnergyNetwork(width=4, batch_rows=20, max_iterations=6, validation_interval=3, objective=objective)
    train, valid = rows("energy run", 60), rows("energy run, validation", 25)
    fit = spec.fit(train, valid, FitContext())
    at = fit.model.evaluate(valid)
    loss = float((at.curvature + 0.5 * at.score**2).sum(axis=1).mean())
    assert fit.status == "ok"
    assert fit.notes["best_validation_loss"] == pytest.approx(loss, rel=1e-9)
    assert fit.trace == spec.fit(train, valid, FitContext()).trace


def test_gradients_of_all_objectives_equal_finite_differences():
    import tensorflow as tf

    for objective in OTHERS:
        spec = EnergyNetwork(layers=2, width=3, objective=objective, slices=2)
        x = rows("energy points", 5)
        values = initial_values(spec, x, rng_for("test energy gradient"))
        noise = draw_noise(spec, x.shape, rng_for("test energy noise", objective))
        direction = {name: rng_for("direction", name).normal(size=a.shape) for name, a in values.items()}

        def loss(t: float, spec=spec, values=values, x=x, noise=noise, direction=direction) -> Array:
            at = {name: a + t * direction[name] * (name != "beta") for name, a in values.items()}
            return loss_rows(spec, layers_of(at, "tanh"), base_measure(at), x, noise).mean()

        t = tf.constant(0.0, tf.float64)
        with tf.GradientTape() as tape:
            tape.watch(t)
            at = {name: a + t * direction[name] * (name != "beta") for name, a in values.items()}
            drawn = None if noise is None else tf.constant(noise)
            rows_of = loss_rows(spec, layers_of(at, "tanh"), base_measure(at), tf.constant(x), drawn)
            mean = tf.reduce_mean(rows_of)
        h = 1e-4
        slope = (loss(-2 * h) - 8 * loss(-h) + 8 * loss(h) - loss(2 * h)) / (12 * h)
        assert float(tape.gradient(mean, t)) == pytest.approx(float(slope), rel=1e-6), objective
