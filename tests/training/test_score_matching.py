"""Algorithm 1: the closed form, and the gradient through it."""

import math
from dataclasses import replace

import numpy as np
import pytest
from scipy import optimize

from dkef.core.arrays import Array
from dkef.core.errors import ConfigError
from dkef.core.streams import rng_for
from dkef.models.kef.density import density_jet
from dkef.models.kef.parameters import BaseMeasure, Component, KefParameters
from dkef.models.kef.statistics import inducing_gram, lambda_gradient, solve
from dkef.models.kef.tiles import TiledKernel
from dkef.models.kef.variables import Regularisers, frozen_names, initial_values, regularisers
from dkef.training.layout import Layout
from tests.models.kef_examples import DEPTHS, KINDS, example_component, example_parameters, example_points
from tests.training.small_runs import TINY, VARIANTS, rows


def statistics_of(parameters: KefParameters, x: Array):
    return TiledKernel(parameters, "float64").statistics(x)


def regularised_loss(parameters: KefParameters, x: Array, weights: Regularisers, alpha: Array) -> float:
    """The loss of Proposition 3, term by term as the paper writes it."""
    log_p = density_jet(parameters, x, alpha)
    J = (log_p.second + 0.5 * log_p.first**2).sum(axis=1).mean()
    curvature = (log_p.second**2).sum(axis=1).mean()
    norm = alpha @ inducing_gram(parameters) @ alpha
    return float(J + 0.5 * (weights.alpha * alpha @ alpha + weights.h * norm + weights.c * curvature))


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("depth", DEPTHS)
def test_alpha_is_what_a_numerical_minimiser_of_the_regularised_loss_finds(kind: str, depth: int):
    parameters = example_parameters((example_component(kind, depth), example_component(kind, depth, tau=0.4)), m=5)
    x, weights = example_points(12), Regularisers(0.05, 0.02, 0.03)
    solution = solve(statistics_of(parameters, x), weights, inducing_gram(parameters))
    assert solution is not None
    found = optimize.minimize(
        lambda alpha: regularised_loss(parameters, x, weights, alpha),
        np.zeros(5),
        method="BFGS",
        options={"gtol": 1e-9},
    )
    # BFGS differentiates numerically: about sqrt(1e-16) in the gradient, divided by the smallest curvature 0.05.
    np.testing.assert_allclose(solution.alpha, found.x, rtol=0, atol=2e-6)
    assert regularised_loss(parameters, x, weights, solution.alpha) <= found.fun + 1e-13


def test_separated_components_are_fitted_each_alone_with_regularisers_divided_by_their_share():
    # Proposition 4. At a distance of 100 with tau = 1 the kernel and its derivatives underflow to 0 exactly.
    small, large = example_points(6), example_points(18) + 100
    z = np.concatenate([example_points(3), example_points(4) + 100])
    q0 = BaseMeasure(np.zeros(3), np.full(3, 30.0), np.full(3, 2.0))
    component = Component("gaussian", 1.0, 1.0, ())
    weights = Regularisers(0.01, 0.02, 0.03)

    def alpha(x: Array, points: Array, share: float) -> Array:
        parameters = KefParameters(np.zeros(len(points)), points, (component,), q0)
        own = Regularisers(weights.alpha / share, weights.c, weights.h / share)
        solution = solve(statistics_of(parameters, x), own, inducing_gram(parameters))
        assert solution is not None
        return solution.alpha

    together = alpha(np.concatenate([small, large]), z, 1.0)
    apart = np.concatenate([alpha(small, z[:3], 6 / 24), alpha(large, z[3:], 18 / 24)])
    np.testing.assert_allclose(together, apart, rtol=1e-10, atol=1e-12)


def test_statistics_are_the_sums_that_the_paper_writes():
    parameters = example_parameters((example_component("gaussian", 2), example_component("linear", 1)))
    x = example_points(5)
    ours = statistics_of(parameters, x)
    unit = np.eye(7)
    f = [density_jet(replace(parameters), x, unit[m]) for m in range(7)]
    q = density_jet(parameters, x, np.zeros(7))
    first, second = (np.stack([getattr(part, key) - getattr(q, key) for part in f], -1) for key in ("first", "second"))
    np.testing.assert_allclose(ours.G, np.einsum("ndm,ndk->mk", first, first) / 5, rtol=1e-10, atol=1e-12)
    np.testing.assert_allclose(ours.U, np.einsum("ndm,ndk->mk", second, second) / 5, rtol=1e-10, atol=1e-12)
    np.testing.assert_allclose(ours.h, second.sum(axis=(0, 1)) / 5, rtol=1e-10, atol=1e-12)
    np.testing.assert_allclose(ours.b_first, np.einsum("nd,ndm->m", q.first, first) / 5, rtol=1e-10, atol=1e-12)
    np.testing.assert_allclose(ours.b_second, np.einsum("nd,ndm->m", q.second, second) / 5, rtol=1e-10, atol=1e-12)


def test_a_system_that_is_not_positive_definite_or_not_finite_has_no_solution():
    parameters = example_parameters((example_component("linear", 1),))  # G has rank 5 at most, m is 7
    good = statistics_of(parameters, example_points(5))
    assert solve(good, Regularisers(1e-3, 0.0, 0.0)) is not None
    assert solve(good, Regularisers(-1e-3, 0.0, 0.0)) is None
    assert solve(good._replace(h=good.h * math.nan), Regularisers(1e-3, 0.0, 0.0)) is None


@pytest.mark.parametrize("name", VARIANTS)
def test_the_split_gradient_equals_finite_differences_through_the_solve(name: str):
    from dkef.models.kef.graph import KefGraph

    spec = replace(TINY, dtype="float64", **VARIANTS[name])
    x = rows(name, 40)
    values = initial_values(spec, x, rng_for("test init", name))
    layout = Layout.of(values, frozen_names(spec))
    theta = layout.pack(values) + 0.1 * rng_for("test shift", name).normal(size=sum(layout.sizes))
    graph = KefGraph(spec, layout)
    fit_rows, loss_rows = x[:20], x[20:]

    def loss(at: Array) -> float:
        weights = regularisers(spec, layout.unpack(at))
        solution = solve(graph.tiled(at).statistics(fit_rows), weights, graph.gram(at))
        assert solution is not None
        return float(graph.tiled(at).loss_rows(loss_rows, solution.alpha).mean())

    step = graph.step_gradient(theta, fit_rows, loss_rows)
    assert step is not None
    assert step.loss == pytest.approx(loss(theta), abs=1e-12)
    direction = rng_for("test direction", name).normal(size=(4, theta.size))
    h = 1e-4  # five-point: h^4 in error, 1e-15/h in rounding
    for u in direction / np.linalg.norm(direction, axis=1, keepdims=True):
        f = {j: loss(theta + j * h * u) for j in (-2, -1, 1, 2)}
        slope = (f[-2] - 8 * f[-1] + 8 * f[1] - f[2]) / (12 * h)
        assert step.gradient @ u == pytest.approx(slope, rel=1e-8, abs=1e-9)


def test_a_step_whose_system_is_not_positive_definite_or_not_finite_has_no_gradient():
    from dkef.models.kef.graph import KefGraph

    spec = replace(TINY, kernel="linear", layers=0)  # G has rank 2 and m is 8
    x = rows("no solution", 40)
    values = initial_values(spec, x, rng_for("test init", "no solution"))
    layout = Layout.of(values, frozen_names(spec))
    graph, theta = KefGraph(spec, layout), layout.pack(values)
    assert graph.step_gradient(theta, x[:20], x[20:]) is not None
    assert graph.step_gradient(theta * math.nan, x[:20], x[20:]) is None
    object.__setattr__(spec, "lambda_floor", -1.0)  # a negative lambda_alpha, which the settings refuse
    assert KefGraph(spec, layout).step_gradient(theta, x[:20], x[20:]) is None


def test_the_derivative_in_the_regularisers_equals_finite_differences():
    parameters = example_parameters((example_component("gaussian", 2),))
    statistics, target = statistics_of(parameters, example_points(9)), rng_for("test target").normal(size=7)

    def loss(lambda_alpha: float, lambda_c: float) -> float:  # any smooth function of alpha will do
        solution = solve(statistics, Regularisers(lambda_alpha, lambda_c, 0.0))
        assert solution is not None
        return float(0.5 * ((solution.alpha - target) ** 2).sum())

    solution = solve(statistics, Regularisers(0.1, 0.2, 0.0))
    assert solution is not None
    ours = lambda_gradient(statistics, solution.alpha, solution.adjoint(solution.alpha - target))
    h = 1e-5
    assert ours[0] == pytest.approx((loss(0.1 + h, 0.2) - loss(0.1 - h, 0.2)) / (2 * h), rel=1e-6)
    assert ours[1] == pytest.approx((loss(0.1, 0.2 + h) - loss(0.1, 0.2 - h)) / (2 * h), rel=1e-6)


@pytest.mark.parametrize(
    ("change", "key"),
    [
        ({"kernel": "quadratic"}, "kernel"),
        ({"beta_floor": 0.5}, "beta_floor"),
        ({"components": 4}, "kernel_scales"),
        ({"learning_rate": 0.0}, "learning_rate"),
        ({"layers": 0, "extra_unit": True}, "extra_unit"),
        ({"phase2_parameters": "lambda_and_q0"}, "phase2_parameters"),
        ({"phase2_stopping": "folds", "phase2_parameters": "lambda_and_q0"}, "phase2_parameters"),
    ],
)
def test_settings_out_of_range_are_refused_by_key(change: dict, key: str):
    with pytest.raises(ConfigError, match=rf"^{key} is .*; allowed is "):
        replace(TINY, **change)
