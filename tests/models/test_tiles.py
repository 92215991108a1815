"""Statistics, losses and slopes from compiled tiles against nested tapes and against the graph's own formulas."""

import math
from dataclasses import replace

import numpy as np
import pytest

from dkef.core.arrays import Array
from dkef.core.streams import rng_for
from dkef.models.kef import tiles
from dkef.models.kef.density import density_jet, inducing_features, kernel_jets
from dkef.models.kef.parameters import Component, KefParameters
from dkef.models.kef.statistics import jet_statistics, solve
from dkef.models.kef.tiles import KeptDerivatives, TiledKernel
from dkef.models.kef.variables import Regularisers
from dkef.models.layers import Layer
from tests.models.kef_examples import example_base, example_component, example_layers
from tests.models.kef_witness import taped_derivatives, taped_losses, taped_statistics

TAUS = (0.7, 3.0, 11.0)


def deep(kind: str, d: int, w: int, skip: bool = True, top: str = "softplus") -> tuple[Component, ...]:
    parts = [replace(example_component(kind, 3, d, w, tau, 0.3, top)) for tau in TAUS]
    bare = [tuple(replace(layer, skip=None) for layer in part.layers) for part in parts]
    return tuple(parts if skip else (replace(part, layers=own) for part, own in zip(parts, bare, strict=True)))


def extra_unit(kind: str, d: int) -> Component:
    rng = rng_for("test extra unit", kind, d)
    last = Layer(rng.normal(size=(5, 1)), rng.normal(size=1), None, "linear")
    return Component(kind, 1.0, 2.0, (*example_layers(rng, d, 2, 5), last))


# Widths around the number of lanes; d from 1 to well above the widths, so that both forms of the loss are taken.
CASES: dict[str, tuple[int, tuple[Component, ...]]] = {
    "gaussian on the data": (3, (Component("gaussian", 1.0, 0.5, ()),)),
    "gaussian on the data, R = 3": (18, tuple(Component("gaussian", 0.3, tau, ()) for tau in TAUS)),
    "linear on the data": (2, (Component("linear", 1.0, 1.0, ()),)),
    "one coordinate": (1, deep("gaussian", 1, 4)),
    "one network": (3, (example_component("gaussian", 1, 3, 15),)),
    "three networks with skip": (4, deep("gaussian", 4, 30)),
    "three networks with skip, many coordinates": (21, deep("gaussian", 21, 16)),
    "three networks without skip": (11, deep("gaussian", 11, 17, skip=False)),
    "linear top": (5, deep("gaussian", 5, 6, top="linear")),
    "linear kernels on networks": (4, deep("linear", 4, 9)),
    "extra unit": (3, (extra_unit("linear", 3),)),
    "gaussian extra unit": (3, (extra_unit("gaussian", 3),)),
    "kinds and depths mixed": (
        3, (example_component("linear", 2), example_component("gaussian", 3), extra_unit("gaussian", 3)),
    ),
}  # fmt: skip


def model(name: str, m: int = 9) -> KefParameters:
    d, components = CASES[name]
    rng = rng_for("test tiles", name)
    return KefParameters(rng.normal(size=m), rng.normal(size=(m, d)), components, example_base(d))


def trained(name: str) -> KefParameters:
    """With the narrow kernels that training can end in."""
    parameters = model(name)
    narrow = tuple(replace(part, tau=0.02 * part.tau) for part in parameters.components)
    return replace(parameters, components=narrow, alpha=30 * parameters.alpha)


def points(parameters: KefParameters, n: int = 13) -> Array:
    return rng_for("test rows of tiles").normal(size=(n, parameters.z.shape[1]))


def near_and_far(parameters: KefParameters) -> Array:
    """Rows next to inducing points, where narrow kernels are not 0, and rows that are far from all of them."""
    rows = points(parameters)
    rows[:9] = parameters.z + 0.1 * rows[:9]
    rows[9:] *= 20
    return rows


def graph_statistics(parameters: KefParameters, x: Array):
    """The formulas that the training step differentiates, in float64 NumPy."""
    sums = jet_statistics(parameters, kernel_jets(parameters, x, inducing_features(parameters)), x)
    return type(sums)(*(part / len(x) for part in sums))


def graph_losses(parameters: KefParameters, x: Array, alpha: Array) -> Array:
    log_p = density_jet(parameters, x, alpha)
    return (log_p.second + 0.5 * log_p.first**2).sum(axis=1)


def assert_close(ours: Array, witness: Array, tolerance: float) -> None:
    """Largest difference relative to the largest entry."""
    assert ours.shape == witness.shape
    assert np.abs(ours - witness).max() <= tolerance * np.abs(witness).max()


@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize("made", [model, trained])
def test_statistics_in_float64_equal_nested_tapes_and_the_formulas_of_the_step(name: str, made):
    parameters = made(name)
    x = near_and_far(parameters) if made is trained else points(parameters)
    ours = TiledKernel(parameters, "float64").statistics(x)
    for mine, taped, graph in zip(ours, taped_statistics(parameters, x), graph_statistics(parameters, x), strict=True):
        assert_close(mine, taped, 1e-11)  # expanded squares lose |phi|^2 / tau, about 10^3 here, of 16 digits
        assert_close(mine, graph, 1e-11)


@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize("made", [model, trained])
def test_losses_in_float64_equal_nested_tapes_and_the_formulas_of_the_step(name: str, made):
    parameters = made(name)
    x = near_and_far(parameters) if made is trained else points(parameters)
    ours = TiledKernel(parameters, "float64").loss_rows(x, parameters.alpha)
    assert_close(ours, taped_losses(parameters, x, parameters.alpha), 1e-10)
    assert_close(ours, graph_losses(parameters, x, parameters.alpha), 1e-10)


def test_both_forms_of_the_loss_are_taken_by_the_cases():
    forms = set()
    for name in CASES:
        tiled = TiledKernel(model(name), "float64")
        forms.add(tiled._moments(np.zeros((len(CASES[name][1]), 1, tiled.columns)), CASES[name][0]).shape[1])
    assert forms == {0, 1}


@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize(("made", "tolerance"), [(model, 1e-5), (trained, 1e-3)])
def test_float32_loses_no_more_digits_than_the_expanded_squares_must(name: str, made, tolerance: float):
    # 6e-8 times |phi|^2 / tau, up to 10 for the model and some 500 for the trained one, and a few terms of each.
    parameters = made(name)
    x = near_and_far(parameters) if made is trained else points(parameters)
    tiled = TiledKernel(parameters, "float32")
    for mine, witness in zip(tiled.statistics(x), taped_statistics(parameters, x), strict=True):
        assert mine.dtype == np.float64
        assert_close(mine, witness, tolerance)
    assert_close(tiled.loss_rows(x, parameters.alpha), taped_losses(parameters, x, parameters.alpha), tolerance)


@pytest.mark.parametrize("sizes", [(1, 1, 1), (7, 25, 10), (1000, 12, 3), (5, 1000, 1000)])
def test_tiles_blocks_and_chunks_of_any_size_give_the_same(sizes: tuple[int, int, int], monkeypatch):
    parameters = model("three networks with skip")
    x = points(parameters, 31)
    tiled = TiledKernel(parameters, "float64")
    before = (*tiled.statistics(x), tiled.loss_rows(x, parameters.alpha), KeptDerivatives(tiled, x).second)
    for name, size in zip(("TILE", "BLOCK", "CHUNK"), sizes, strict=True):
        monkeypatch.setattr(tiles, name, size)
    after = (*tiled.statistics(x), tiled.loss_rows(x, parameters.alpha), KeptDerivatives(tiled, x).second)
    for a, b in zip(before, after, strict=True):
        assert_close(a, b, 1e-13)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_kept_derivatives_give_the_slope_of_the_mean_loss_over_the_chosen_rows(dtype: str):
    parameters = model("kinds and depths mixed")
    x, rows = points(parameters), np.array([4, 0, 11])
    first, second, q0_first, _ = taped_derivatives(parameters, x[rows])
    slope = q0_first + first @ parameters.alpha
    witness = (np.einsum("nd,ndm->m", slope, first) + second.sum(axis=(0, 1))) / 3
    tiled = TiledKernel(parameters, dtype)
    kept = KeptDerivatives(tiled, x)
    assert_close(kept.slope(parameters.alpha, rows), witness, 1e-12 if dtype == "float64" else 1e-5)
    assert KeptDerivatives.size(tiled, x) == kept.first.nbytes + kept.second.nbytes


def test_the_slope_over_all_rows_is_that_of_the_loss_by_finite_differences():
    parameters = model("three networks with skip")
    tiled, x = TiledKernel(parameters, "float64"), points(parameters)
    slope = KeptDerivatives(tiled, x).slope(parameters.alpha, np.arange(len(x)))
    direction = rng_for("test direction of alpha").normal(size=9)

    def loss(step: float) -> float:
        return float(tiled.loss_rows(x, parameters.alpha + step * direction).mean())

    assert slope @ direction == pytest.approx((loss(0.5) - loss(-0.5)), rel=1e-10)  # exact: the loss is quadratic


@pytest.mark.parametrize("change", [{"tau": math.nan}, {"tau": 0.0}, {"rho": math.nan}])
def test_parameters_that_are_not_finite_give_no_solution_instead_of_a_wrong_one(change: dict):
    parameters = model("three networks with skip")
    components = tuple(replace(part, **change) for part in parameters.components)
    tiled = TiledKernel(replace(parameters, components=components), "float32")
    assert solve(tiled.statistics(points(parameters)), Regularisers(1e-3, 1e-3, 0.0)) is None
    assert not np.isfinite(tiled.loss_rows(points(parameters), parameters.alpha)).any()


def test_kernel_values_too_small_for_float32_squares_count_as_zero():
    parameters = KefParameters(np.ones(1), np.zeros((1, 2)), (Component("gaussian", 1.0, 1.0, ()),), example_base(2))
    far = np.array([[9.2, 0.0], [9.4, 0.0]])  # exp(-42.3) = 2^-61.1 and exp(-44.2) = 2^-63.7
    k = TiledKernel(parameters, "float32").kernel.rows(far.astype(np.float32)).k[0, :, 0]
    assert k[0] == pytest.approx(math.exp(-42.32), rel=1e-4)
    assert k[1] == 0


def test_no_rows_are_refused():
    with pytest.raises(ValueError, match="no rows"):
        TiledKernel(model("linear on the data"), "float32").statistics(np.zeros((0, 2)))
