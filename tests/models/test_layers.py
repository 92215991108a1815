"""The feature network: its second-order forward pass and its backward pass against automatic differentiation."""

import numpy as np
import pytest

from dkef.core.streams import rng_for
from dkef.models.jets import Jet
from dkef.models.kef.parameters import Component
from dkef.models.layers import Layer, feature_jet, features, features_and_pullback
from tests.models.kef_examples import DEPTHS, example_component, example_layers, example_points


def autodiff_jet(x: np.ndarray, layers: tuple[Layer, ...]) -> Jet:
    """Value, Jacobian and diagonal of the Hessian of each feature, by nested GradientTapes in float64."""
    import tensorflow as tf

    point = tf.constant(x)
    tensors = [
        Layer(
            tf.constant(la.weight),
            tf.constant(la.bias),
            None if la.skip is None else tf.constant(la.skip),
            la.activation,
        )
        for la in layers
    ]
    with tf.GradientTape() as outer:
        outer.watch(point)
        with tf.GradientTape() as inner:
            inner.watch(point)
            phi = features(point, tensors)
        jacobian = inner.batch_jacobian(phi, point)  # [n, w, d]
    hessian = outer.batch_jacobian(jacobian, point).numpy()  # [n, w, d, d]
    return Jet(phi.numpy(), np.swapaxes(jacobian.numpy(), 1, 2), np.einsum("nwdd->ndw", hessian))


@pytest.mark.parametrize("top", ["softplus", "linear"])
@pytest.mark.parametrize("depth", [d for d in DEPTHS if d > 0])
def test_jets_of_networks_of_every_depth_equal_nested_gradient_tapes(depth: int, top: str):
    layers = example_layers(rng_for("test jets", depth, top), 3, depth, 5, top)
    x = example_points()
    ours, witness = feature_jet(x, layers), autodiff_jet(x, layers)
    # Sums of at most 5 x 5 x 5 products of numbers near 1 in float64.
    np.testing.assert_allclose(ours.value, witness.value, rtol=0, atol=1e-12)
    np.testing.assert_allclose(np.broadcast_to(ours.first, witness.first.shape), witness.first, rtol=0, atol=1e-12)
    np.testing.assert_allclose(np.broadcast_to(ours.second, witness.second.shape), witness.second, rtol=0, atol=1e-12)


def test_without_layers_the_features_are_the_data():
    x = example_points()
    jet = feature_jet(x, ())
    assert np.array_equal(jet.value, x)
    assert np.array_equal(jet.first[0], np.eye(3))
    assert not jet.second.any()


def test_features_equal_the_value_of_the_jet_and_the_features_of_the_fitted_component():
    component: Component = example_component("gaussian", 3)
    x = example_points()
    np.testing.assert_allclose(
        features(x, component.layers), feature_jet(x, component.layers).value, rtol=0, atol=1e-14
    )
    np.testing.assert_allclose(features(x, component.layers), component.features(x), rtol=0, atol=1e-14)


@pytest.mark.parametrize("depth", DEPTHS)
def test_the_pullback_is_the_gradient_of_a_weighted_sum_of_features(depth: int):
    layers = example_layers(rng_for("test pullback", depth), 3, depth, 5)
    x = example_points()
    phi, pullback = features_and_pullback(x, layers)
    v = rng_for("test pullback weights").normal(size=phi.shape)
    np.testing.assert_array_equal(phi, features(x, layers))
    # Sums of at most 5 x 5 x 5 products of numbers near 1 in float64.
    np.testing.assert_allclose(
        pullback(v), np.einsum("nw,ndw->nd", v, autodiff_jet(x, layers).first), rtol=0, atol=1e-12
    )


def test_a_softplus_far_from_zero_neither_overflows_nor_loses_its_slope():
    layer = Layer(np.eye(1), np.zeros(1), None, "softplus")
    jet = feature_jet(np.array([[-800.0], [800.0]]), (layer,))
    np.testing.assert_allclose(jet.value[:, 0], [0.0, 800.0], atol=1e-300)
    np.testing.assert_allclose(jet.first[:, 0, 0], [0.0, 1.0], atol=1e-300)
    np.testing.assert_allclose(jet.second[:, 0, 0], [0.0, 0.0], atol=1e-300)
