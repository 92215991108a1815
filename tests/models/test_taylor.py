"""Jets against first and second differences of the same expressions on plain arrays."""

import numpy as np
import pytest

from dkef.core.streams import rng_for
from dkef.models.flows.arithmetic import JETS, NUMPY, Arithmetic, Value
from dkef.models.flows.taylor import Jet

W = rng_for("test", "taylor weights").standard_normal((3, 4))
X = rng_for("test", "taylor rows").standard_normal((5, 3))
EXPRESSIONS = {
    "sum and difference": lambda ops, x: 2.0 - (x + X[:1]) - 0.5 * x,
    "product": lambda ops, x: (x[..., :2] * x[..., 1:]) * X[:1, :2],
    "square": lambda ops, x: (x @ W) * (x @ W),
    "square of itself": lambda ops, x: (lambda y: y * y)(x @ W),
    "exponential": lambda ops, x: ops.exp(-(x @ W)),
    "hyperbolic tangent": lambda ops, x: ops.tanh(x @ W),
    "rectifier": lambda ops, x: ops.relu(x @ W) * (x @ W),
    "log-sum-exp": lambda ops, x: ops.log_sum_exp(3.0 * (x @ W)),
    "split and unfold": lambda ops, x: ops.sum(ops.unfold(ops.exp(ops.split(x @ W, 2)[1]), 2)),
    "sum over the last axis": lambda ops, x: ops.sum(x * x),
}


@pytest.mark.parametrize("name", EXPRESSIONS)
def test_jets_carry_first_and_second_derivatives_in_every_direction(name):
    def expression(ops: Arithmetic, x: Value) -> Value:
        return EXPRESSIONS[name](ops, x)

    jet, h = expression(JETS, Jet.seed(X)), 1e-4
    np.testing.assert_array_equal(jet.value, expression(NUMPY, X))
    for d, step in enumerate(h * np.eye(3)):
        below, here, above = (expression(NUMPY, X + k * step) for k in (-1, 0, 1))
        first, second = (np.broadcast_to(array[d], here.shape) for array in (jet.first, jet.second))
        # Truncation h^2 times fourth derivatives up to 1e3, and rounding 1e-16 / h^2 times values up to 1e2.
        np.testing.assert_allclose(first, (above - below) / (2 * h), rtol=1e-5, atol=1e-5)
        np.testing.assert_allclose(second, (above - 2 * here + below) / h**2, rtol=1e-4, atol=1e-4)


def test_arrays_on_the_left_of_a_jet_do_not_swallow_it():
    assert isinstance(X[0] * Jet.seed(X), Jet)
    assert isinstance(np.float64(2.0) - Jet.seed(X), Jet)


def test_log_sum_exp_neither_overflows_nor_underflows():
    far = np.array([[1e4, 1e4 - 1.0], [-1e4, -1e4 - 1.0]])
    expected = np.array([1e4, -1e4]) + np.log1p(np.exp(-1.0))
    # One addition next to 1e4 in float64.
    np.testing.assert_allclose(NUMPY.log_sum_exp(far), expected, rtol=1e-15)
    assert np.isfinite(JETS.log_sum_exp(Jet.seed(far)).second).all()
