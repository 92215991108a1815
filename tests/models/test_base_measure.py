"""The generalised normal base measure: derivatives and normaliser."""

import math

import numpy as np
import pytest
from scipy import integrate

from dkef.models.kef.base_measure import SMALLEST_DISTANCE, base_jet
from dkef.models.kef.parameters import BaseMeasure
from tests.models.kef_examples import example_base, example_points


def test_derivatives_equal_finite_differences_of_the_plain_log_density():
    q0 = example_base()
    x = q0.mu + np.sign(example_points(8)) * (0.3 + np.abs(example_points(8)))  # away from the kink at mu
    jet = base_jet(q0, x)
    np.testing.assert_allclose(jet.value, q0.log_density(x), rtol=1e-14)
    # |u|^(beta - 6) <= 0.3^-4.6 = 250 in the errors h^4 f^(5)/30 and h^4 f^(6)/90; rounding 1e-15/h^2.
    h = 1e-3
    for d in range(3):
        q = {j: q0.log_density(x + j * h * np.eye(3)[d]) for j in (-2, -1, 0, 1, 2)}
        first = (q[-2] - 8 * q[-1] + 8 * q[1] - q[2]) / (12 * h)
        second = (-q[-2] + 16 * q[-1] - 30 * q[0] + 16 * q[1] - q[2]) / (12 * h**2)
        np.testing.assert_allclose(jet.first[:, d], first, rtol=0, atol=1e-9)
        np.testing.assert_allclose(jet.second[:, d], second, rtol=0, atol=1e-8)


@pytest.mark.parametrize("beta", [1.2, 1.7, 2.0, 4.5])
def test_the_normaliser_equals_quadrature(beta: float):
    q0 = BaseMeasure(np.array([0.4]), np.array([1.3]), np.array([beta]))
    half, _ = integrate.quad(lambda u: math.exp(-(u**beta) / (2 * 1.3**2)), 0, math.inf, epsabs=1e-13)
    assert q0.log_normaliser() == pytest.approx(math.log(2 * half), abs=1e-9)


def test_beta_two_is_a_normal_distribution_up_to_its_constant():
    q0 = BaseMeasure(np.zeros(2), np.full(2, 2.0), np.full(2, 2.0))
    x = example_points(5, 2)
    jet = base_jet(q0, x)
    np.testing.assert_allclose(jet.first, -x / 4, rtol=1e-13)
    np.testing.assert_allclose(jet.second, -0.25, rtol=1e-13)
    assert q0.log_normaliser() == pytest.approx(math.log(2 * math.pi * 4), abs=1e-13)


def test_at_its_centre_a_sharp_base_measure_has_the_curvature_of_the_smallest_distance():
    q0 = BaseMeasure(np.zeros(1), np.ones(1), np.full(1, 1.5))
    jet = base_jet(q0, np.array([[0.0], [SMALLEST_DISTANCE]]))
    assert jet.first[0, 0] == 0.0
    assert jet.second[0, 0] == jet.second[1, 0] == pytest.approx(-0.375 * SMALLEST_DISTANCE**-0.5, rel=1e-12)
