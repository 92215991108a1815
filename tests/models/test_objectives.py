"""Objectives in place of the exact score loss: what each takes of the model, and what it expects to be.

Witnesses: differences of kernel values along a line; all sign vectors in turn, whose mean is the expectation itself;
Gauss-Hermite quadrature; the backward recursion of Kingma and LeCun, unit by unit; BFGS.
"""

import itertools
from dataclasses import replace

import numpy as np
import pytest
from scipy import optimize

from dkef.core.arrays import Array
from dkef.core.streams import rng_for
from dkef.models.kef.density import density_jet, inducing_features
from dkef.models.kef.objectives.choice import draw_noise, statistics_of_rows, view
from dkef.models.kef.objectives.propagation import noise_columns
from dkef.models.kef.objectives.views import View
from dkef.models.kef.parameters import BaseMeasure, Component, KefParameters
from dkef.models.kef.spec import KernelExponentialFamily
from dkef.models.kef.statistics import Statistics, solve
from dkef.models.kef.variables import Regularisers
from dkef.models.layers import Layer
from tests.models.kef_examples import DEPTHS, KINDS, example_component, example_parameters, example_points
from tests.models.kef_witness import taped_derivatives

OTHERS = (
    "sliced",
    "sliced_vr",
    "denoising",
    "finite_difference",
    "curvature_propagation",
    "approximate_backprop",
)
D = 3


def specification(objective: str, depth: int = 2, components: int = 2, **keys) -> KernelExponentialFamily:
    return KernelExponentialFamily(
        objective=objective, slices=4, layers=depth, width=5, components=components, **keys
    )  # as the examples are: what a specification says of widths decides how many signs are drawn


def examples(kind: str, depth: int, m: int = 7) -> KefParameters:
    return example_parameters((example_component(kind, depth), example_component(kind, depth, tau=0.5)), m=m)


def seen(spec: KernelExponentialFamily, parameters: KefParameters, x: Array, noise: Array | None = None) -> View:
    if noise is None:
        noise = draw_noise(spec, x.shape, rng_for("test objective", spec.objective))
    return view(spec, parameters, x, inducing_features(parameters), noise)


def losses(at: View, alpha: Array) -> Array:
    """The objective at each row for one alpha, as the package's docstring writes it."""
    f, q0 = at.sums(alpha[None]), at.base()
    slope, bend = q0.first + f.first[..., 0], q0.second + f.second[..., 0]
    pull = 0.0 if at.pull is None else at.pull
    return (slope**2 / 2 + pull * slope).sum(axis=1) + bend.sum(axis=1)


def exact_losses(parameters: KefParameters, x: Array, alpha: Array) -> Array:
    log_p = density_jet(parameters, x, alpha)
    return (log_p.second + 0.5 * log_p.first**2).sum(axis=1)


def all_signs(columns: int) -> Array:
    return np.array(list(itertools.product((-1.0, 1.0), repeat=columns)))


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("depth", DEPTHS)
@pytest.mark.parametrize("objective", ["exact", *OTHERS])
def test_f_is_the_sum_of_its_kernels(objective: str, kind: str, depth: int):
    parameters, x = examples(kind, depth), example_points(4)
    at = seen(specification(objective, depth), parameters, x)
    alpha = rng_for("test coefficients").normal(size=(2, 7))
    k, f = at.kernels(), at.sums(alpha)
    # Another order of sums, and for gradients another way; differences of values lose three digits by 1 / t^2.
    tolerance = 1e-9 if objective == "finite_difference" else 1e-11
    for of_kernels, of_sum in ((k.first, f.first), (k.second, f.second)):
        np.testing.assert_allclose(
            np.broadcast_to(of_sum, (*of_kernels.shape[:2], 2)), of_kernels @ alpha.T, rtol=1e-9, atol=tolerance
        )


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("depth", DEPTHS)
@pytest.mark.parametrize("objective", ["sliced", "sliced_vr"])
def test_derivatives_along_directions_equal_differences_along_a_line(objective: str, kind: str, depth: int):
    parameters, x, spec = examples(kind, depth), example_points(4), specification(objective, depth)
    noise = draw_noise(spec, x.shape, rng_for("test directions", depth))
    assert noise is not None
    u = noise / 2  # 4 slices
    k, h = seen(spec, parameters, x, noise).kernels(), 2e-3
    values = {
        j: sum(c.kernel((x[:, None] + j * h * u).reshape(-1, D), parameters.z) for c in parameters.components)
        for j in (-2, -1, 0, 1, 2)
    }
    first = (values[-2] - 8 * values[-1] + 8 * values[1] - values[2]) / (12 * h)
    second = (-values[-2] + 16 * values[-1] - 30 * values[0] + 16 * values[1] - values[2]) / (12 * h * h)
    # Five points: h^4 = 2e-11 times high derivatives of order 10, and rounding 1e-15 / h^2.
    if objective == "sliced":
        np.testing.assert_allclose(k.first, first.reshape(k.first.shape), rtol=0, atol=2e-8)
    else:
        np.testing.assert_allclose(k.first, taped_derivatives(parameters, x).first, rtol=0, atol=1e-12)
    np.testing.assert_allclose(k.second, second.reshape(k.second.shape), rtol=0, atol=2e-8)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("depth", DEPTHS)
@pytest.mark.parametrize("objective", ["sliced", "sliced_vr", "curvature_propagation"])
def test_over_all_signs_the_mean_is_the_exact_loss(objective: str, kind: str, depth: int):
    # With every sign vector as one of the slices nothing is left to chance: the value is the expectation.
    component = example_component(kind, depth, d=2, w=2)
    parameters, x = example_parameters((component,), d=2), example_points(3, 2)
    columns = sum(noise_columns(component, 2)) if objective == "curvature_propagation" else 2
    signs = np.tile(all_signs(columns), (3, 1, 1))
    spec = KernelExponentialFamily(objective=objective, components=1, layers=depth, width=2)
    ours = losses(seen(spec, parameters, x, signs), parameters.alpha)
    np.testing.assert_allclose(ours, exact_losses(parameters, x, parameters.alpha), rtol=1e-11, atol=1e-12)
    # And one slice alone is another number, so that the test above says something; not so for affine f.
    alone = losses(seen(spec, parameters, x, signs[:, :1]), parameters.alpha)
    assert np.abs(alone - ours).max() > 1e-3 or (kind, depth, objective == "sliced") == ("linear", 0, False)


@pytest.mark.parametrize("objective", ["sliced", "sliced_vr", "curvature_propagation"])
def test_on_a_gaussian_the_mean_over_random_signs_is_the_known_loss(objective: str):
    # log p~ of N(0, diag(s^2)) has the loss sum_d [ -1 / s_d^2 + x_d^2 / (2 s_d^4) ]; f = 0 by alpha = 0.
    s = np.array([0.7, 1.0, 1.6])
    q0 = BaseMeasure(np.zeros(3), s, np.full(3, 2.0))
    parameters = replace(examples("gaussian", 2), q0=q0, alpha=np.zeros(7))
    x = example_points(5)
    spec = replace(specification(objective), slices=4000)
    ours = losses(seen(spec, parameters, x), parameters.alpha)
    truth = (-1 / s**2 + x**2 / (2 * s**4)).sum(axis=1)
    # (v's)^2 / 2 scatters by at most |s|^2 / sqrt(2); five rows, 4.5 standard errors.
    scatter = (x**2 / s**4).sum(axis=1) / np.sqrt(2 * 4000) if objective == "sliced" else 1e-12
    assert (np.abs(ours - truth) <= 4.5 * scatter + 1e-12).all()


def test_finite_differences_approach_the_slices_with_the_square_of_the_step():
    parameters, x, spec = examples("gaussian", 2), example_points(5), specification("finite_difference")
    noise = draw_noise(spec, x.shape, rng_for("test steps"))
    limit = losses(seen(replace(spec, objective="sliced"), parameters, x, noise), parameters.alpha)
    errors = [
        np.abs(losses(seen(replace(spec, difference_step=step), parameters, x, noise), parameters.alpha) - limit)
        for step in (0.1, 0.05, 0.025, 0.0125)
    ]
    for (coarse, fine), tolerance in zip(itertools.pairwise(errors), (0.05, 0.0125, 0.003125), strict=True):
        # The next term is of fourth order: its share of some percent at 0.1 falls with the square of the step too.
        np.testing.assert_allclose(coarse / fine, 4.0, rtol=tolerance)


def quadrature(nodes: int) -> tuple[Array, Array]:
    """Points [q, 2] and weights [q] of the standard normal distribution in the plane."""
    t, w = np.polynomial.hermite_e.hermegauss(nodes)
    points = np.stack(np.meshgrid(t, t, indexing="ij"), -1).reshape(-1, 2)
    return points, np.outer(w, w).ravel() / w.sum() ** 2


def expected_denoising(parameters: KefParameters, x: Array, std: float) -> float:
    """Mean over the noise of the objective at one row x [1, 2]."""
    e, weights = quadrature(16)
    spec = KernelExponentialFamily(objective="denoising", denoising_std=std, components=1, layers=1, width=2)
    return float(weights @ losses(seen(spec, parameters, np.repeat(x, len(e), 0), e[:, None]), parameters.alpha))


def test_denoising_expects_the_exact_loss_of_noised_rows_and_at_small_std_a_known_bias():
    parameters = example_parameters((example_component("gaussian", 1, d=2, w=2),), d=2)
    parameters = replace(parameters, q0=replace(parameters.q0, beta=np.full(2, 2.0)))  # smooth, for quadrature
    x = np.array([[0.4, -0.3]])

    def exact(at: Array) -> Array:
        return exact_losses(parameters, at, parameters.alpha)

    e, weights = quadrature(16)
    for std in (0.05, 0.2):
        noised = float(weights @ exact(x + std * e))
        assert expected_denoising(parameters, x, std) == pytest.approx(noised, rel=1e-9)
    h = 1e-3
    around = [exact(x + h * step) for step in np.concatenate([np.eye(2), -np.eye(2)])]
    laplacian = float((sum(around) - 4 * exact(x))[0]) / h**2
    bias = [expected_denoising(parameters, x, std) - float(exact(x)[0]) for std in (0.04, 0.02)]
    # What is left over std^2 / 2 times the Laplacian is of order std^4: a sixteenth when std halves.
    rest = [b - std**2 / 2 * laplacian for b, std in zip(bias, (0.04, 0.02), strict=True)]
    assert abs(bias[0]) > 10 * abs(rest[0])
    assert rest[0] / rest[1] == pytest.approx(16, rel=0.05)


def test_denoising_on_a_gaussian_is_the_closed_form():
    s, std = 1.3, 0.3
    parameters = example_parameters((example_component("gaussian", 1, d=2, w=2),), d=2)
    q0 = BaseMeasure(np.zeros(2), np.full(2, s), np.full(2, 2.0))
    parameters, x = replace(parameters, q0=q0, alpha=np.zeros(7)), np.array([[0.4, -0.3]])
    truth = -2 / s**2 + ((x**2).sum() + 2 * std**2) / (2 * s**4)
    assert expected_denoising(parameters, x, std) == pytest.approx(float(truth), rel=1e-12)


def backward_trace(component: Component, x: Array, z: Array) -> float:
    """The trace of k(x, z) in x for one pair, as Kingma and LeCun propagate it: diagonals only, from the top down."""
    h, layers = x, []
    for layer in component.layers:
        g = h @ layer.weight + layer.bias + (0.0 if layer.skip is None else x @ layer.skip)
        slope = 1 / (1 + np.exp(-g)) if layer.activation == "softplus" else np.ones_like(g)
        layers.append((layer, slope, slope * (1 - slope)))
        h = np.log1p(np.exp(g)) if layer.activation == "softplus" else g
    psi, k = component.features(z[None])[0], component.kernel(x[None], z[None])[0, 0]
    if component.kind == "linear":
        first, second = component.rho * psi, np.zeros_like(psi)
    else:
        delta = h - psi
        first, second = -k * delta / component.tau, k * (delta**2 / component.tau**2 - 1 / component.tau)
    through_skips = 0.0
    for layer, slope, bend in reversed(layers):
        second = slope**2 * second + bend * first
        first = slope * first
        if layer.skip is not None:
            through_skips += float((layer.skip**2 @ second).sum())
        first, second = layer.weight @ first, layer.weight**2 @ second
    return float(second.sum()) + through_skips


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("depth", DEPTHS)
def test_approximate_backprop_is_the_backward_recursion_over_diagonals(kind: str, depth: int):
    component = example_component(kind, depth)
    parameters, x = example_parameters((component,)), example_points(4)
    ours = seen(specification("approximate_backprop", depth, 1), parameters, x).kernels().second[:, 0]
    theirs = [[backward_trace(component, row, z) for z in parameters.z] for row in x]
    np.testing.assert_allclose(ours, theirs, rtol=1e-10, atol=1e-12)


def diagonal_layer() -> tuple[Layer, ...]:
    return (Layer(np.diag([0.7, -1.2, 0.4]), np.array([0.1, 0.0, -0.5]), None, "softplus"),)


EQUAL = {
    "linear kernel on one layer": example_component("linear", 1),
    "gaussian kernel on the data": example_component("gaussian", 0),
    "gaussian kernel on a layer of single coordinates": Component("gaussian", 0.6, 1.7, diagonal_layer()),
}
DIFFERENT = {
    "gaussian kernel on one layer": example_component("gaussian", 1),
    "linear kernel on two layers": example_component("linear", 2),
    "gaussian kernel on three layers": example_component("gaussian", 3),
}


@pytest.mark.parametrize("name", [*EQUAL, *DIFFERENT])
def test_approximate_backprop_equals_the_exact_trace_where_nothing_mixes_and_not_elsewhere(name: str):
    component = (EQUAL | DIFFERENT)[name]
    parameters, x = example_parameters((component,)), example_points(4)
    trace = taped_derivatives(parameters, x).second.sum(axis=1)
    ours = seen(specification("approximate_backprop", 1, 1), parameters, x).kernels().second[:, 0]
    if name in EQUAL:
        np.testing.assert_allclose(ours, trace, rtol=0, atol=1e-12)
    else:
        assert np.abs(ours - trace).max() > 0.05 * np.abs(trace).max()


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("objective", OTHERS)
def test_alpha_is_what_a_numerical_minimiser_of_the_objective_finds(objective: str, kind: str):
    parameters, x, spec = examples(kind, 2, m=5), example_points(12), specification(objective)
    noise = draw_noise(spec, x.shape, rng_for("test minimiser", objective))
    at, weights = seen(spec, parameters, x, noise), Regularisers(0.05, 0.02, 0.0)
    solution = solve(statistics_of_rows(spec, parameters, x, noise, "float64"), weights)
    assert solution is not None
    norms = {"denoising": 1.0, "approximate_backprop": D}  # 1 / |u|^2 = S / D of directions and estimates
    weight = weights.c / norms.get(objective, D / 4)

    def regularised(alpha: Array) -> float:
        f, q0 = at.sums(alpha[None]), at.base()
        curvature = ((q0.second + f.second[..., 0]) ** 2).sum(axis=1)
        return float((losses(at, alpha) + 0.5 * weight * curvature).mean() + 0.5 * weights.alpha * alpha @ alpha)

    def slope(alpha: Array) -> Array:  # central differences, which are exact for a quadratic function
        return np.array([regularised(alpha + 0.1 * e) - regularised(alpha - 0.1 * e) for e in np.eye(5)]) / 0.2

    found = optimize.minimize(regularised, np.zeros(5), method="BFGS", jac=slope, options={"gtol": 1e-11})
    # BFGS stops where the value no longer falls: it is rounded to 1e-15, or to 1e-12 where differences of f are over
    # t^2, and the least curvature is 0.05, so alpha is off by the root of their quotient.
    tolerance = 1e-5 if objective == "finite_difference" else 1e-6
    np.testing.assert_allclose(solution.alpha, found.x, rtol=0, atol=tolerance)
    assert regularised(solution.alpha) <= found.fun + 1e-11


def test_the_curvature_term_along_directions_counts_mixed_derivatives_as_stated():
    # E (u'Hu)^2 / |u|^2 = [ (tr H)^2 + 2 sum_{i != j} H_ij^2 ] / D, here from all signs, one slice at a time.
    parameters = example_parameters((example_component("gaussian", 2, d=2, w=2),), d=2)
    x, h = example_points(1, 2), 1e-4
    spec = KernelExponentialFamily(objective="sliced", components=1, layers=2, width=2)
    U = np.mean([seen(spec, parameters, x, v[None, None]).statistics().U for v in all_signs(2)], axis=0)

    def slope(at: Array) -> Array:
        return taped_derivatives(parameters, at).first[0]  # [d, m]

    H = np.stack([(slope(x + h * e) - slope(x - h * e)) / (2 * h) for e in np.eye(2)])  # [d, d, m]
    trace = np.einsum("iim->m", H)
    truth = (np.outer(trace, trace) + 4 * np.outer(H[0, 1], H[0, 1])) / 2
    np.testing.assert_allclose(U, truth, rtol=0, atol=1e-7)  # h^2 = 1e-8 in H


@pytest.mark.parametrize("objective", OTHERS)
def test_statistics_of_many_rows_are_means_of_single_ones(objective: str):
    parameters, x, spec = examples("gaussian", 2), example_points(230), specification(objective)
    noise = draw_noise(spec, x.shape, rng_for("test blocks"))
    ours = statistics_of_rows(spec, parameters, x, noise, "float64")
    single = [seen(spec, parameters, x[i : i + 1], None if noise is None else noise[i : i + 1]) for i in range(230)]
    means = Statistics(*(np.mean(parts, axis=0) for parts in zip(*(one.statistics() for one in single), strict=True)))
    narrow = statistics_of_rows(spec, parameters, x, noise, "float32")
    for a, b, c in zip(ours, means, narrow, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-9, atol=1e-10)
        # float32 has 1e-7; centred features and differences over t^2 = 0.003 leave three digits less.
        np.testing.assert_allclose(c, b, rtol=0, atol=2e-3 * (np.abs(b).max() + 1e-12))
