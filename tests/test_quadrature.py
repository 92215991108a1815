"""Quadrature of densities against closed forms and SciPy: log Z, KL, Fisher divergence, shares of mass."""

import math

import numpy as np
import pytest
from scipy.integrate import dblquad, quad
from scipy.special import gamma
from scipy.stats import norm

from dkef.core.arrays import Array
from dkef.core.errors import DkefError
from dkef.data.synthetic.distributions import NormalMixture
from dkef.data.synthetic.source import KNOWN
from dkef.metrics.pointwise import NotFiniteError
from dkef.metrics.quadrature import Integral, box_share, integrate, shell


def normal(mean: list[float], std: float) -> NormalMixture:
    return NormalMixture(np.ones(1), np.array([mean]), np.array([std]))


def within(found: Integral | None, truth: float, slack: float = 1e-12) -> bool:
    """Whether the stated error covers the distance to the truth; rounding of a few hundred nats adds 1e-12."""
    assert found is not None
    return abs(found.value - truth) <= found.error + slack


@pytest.mark.parametrize("mean", [[0.7], [0.7, -2.0]])
def test_normals_have_the_kl_and_fisher_divergence_of_the_closed_form(mean: list[float]) -> None:
    d, s, t = len(mean), 0.6, 1.1
    truth, model = normal([0.0] * d, s), normal(mean, t)
    found = integrate(lambda x: model.log_density(x) + 300.0, d, truth, model.score)
    square = float(np.square(mean).sum())
    kl = d * (math.log(t / s) + s**2 / (2 * t**2) - 0.5) + square / (2 * t**2)
    # score difference is -(x - m) / t^2 + x / s^2: E|.|^2 = d s^2 (1/s^2 - 1/t^2)^2 + |m|^2 / t^4
    fisher = 0.5 * (d * s**2 * (1 / s**2 - 1 / t**2) ** 2 + square / t**4)
    assert found.log_z.value == pytest.approx(300.0, abs=1e-9)
    assert found.kl is not None
    assert found.kl.value == pytest.approx(kl, abs=1e-9)
    assert found.fisher is not None
    assert found.fisher.value == pytest.approx(fisher, abs=1e-9)
    assert within(found.kl, kl)
    assert found.log_z.error < 1e-6
    assert found.reach == 16.0
    assert not found.edge


def test_a_mixture_on_the_line_agrees_with_scipy() -> None:
    truth, model = KNOWN["gaussian_scales"], normal([0.4], 1.2)
    at = np.array([[0.0]])

    def inside(x: float, fisher: bool) -> float:
        at[0, 0] = x
        log_t, log_p = truth.log_density(at)[0], model.log_density(at)[0]
        apart = (model.score(at) - truth.score(at))[0, 0]
        return float(np.exp(log_t) * (0.5 * apart**2 if fisher else log_t - log_p))

    found = integrate(model.log_density, 1, truth, model.score)
    for fisher, value in ((False, found.kl), (True, found.fisher)):
        scipy_value = quad(inside, -12, 14, args=(fisher,), points=[-1.6, -1.0, -0.4], epsabs=1e-11, limit=200)[0]
        assert value is not None
        assert value.value == pytest.approx(scipy_value, abs=1e-9)


def test_a_planar_density_without_a_closed_form_agrees_with_scipy() -> None:
    def log_p(x: Array) -> Array:
        bent: Array = -(np.abs(x[:, 0] - 1) ** 2.6) / 3 - 0.5 * (x[:, 1] - 0.3 * x[:, 0] ** 2) ** 2 + np.sin(x[:, 0])
        return bent

    def density(y: float, x: float) -> float:
        return float(np.exp(log_p(np.array([[x, y]])))[0])

    expected = dblquad(density, -4, 6, lambda x: 0.3 * x**2 - 9, lambda x: 0.3 * x**2 + 9, epsabs=1e-9)[0]
    assert integrate(log_p, 2).log_z.value == pytest.approx(math.log(expected), abs=1e-7)


@pytest.mark.parametrize("name", list(KNOWN))
def test_every_true_density_has_mass_one_and_no_divergence_from_itself(name: str) -> None:
    truth = KNOWN[name]
    # Outside its support a truth has no density; a model that is the truth has none there either.
    found = integrate(truth.log_density, truth.dimension, truth, truth.score)
    assert within(found.log_z, 0.0, 1e-7)
    # MoR grows like 1e-6 / r at the origin, where no rule of this kind is exact
    assert abs(found.log_z.value) < 1e-6
    assert within(found.true_mass, 1.0, 1e-7)
    assert within(found.kl, 0.0, 1e-7)
    assert found.fisher == (0.0, 0.0)


def test_the_edges_of_square_are_edges_of_panels() -> None:
    truth, model = KNOWN["square"], normal([0.0, 0.0], 2.0)
    found = integrate(model.log_density, 2, truth, model.score)
    # E|x|^2 = 6 under U[-3, 3]^2: KL = -log 36 + log(2 pi 4) + 6 / 8, and half the mean of |x|^2 / 16 is 3 / 16
    assert found.kl is not None
    assert found.kl.value == pytest.approx(math.log(8 * math.pi / 36) + 0.75, abs=1e-9)
    assert found.fisher is not None
    assert found.fisher.value == pytest.approx(3 / 16, abs=1e-9)


@pytest.mark.parametrize("d", [1, 2])
def test_modes_far_from_the_box_are_found_and_the_reach_says_so(d: int) -> None:
    far = np.zeros((2, d))
    far[1, 0] = 300.0
    model = NormalMixture(np.array([0.6, 0.4]), far, np.array([1.0, 12.0]))
    found = integrate(model.log_density, d)
    assert found.reach == 512.0
    assert found.log_z.value == pytest.approx(0.0, abs=1e-6)
    assert within(found.log_z, 0.0)


def test_tails_of_a_linear_kernel_are_followed_to_their_modes() -> None:
    # f grows linearly and q0 falls like |x|^1.4: modes at |x| = (20 c / 1.4)^2.5 = 36 for c = 0.3
    def log_p(x: Array) -> Array:
        return 0.3 * np.abs(x[:, 0]) - np.abs(x[:, 0]) ** 1.4 / 20

    expected = 2 * quad(lambda x: math.exp(0.3 * x - x**1.4 / 20), 0, 1000, points=[30, 60], limit=500)[0]
    found = integrate(log_p, 1)
    assert found.reach > 100
    # the cusp at 0 is an edge of panels
    assert found.log_z.value == pytest.approx(math.log(expected), abs=1e-7)


def test_a_rule_that_is_too_coarse_states_an_error_that_covers_its_own() -> None:
    sharp = normal([0.3, 0.4], 0.02)
    found = integrate(sharp.log_density, 2)
    assert abs(found.log_z.value) > 1e-3  # a deviation of 0.02 where nodes lie 0.06 apart
    assert within(found.log_z, 0.0)


def test_mass_at_the_edge_of_the_last_shell_is_reported() -> None:
    found = integrate(lambda x: -np.log1p(x[:, 0] ** 2), 1)  # Cauchy: 2 / (pi 4096) of the mass lies beyond
    assert found.edge


def test_generalised_normals_have_their_normaliser() -> None:
    beta, sigma = 1.3, 2.0
    expected = 2 * (2 * sigma**2) ** (1 / beta) * gamma(1 + 1 / beta)
    found = integrate(lambda x: -(np.abs(x) ** beta / (2 * sigma**2)).sum(axis=1), 2)
    assert found.log_z.value == pytest.approx(2 * math.log(expected), abs=1e-6)


def test_the_share_of_a_box_is_that_of_the_distribution_function() -> None:
    truth = KNOWN["gaussian_scales"]
    found = box_share(truth.log_density, np.array([-1.6]), np.array([-0.4]), Integral(0.0, 0.0))
    expected = 0.3 * (norm.cdf(3) - norm.cdf(-3)) + 0.7 * (norm.cdf(-1.4) - norm.cdf(-2.6))
    assert found.value == pytest.approx(expected, abs=1e-12)
    plane = box_share(normal([0.0, 0.0], 1.0).log_density, np.array([-1.0, 0.0]), np.array([1.0, 3.0]), Integral(0, 0))
    assert plane.value == pytest.approx((norm.cdf(1) - norm.cdf(-1)) * (norm.cdf(3) - 0.5), abs=1e-12)


def test_values_that_are_no_numbers_are_an_error() -> None:
    with pytest.raises(NotFiniteError, match="log densities of the quadrature not finite"):
        integrate(lambda x: np.where(x[:, 0] > 1, np.nan, -(x[:, 0] ** 2)), 1)
    with pytest.raises(NotFiniteError, match="where the truth has mass not finite"):
        integrate(lambda x: np.where(x[:, 0] > 1, -np.inf, -(x[:, 0] ** 2)), 1, normal([0.0], 1.0))


def test_three_dimensions_are_refused() -> None:
    with pytest.raises(DkefError, match="quadrature in 3 dimensions was asked for; it is possible in 1 and 2"):
        integrate(lambda x: -(x**2).sum(axis=1), 3)


def test_shells_fill_the_space_without_overlap() -> None:
    for d in (1, 2):
        for level, area in ((0, 32.0**d), (1, 64.0**d - 32.0**d), (2, 128.0**d - 64.0**d)):
            assert np.exp(shell(level, d).log_w).sum() == pytest.approx(area)


@pytest.mark.parametrize("share", [3e-7, 3e-5])
def test_mass_that_is_left_out_stands_in_the_error(share: float):
    """Two normals on the line, the second one far away: the integral of the first is 1, that of both 1 + share."""

    def log_density(x: Array) -> Array:
        near = -0.5 * x[:, 0] ** 2
        far = math.log(share / 5) - 0.5 * ((x[:, 0] - 100) / 5) ** 2
        return np.logaddexp(near, far) - 0.5 * math.log(2 * math.pi)

    found = integrate(log_density, 1)
    assert found.reach == (16.0 if share < 1e-6 else 128.0)  # a shell of less than a millionth is left out
    off = abs(found.log_z.value - math.log1p(share))
    # The look that found the mass has two nodes on a panel of width 1: right to a thousandth for a deviation of 5.
    assert off <= 1.001 * found.log_z.error + 1e-12
    assert found.log_z.error < 1.01 * share
