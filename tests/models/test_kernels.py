"""Kernel derivatives against automatic differentiation and finite differences, for every kernel and depth."""

import numpy as np
import pytest

from dkef.core.streams import rng_for
from dkef.models.kef.kernels import Derivatives, KernelJet, derivatives, expansion, kernel_jet, kernel_matrix
from dkef.models.kef.parameters import Component
from dkef.models.layers import Layer, feature_jet, features
from tests.models.kef_examples import DEPTHS, KINDS, example_component, example_points

CASES = [(kind, depth) for kind in KINDS for depth in DEPTHS]


def derivatives_at(component: Component, x: np.ndarray, z: np.ndarray) -> Derivatives:
    """[n, d, m] each."""
    return derivatives(component, jet_at(component, x, z))


def jet_at(component: Component, x: np.ndarray, z: np.ndarray) -> KernelJet:
    return kernel_jet(component, feature_jet(x, component.layers), features(z, component.layers))


def as_tensors(component: Component) -> Component:
    import tensorflow as tf

    layers = tuple(
        Layer(
            tf.constant(la.weight),
            tf.constant(la.bias),
            None if la.skip is None else tf.constant(la.skip),
            la.activation,
        )
        for la in component.layers
    )
    return Component(component.kind, component.rho, component.tau, layers)


@pytest.mark.parametrize(
    ("kind", "depth", "top"), [(*case, "softplus") for case in CASES] + [("gaussian", 3, "linear")]
)
def test_first_and_second_derivatives_equal_nested_gradient_tapes(kind: str, depth: int, top: str):
    import tensorflow as tf

    component = example_component(kind, depth, top=top)
    x, z = example_points(5), example_points(4)
    tensors, point = as_tensors(component), tf.constant(x)
    with tf.GradientTape() as outer:
        outer.watch(point)
        with tf.GradientTape() as inner:
            inner.watch(point)
            k = kernel_matrix(tensors, features(point, tensors.layers), features(tf.constant(z), tensors.layers))
        jacobian = inner.batch_jacobian(k, point)  # [n, m, d]
    hessian = outer.batch_jacobian(jacobian, point, unconnected_gradients="zero").numpy()
    ours = derivatives_at(component, x, z)
    np.testing.assert_allclose(ours.first, np.swapaxes(jacobian.numpy(), 1, 2), rtol=0, atol=1e-12)
    np.testing.assert_allclose(ours.second, np.einsum("nmdd->ndm", hessian), rtol=0, atol=1e-12)


@pytest.mark.parametrize(("kind", "depth"), CASES)
def test_first_and_second_derivatives_equal_finite_differences_of_the_plain_kernel(kind: str, depth: int):
    component = example_component(kind, depth)
    x, z = example_points(5), example_points(4)
    ours = derivatives_at(component, x, z)
    # Five-point stencils with errors h^4 f'''''/30 and h^4 f''''''/90, and rounding 1e-16/h and 1e-16/h^2:
    # h = 4e-3 leaves a few 1e-10 of both kinds in the second derivative of functions whose scale is 1.
    h = 4e-3
    for d in range(3):
        shift = h * np.eye(3)[d]
        k = {j: component.kernel(x + j * shift, z) for j in (-2, -1, 0, 1, 2)}
        first = (k[-2] - 8 * k[-1] + 8 * k[1] - k[2]) / (12 * h)
        second = (-k[-2] + 16 * k[-1] - 30 * k[0] + 16 * k[1] - k[2]) / (12 * h**2)
        np.testing.assert_allclose(ours.first[:, d], first, rtol=0, atol=1e-8)
        np.testing.assert_allclose(ours.second[:, d], second, rtol=0, atol=1e-8)


# n d m < (n + m) (w + 1)^2 forms the quadratic term one by one, the others by second moments: both sides are here.
@pytest.mark.parametrize(("d", "w"), [(2, 12), (6, 3), (3, 5)])
@pytest.mark.parametrize(("kind", "depth"), CASES)
def test_the_contracted_expansion_equals_the_sum_over_inducing_points(kind: str, depth: int, d: int, w: int):
    component = example_component(kind, depth, d, w)
    x, z = example_points(30, d), example_points(20, d)
    alpha = rng_for("test alpha").normal(size=(2, 20))
    ours = expansion(component, jet_at(component, x, z), alpha)
    loop = derivatives_at(component, x, z)
    np.testing.assert_allclose(ours.value, component.kernel(x, z) @ alpha.T, rtol=0, atol=1e-11)
    np.testing.assert_allclose(np.broadcast_to(ours.first, (30, d, 2)), loop.first @ alpha.T, rtol=0, atol=1e-11)
    np.testing.assert_allclose(np.broadcast_to(ours.second, (30, d, 2)), loop.second @ alpha.T, rtol=0, atol=1e-11)


def test_both_ways_of_the_quadratic_term_are_taken_by_the_cases_above():
    n, m = 30, 20
    assert {n * d * m < (n + m) * (w + 1) ** 2 for d, w in [(2, 12), (6, 3), (3, 5)]} == {True, False}


def test_float32_derivatives_of_far_away_features_keep_five_digits():
    # Without the common shift of the features the expanded square |phi|^2 - 2 phi.psi + |psi|^2 at |phi| ~ 2000
    # would lose all digits of distances near 1 in float32.
    x, z = example_points(20) + 1000, example_points(10) + 1000
    component = Component("gaussian", 1.0, 2.0, ())
    exact = derivatives_at(component, x, z)
    single = derivatives_at(component, x.astype(np.float32), z.astype(np.float32))
    # The inputs themselves are rounded to 6e-5 at 1000; the derivatives here are of order 1.
    np.testing.assert_allclose(single.first, exact.first, rtol=0, atol=5e-4)
    np.testing.assert_allclose(single.second, exact.second, rtol=0, atol=5e-4)
