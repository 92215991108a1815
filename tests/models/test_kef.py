"""The fitted kernel exponential family: derivatives, storage, normalisability, sampling."""

import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from dkef.core.errors import DkefError
from dkef.core.streams import rng_for
from dkef.models.kef.density import KefModel, density_jet
from dkef.models.kef.langevin import ScoreField
from dkef.models.kef.parameters import BaseMeasure, Component, KefParameters
from dkef.models.protocol import Fit
from dkef.models.storage import load_model, write_model
from tests.models.kef_examples import DEPTHS, KINDS, example_component, example_parameters, example_points


def mixture(kind: str = "gaussian", depth: int = 3) -> KefParameters:
    return example_parameters((example_component(kind, depth), example_component(kind, min(depth + 1, 3), tau=0.5)))


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("depth", DEPTHS)
def test_score_and_curvature_equal_reverse_differentiation_and_its_finite_differences(kind: str, depth: int):
    parameters = mixture(kind, depth)
    x = example_points()
    ours = KefModel(parameters).evaluate(x)
    log_p, score = ScoreField(parameters)(x)
    np.testing.assert_allclose(ours.log_density, log_p, rtol=0, atol=1e-12)
    np.testing.assert_allclose(ours.score, score, rtol=0, atol=1e-12)
    h = 2e-4  # error h^4 times the sixth derivative of log q0 near its kink, |u|^(beta - 6)
    for d in range(3):
        shifted = [ScoreField(parameters)(x + j * h * np.eye(3)[d])[1][:, d] for j in (-2, -1, 1, 2)]
        slope = (shifted[0] - 8 * shifted[1] + 8 * shifted[2] - shifted[3]) / (12 * h)
        np.testing.assert_allclose(ours.curvature[:, d], slope, rtol=1e-7, atol=1e-8)


def test_batches_change_nothing():
    model = KefModel(mixture())
    x = example_points(7)
    whole, parts = model.evaluate(x, batch=7), model.evaluate(x, batch=3)
    # Products of other shapes may add in another order: a few ulp.
    np.testing.assert_allclose(parts.score, whole.score, rtol=1e-12)
    np.testing.assert_allclose(parts.curvature, whole.curvature, rtol=1e-12)
    np.testing.assert_allclose(parts.log_density, model.log_density(x), rtol=1e-12)


@pytest.mark.parametrize("n", [0, 1, 7])
def test_the_score_alone_is_that_of_the_evaluation_at_any_number_of_points(n: int, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(KefParameters, "block_rows", 3)
    model, x = KefModel(mixture()), example_points(n)
    log_p, score = model.log_density_and_score(x)
    # Forward jets against reverse differentiation, block by block.
    np.testing.assert_allclose(score, model.evaluate(x).score, rtol=0, atol=1e-12)
    np.testing.assert_allclose(log_p, model.evaluate(x).log_density, rtol=0, atol=1e-12)
    assert np.array_equal(model.score(x), score)


def test_a_stored_model_is_restored_with_equal_numbers(tmp_path: Path):
    model = KefModel(mixture())
    write_model(tmp_path / "model.h5", Fit(model), {})
    restored = load_model(tmp_path / "model.h5")
    x = example_points()
    assert isinstance(restored, KefModel)
    assert np.array_equal(restored.evaluate(x).curvature, model.evaluate(x).curvature)


def test_log_prob_needs_log_z_and_says_so():
    model = KefModel(mixture())
    with pytest.raises(DkefError, match="log Z is not known"):
        model.log_prob(example_points())
    model.log_z = 1.5
    np.testing.assert_allclose(model.log_prob(example_points()), model.log_density(example_points()) - 1.5)


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        (lambda p: replace(p, q0=replace(p.q0, beta=np.array([2.0, 1.0, 2.0]))), r"beta\[1\] = 1 .* beta > 1"),
        (lambda p: replace(p, q0=replace(p.q0, sigma=np.array([2.0, 1.0, 0.0]))), r"sigma\[2\] of q0 is 0"),
        (lambda p: replace(p, alpha=p.alpha * np.nan), "alpha holds a value that is not finite"),
        (lambda p: replace(p, components=(replace(p.components[0], kind="quadratic"),)), "'quadratic' kernel"),
        (lambda p: replace(p, components=(replace(p.components[0], tau=0.0),)), "tau > 0"),
    ],
)
def test_what_proposition_2_does_not_cover_is_refused_with_the_reason(change, reason: str):
    with pytest.raises(DkefError, match=reason):
        KefModel(change(mixture()))


def test_a_growing_activation_is_refused_under_a_linear_kernel_and_fine_under_a_bounded_one():
    def cubed(kind: str) -> KefParameters:
        component = example_component(kind, 1)
        layer = replace(component.layers[0], activation="cube")
        return example_parameters((replace(component, layers=(layer,)),))

    with pytest.raises(DkefError, match="not known to be Lipschitz"):
        KefModel(cubed("linear"))
    KefModel(cubed("gaussian"))


def test_chains_on_a_gaussian_target_have_its_mean_and_variance():
    # f = 0: the density is q0 itself, here normal with variances 4 and 1 around (1, -1).
    q0 = BaseMeasure(np.array([1.0, -1.0]), np.array([2.0, 1.0]), np.full(2, 2.0))
    parameters = KefParameters(np.zeros(3), np.zeros((3, 2)), (Component("gaussian", 1.0, 1.0, ()),), q0)
    x = KefModel(parameters).sample(4000, rng_for("test chains"))
    # Standard errors of 4000 independent chains: 0.03 of a mean with variance 4, 2.2 % of a variance.
    np.testing.assert_allclose(x.mean(axis=0), q0.mu, atol=0.13)
    np.testing.assert_allclose(x.var(axis=0), [4.0, 1.0], rtol=0.09)


def test_the_density_is_the_same_on_numpy_and_on_tensorflow():
    import tensorflow as tf

    component = example_component("gaussian", 0)
    parameters = example_parameters((component,))
    x = example_points()
    q0 = BaseMeasure(*(tf.constant(a) for a in (parameters.q0.mu, parameters.q0.sigma, parameters.q0.beta)))
    tensors = replace(parameters, z=tf.constant(parameters.z), q0=q0)
    there = density_jet(tensors, tf.constant(x), tf.constant(parameters.alpha))
    here = density_jet(parameters, x, parameters.alpha)
    for a, b in zip(here, there, strict=True):
        np.testing.assert_allclose(a, b.numpy(), rtol=1e-13)


def test_evaluating_a_fitted_model_imports_no_tensorflow():
    code = "import sys, dkef.models.kef.density, dkef.models.kef.spec; sys.exit('tensorflow' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
