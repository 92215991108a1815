"""Jets against first and second differences of the same expressions on plain arrays."""

import numpy as np
import pytest

from dkef.core.backend import NUMPY, Tensor, tensorflow_backend
from dkef.core.streams import rng_for
from dkef.models.jets import JETS, Jet, functions_of, input_product

W = rng_for("test", "taylor weights").standard_normal((3, 4))
X = rng_for("test", "taylor rows").standard_normal((5, 3))
EXPRESSIONS = {
    "sum and difference": lambda ops, x: 2.0 - (x + X[:1]) - 0.5 * x,
    "sum with a function of fewer columns": lambda ops, x: ops.sum(
        (ops.exp(x[..., :1]) + x) + (x + ops.exp(x[..., :1])), -1
    ),
    "product": lambda ops, x: (x[..., :2] * x[..., 1:]) * X[:1, :2],
    "square": lambda ops, x: (x @ W) * (x @ W),
    "square of itself": lambda ops, x: (lambda y: y * y)(x @ W),
    "square of a square": lambda ops, x: (lambda y: y * y)((x @ W) * (x @ W)),
    "product with the input": lambda ops, x: ops.exp(x @ W) * input_product(x, W),
    "exponential": lambda ops, x: ops.exp(-(x @ W)),
    "hyperbolic tangent": lambda ops, x: ops.tanh(x @ W),
    "rectifier": lambda ops, x: ops.relu(x @ W) * (x @ W),
    "softplus": lambda ops, x: ops.softplus(ops.softplus(x @ W) @ W.T),
    "log-sum-exp": lambda ops, x: ops.log_sum_exp(3.0 * (x @ W)),
    "log-sum-exp of curves": lambda ops, x: ops.log_sum_exp(ops.tanh(x @ W)),
    "split and unfold": lambda ops, x: ops.sum(ops.unfold(ops.exp(ops.split(x @ W, [1, 3])[1]), 3), -1),
    "split of curves": lambda ops, x: ops.split(ops.exp(x @ W), [1, 3])[1],
    "sum over the last axis": lambda ops, x: ops.sum(x * x, -1),
}
every_expression = pytest.mark.parametrize("name", EXPRESSIONS)


def expression(name: str, x: Tensor) -> Tensor:
    return EXPRESSIONS[name](functions_of(x), x)


@pytest.mark.parametrize("axis", [0, 1])
@every_expression
def test_jets_carry_first_and_second_derivatives_in_every_direction(name, axis):
    jet, h = expression(name, Jet.seed(X, axis)), 1e-4
    np.testing.assert_array_equal(jet.value, expression(name, X))
    derivatives = [0.0 * jet.first if jet.second is None else jet.second, jet.first]
    for d, step in enumerate(h * np.eye(3)):
        below, here, above = (expression(name, X + k * step) for k in (-1, 0, 1))
        second, first = (np.broadcast_to(array.take(d, axis), here.shape) for array in derivatives)
        # Truncation h^2 times fourth derivatives up to 1e3, and rounding 1e-16 / h^2 times values up to 1e2.
        np.testing.assert_allclose(first, (above - below) / (2 * h), rtol=1e-5, atol=1e-5)
        np.testing.assert_allclose(second, (above - 2 * here + below) / h**2, rtol=1e-4, atol=1e-4)


@every_expression
def test_jets_of_tensors_equal_jets_of_arrays(name):
    import tensorflow as tf

    ours, theirs = expression(name, Jet.seed(X)), expression(name, Jet.seed(tf.constant(X)))
    for part in ("value", "first", "second"):
        if getattr(ours, part) is None:
            assert getattr(theirs, part) is None
        else:
            # A few operations on numbers up to 1e3 in float64.
            np.testing.assert_allclose(getattr(theirs, part), getattr(ours, part), rtol=1e-12, atol=1e-12)


def test_arrays_on_the_left_of_a_jet_do_not_swallow_it():
    assert isinstance(X[0] * Jet.seed(X), Jet)
    assert isinstance(np.float64(2.0) - Jet.seed(X), Jet)


def test_log_sum_exp_neither_overflows_nor_underflows():
    far = np.array([[1e4, 1e4 - 1.0], [-1e4, -1e4 - 1.0]])
    expected = np.array([1e4, -1e4]) + np.log1p(np.exp(-1.0))
    # One addition next to 1e4 in float64.
    np.testing.assert_allclose(NUMPY.log_sum_exp(far), expected, rtol=1e-15)
    assert np.isfinite(JETS.log_sum_exp(Jet.seed(far)).second).all()


def test_softplus_and_its_slope_are_those_of_scipy_and_of_tensorflow():
    from scipy.special import expit

    x = np.array([-800.0, -30.0, -1.0, 0.0, 0.3, 40.0, 800.0])
    for ops in (NUMPY, tensorflow_backend()):
        value, slope = ops.softplus_with_slope(ops.like(x, x))
        # Two roundings of an exponential and a logarithm.
        np.testing.assert_allclose(value, np.logaddexp(0.0, x), rtol=1e-14)
        np.testing.assert_allclose(slope, expit(x), rtol=1e-14)
    np.testing.assert_array_equal(NUMPY.softplus(x), NUMPY.softplus_with_slope(x)[0])
