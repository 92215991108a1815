"""Masks and MADE: who depends on whom, and log densities against a loop over SciPy's conditionals."""

import itertools

import numpy as np
import pytest
from scipy import stats

from dkef.core.arrays import Array
from dkef.core.streams import rng_for
from dkef.models.flows import masks
from dkef.models.flows.made import draw_made, gaussian_conditionals, mixture_conditionals, mixture_log_density
from dkef.models.flows.networks import network
from dkef.models.jets import Jet

ORDERS = ("sequential", "reversed", "random")
DEGREES = ("sequential", "random")


def made(order: Array, degrees: str, heads: tuple[int, int], seed: int = 0) -> dict[str, Array]:
    rng = rng_for("test", "made", seed)
    return draw_made("net", order, (13, 17), degrees, heads, rng, output_bias_std=0.5).parameters


@pytest.mark.parametrize(("order", "degrees"), list(itertools.product(ORDERS, DEGREES)))
@pytest.mark.parametrize("dimension", [1, 2, 6])
def test_the_jacobian_of_the_conditionals_is_strictly_triangular_in_the_order(order, degrees, dimension):
    rng = rng_for("test", "order", order, degrees, dimension)
    degree = masks.input_order(order, dimension, rng)
    parameters = made(degree, degrees, heads=(2, 1))
    x = Jet.seed(rng.standard_normal((4, dimension)), axis=0)
    for conditional in gaussian_conditionals(parameters, "net", x, "tanh"):
        jacobian = np.broadcast_to(conditional.first, (dimension, 4, dimension))  # [input, point, output]
        forbidden = degree[:, None] >= degree[None, :]
        assert np.all(jacobian.transpose(1, 0, 2)[:, forbidden] == 0.0)


@pytest.mark.parametrize("order", ORDERS)
def test_with_sequential_degrees_every_conditional_sees_every_earlier_coordinate(order):
    degree = masks.input_order(order, 6, rng_for("test", "sees", order))
    parameters = {
        name: np.abs(array) for name, array in made(degree, "sequential", heads=(1, 1)).items()
    }  # no cancelling
    jet = network(parameters, "net", Jet.seed(np.zeros((1, 6)), axis=0), "tanh")
    assert np.array_equal(jet.first[:, 0, :] > 0, degree[:, None] < degree[None, :])


def test_changing_later_coordinates_leaves_a_conditional_bitwise_unchanged():
    order = masks.input_order("random", 5, rng_for("test", "later"))
    parameters = made(order, "random", heads=(2, 1))
    x = rng_for("test", "later rows").standard_normal((8, 5))
    before = np.stack(gaussian_conditionals(parameters, "net", x, "relu"))
    for d in range(5):
        moved = np.where(order >= order[d], 100.0, x)
        after = np.stack(gaussian_conditionals(parameters, "net", moved, "relu"))
        assert np.array_equal(before[..., d], after[..., d])


def test_random_degrees_lie_between_the_smallest_below_and_the_last_but_one():
    rng = rng_for("test", "degrees")
    first = masks.hidden_degrees("random", 500, np.arange(1, 8), 7, rng)
    assert set(first) == set(range(1, 7))
    assert set(masks.hidden_degrees("random", 500, np.array([4, 3, 5]), 7, rng)) == {3, 4, 5, 6}


def test_sequential_degrees_use_all_degrees_equally_often():
    degrees = masks.hidden_degrees("sequential", 12, np.arange(1, 6), 5, rng_for("test", "unused"))
    assert np.array_equal(np.bincount(degrees), [0, 3, 3, 3, 3])


def test_layers_alternate_the_order_and_random_layers_draw_their_own():
    rng = rng_for("test", "layers")
    assert masks.layer_orders("sequential", 3, 3, rng).tolist() == [[1, 2, 3], [3, 2, 1], [1, 2, 3]]
    assert masks.layer_orders("reversed", 3, 2, rng).tolist() == [[3, 2, 1], [1, 2, 3]]
    drawn = masks.layer_orders("random", 9, 4, rng)
    assert all(sorted(row) == list(range(1, 10)) for row in drawn)
    assert len({tuple(row) for row in drawn}) == 4


def test_weights_are_drawn_with_variance_one_over_fan_in_plus_one():
    parameters = draw_made("net", np.arange(1, 100), (400,), "sequential", (2, 1), rng_for("test", "init")).parameters
    free = parameters["net.weight0"][parameters["net.weight0"] != 0]
    # 20,000 draws: the standard error of the standard deviation is 0.5 %.
    assert free.std() * np.sqrt(100) == pytest.approx(1.0, abs=0.02)
    assert not parameters["net.bias0"].any()


@pytest.mark.parametrize("stable", [True, False])
def test_mixture_density_equals_a_loop_over_conditional_mixtures(stable):
    order = masks.input_order("random", 4, rng_for("test", "mixture order"))
    parameters = made(order, "sequential", heads=(3, 5))
    x = 2.0 * rng_for("test", "mixture rows").standard_normal((6, 4))
    log_a, mean, half_log_precision = mixture_conditionals(parameters, "net", x, "tanh")
    expected = np.zeros(6)
    for n, d in itertools.product(range(6), range(4)):
        weight = np.exp(log_a[n, d]) / np.exp(log_a[n, d]).sum()
        expected[n] += np.log(weight @ stats.norm.pdf(x[n, d], mean[n, d], np.exp(-half_log_precision[n, d])))
    found = mixture_log_density(parameters, "net", x, "tanh", stable)
    # Sums of a few terms of order 10 in float64.
    np.testing.assert_allclose(found, expected, rtol=1e-13)


def test_mixture_log_density_stays_finite_where_every_component_underflows():
    parameters = made(np.arange(1, 4), "sequential", heads=(3, 10))
    far = np.full((1, 3), 1e4)
    jet = mixture_log_density(parameters, "net", Jet.seed(far), "tanh")
    assert jet.value[0] < -1e6
    assert np.isfinite(jet.first).all()
    assert np.isfinite(jet.second).all()
