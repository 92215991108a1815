"""All five flows: determinants, inverses, mass, derivatives, samples, files."""

import functools

import numpy as np
import pytest
from scipy import stats

from dkef.core.arrays import Array
from dkef.core.streams import rng_for
from dkef.models.flows import density as flows
from dkef.models.flows.density import FlowModel, transform
from dkef.models.protocol import Fit
from dkef.models.storage import load_model, write_model
from tests.models.flow_examples import SHAPES, Witness, example

every_flow = pytest.mark.parametrize("name", SHAPES)
every_layered_flow = pytest.mark.parametrize("name", ["made", "real_nvp", "maf", "maf_mog"])
WIDTH = 0.1


def rows(n: int, dimension: int, *cell: str | int) -> Array:
    return rng_for("test rows", dimension, *cell).standard_normal((n, dimension))


@functools.cache
def mass_on_a_grid(name: str) -> tuple[Array, Array]:
    """Midpoints of cells of width WIDTH that tile [-16, 16]^2, and the mass that the density gives to each."""
    axis = np.arange(-16.0 + WIDTH / 2, 16.0, WIDTH)
    nodes = np.stack(np.meshgrid(axis, axis, indexing="ij"), axis=-1).reshape(-1, 2)
    return nodes, np.exp(example(name, 2).log_density(nodes)) * WIDTH**2


@every_layered_flow
@pytest.mark.parametrize("order", ["sequential", "reversed", "random"])
def test_log_determinants_equal_those_of_the_jacobian_from_autodiff(name, order):
    model, x = example(name, 5, order), rows(6, 5)
    witness = Witness(model)
    log_base = witness.base_log_density(witness.forward(x)).numpy()
    jacobian = witness.jacobian(x)
    log_det = np.linalg.slogdet(jacobian).logabsdet
    # Rounding of an entry by eps moves the log determinant by as much as eps times the condition number, 5 x 5 times.
    rounding = 25 * np.finfo(float).eps * np.linalg.cond(jacobian)
    assert (abs(model.log_density(x) - log_base - log_det) <= rounding + 1e-13).all()


@every_layered_flow
@pytest.mark.parametrize("order", ["sequential", "random"])
def test_inverse_and_forward_undo_each_other(name, order):
    model, x = example(name, 7, order), rows(20, 7)
    # Rounding is amplified by the slopes of up to three layers, each of order 10.
    np.testing.assert_allclose(model.inverse(model.forward(x)), x, rtol=0, atol=1e-10)
    np.testing.assert_allclose(model.forward(model.inverse(x)), x, rtol=0, atol=1e-10)


@pytest.mark.parametrize("layer", [0, 1])
def test_coupling_layers_pass_odd_and_even_coordinates_in_turn(layer):
    model, x = example("real_nvp", 5), rows(6, 5)
    u, _ = transform(model.shape, model.parameters, layer, x)
    assert np.array_equal(np.all(u == x, axis=0), np.arange(5) % 2 == 1 - layer)


@every_flow
def test_the_density_integrates_to_one_in_the_plane(name):
    # Sums over a regular grid are spectrally accurate for smooth densities; Real NVP's rectifiers leave an error of
    # order WIDTH^2 and MAF-MOG's tail 1e-5 outside.
    assert mass_on_a_grid(name)[1].sum() == pytest.approx(1.0, abs=5e-4)


@every_flow
def test_score_and_curvature_equal_autodiff(name):
    model, x = example(name, 5, "random"), rows(9, 5)
    evaluation = model.evaluate(x, batch=4)
    score, curvature = Witness(model).derivatives(x)
    # Both are exact up to rounding; derivatives reach 1e3, hence the relative part.
    np.testing.assert_allclose(evaluation.score, score, rtol=1e-10, atol=1e-10)
    np.testing.assert_allclose(evaluation.curvature, curvature, rtol=1e-10, atol=1e-9)


@every_flow
def test_score_and_curvature_equal_finite_differences(name):
    model, x, h = example(name, 4), rows(5, 4, "differences"), 1e-4
    evaluation = model.evaluate(x)
    for d in range(4):
        step = h * np.eye(4)[d]
        below, here, above = (model.log_density(x + k * step) for k in (-1, 0, 1))
        # Truncation h^2 f'''/6 and rounding eps f/h^2 are both near 1e-7 at f ~ 10 and third derivatives ~ 100.
        np.testing.assert_allclose(evaluation.score[:, d], (above - below) / (2 * h), rtol=1e-5, atol=1e-5)
        np.testing.assert_allclose(evaluation.curvature[:, d], (above - 2 * here + below) / h**2, rtol=1e-4, atol=1e-4)


@every_flow
def test_evaluation_does_not_depend_on_how_rows_are_batched(name, monkeypatch):
    model, x = example(name, 3), rows(50, 3)
    whole = model.evaluate(x, batch=50)
    monkeypatch.setattr(flows, "ROWS", 7)
    parts = model.evaluate(x, batch=3)
    # Products of other shapes may round differently.
    np.testing.assert_allclose(model.log_density(x), whole.log_density, rtol=1e-12)
    for field in ("log_density", "score", "curvature"):
        np.testing.assert_allclose(getattr(parts, field), getattr(whole, field), rtol=1e-10, atol=1e-10)


@every_flow
def test_samples_fill_the_plane_as_the_density_says(name):
    n = 20_000
    x = example(name, 2).sample(n, rng_for("test", "samples", name))
    quantiles = np.quantile(x, np.linspace(0, 1, 9)[1:-1], axis=0)
    limits = WIDTH * np.round(quantiles / WIDTH)  # of 8 x 8 rectangles, each a union of cells of the grid

    def table(points: Array, weight: Array | None) -> Array:
        index = [np.searchsorted(limits[:, d], points[:, d]) for d in range(2)]
        return np.bincount(8 * index[0] + index[1], weights=weight, minlength=64)

    nodes, mass = mass_on_a_grid(name)
    expected = n * table(nodes, mass)
    filled = expected > 5
    # Limits near the sample's own quantiles make the statistic smaller than chi^2, never larger.
    statistic = ((table(x, None) - expected)[filled] ** 2 / expected[filled]).sum()
    assert stats.chi2.sf(statistic, filled.sum() - 1) > 1e-3


@every_flow
def test_moments_of_samples_are_those_of_the_density(name):
    n = 20_000
    nodes, mass = mass_on_a_grid(name)
    x = example(name, 2).sample(n, rng_for("test", "moments", name))
    for moment in (lambda y: y, lambda y: y**2, lambda y: y[:, :1] * y[:, 1:]):
        found, exact = moment(x), mass @ moment(nodes) / mass.sum()
        # Four standard errors: each of 25 means fails by chance once in 16,000.
        assert np.all(np.abs(found.mean(axis=0) - exact) < 4 * found.std(axis=0) / np.sqrt(n))


def test_samples_do_not_depend_on_how_rows_are_batched(monkeypatch):
    model = example("maf_mog", 4)
    whole = model.sample(40, rng_for("test", "batches"))
    monkeypatch.setattr(flows, "ROWS", 9)
    np.testing.assert_allclose(model.sample(40, rng_for("test", "batches")), whole, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("name", ["real_nvp", "maf", "maf_mog"])
def test_batch_normalisation_standardises_each_layer_over_all_training_rows(name, monkeypatch):
    monkeypatch.setattr(flows, "ROWS", 64)
    drawn, train = example(name, 4), rows(300, 4, "train")
    parameters = {
        key: np.zeros(4) if key.endswith((".log_gain", ".offset")) else value for key, value in drawn.parameters.items()
    }
    model = FlowModel.with_statistics(drawn.shape, parameters, drawn.orders, train)
    u = model.forward(train)
    # eps = 1e-5 under the root keeps variances from 1 by about that much over the variance.
    np.testing.assert_allclose(u.mean(axis=0), 0.0, atol=1e-12)
    np.testing.assert_allclose(u.var(axis=0), 1.0, rtol=2e-4)


@every_flow
def test_a_flow_survives_its_file_bit_for_bit(name, tmp_path):
    model, x = example(name, 3, "random"), rows(5, 3)
    write_model(tmp_path / "model.h5", Fit(model), {})
    restored = load_model(tmp_path / "model.h5")
    assert np.array_equal(restored.log_density(x), model.log_density(x))
    assert np.array_equal(restored.sample(5, rng_for("test", "file")), model.sample(5, rng_for("test", "file")))


@every_flow
def test_flows_work_in_one_dimension(name):
    model = example(name, 1)
    nodes = np.linspace(-60, 60, 20_001)[:, None]
    assert np.exp(model.log_density(nodes)).sum() * 0.006 == pytest.approx(1.0, abs=1e-6)
    x = model.sample(2000, rng_for("test", "line", name))
    distribution = np.cumsum(np.exp(model.log_density(nodes))) * 0.006
    assert stats.kstest(x[:, 0], lambda y: np.interp(y, nodes[:, 0], distribution)).pvalue > 1e-3
