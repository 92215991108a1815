import math

import numpy as np
import pytest

from dkef.core.streams import rng_for
from dkef.data.synthetic.distributions import AffineImage, Distribution, rotated
from dkef.data.synthetic.planar import Rings
from dkef.data.synthetic.source import KNOWN

SHEAR = AffineImage(KNOWN["banana"], np.array([0.5, -1.0]), np.array([[1.5, 0.3], [-0.2, 0.7]]))
LAWS = KNOWN | {"rotated cosine": rotated(KNOWN["cosine"], 140.9), "sheared banana": SHEAR}

# E log p and 0.5 E|score|^2 by 2e6 draws, from the fact sheet (three or four digits printed).
EXPECTATIONS = {
    "funnel": (-3.469, 4.07),
    "banana": (-3.530, 0.943),
    "ring": (-3.257, 12.50),
    "square": (-3.584, 0.0),
    "cosine": (-3.498, 9.66),
    "mog": (-2.145, 4.00),
    "mor": (-3.841, 12.39),
    "gaussian_scales": (-1.4285, 3.003),
}


def interior(law: Distribution, n: int = 200) -> np.ndarray:
    """Points where the density is smooth within 1e-4: draws, away from the edges of Square and Cosine by chance."""
    return law.sample(n, rng_for("test", "interior", n))


@pytest.mark.parametrize("name", EXPECTATIONS)
def test_expectations_under_each_law_are_those_of_the_fact_sheet(name: str) -> None:
    law, n = KNOWN[name], 400_000
    x = law.sample(n, rng_for("test", "expectations", name))
    log_p, half_square = law.log_density(x), 0.5 * (law.score(x) ** 2).sum(axis=1)
    for draws, expected in zip((log_p, half_square), EXPECTATIONS[name], strict=True):
        # Four standard errors of ours, four of the 2e6 draws behind the sheet, and half a unit of its last digit.
        tolerance = 4 * draws.std() * (1 / math.sqrt(n) + 1 / math.sqrt(2e6)) + 0.005
        assert draws.mean() == pytest.approx(expected, abs=tolerance)


def test_mean_curvature_is_minus_the_mean_squared_score_where_the_density_vanishes_at_its_edge() -> None:
    for name in ("banana", "ring", "mog", "mor", "gaussian_scales"):
        law, n = KNOWN[name], 100_000
        x = law.sample(n, rng_for("test", "parts", name))
        # Integration by parts: E[sum_d d_d^2 log p + |score|^2] = 0, to five standard errors.
        terms = law.curvature(x).sum(axis=1) + (law.score(x) ** 2).sum(axis=1)
        assert abs(terms.mean()) < 5 * terms.std() / math.sqrt(n), name


@pytest.mark.parametrize("name", LAWS)
def test_score_is_the_gradient_of_the_log_density(name: str) -> None:
    law = LAWS[name]
    x, h = interior(law), 1e-5
    numeric = np.stack(
        [(law.log_density(x + h * unit) - law.log_density(x - h * unit)) / (2 * h) for unit in np.eye(law.dimension)],
        axis=1,
    )
    # Central differences: rounding 1e-16 |log p| / h ~ 1e-10, curvature error h^2 times the third derivative.
    np.testing.assert_allclose(law.score(x), numeric, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("name", LAWS)
def test_hessian_is_the_jacobian_of_the_score_and_curvature_its_diagonal(name: str) -> None:
    law = LAWS[name]
    x, h = interior(law), 1e-5
    numeric = np.stack(
        [(law.score(x + h * unit) - law.score(x - h * unit)) / (2 * h) for unit in np.eye(law.dimension)], axis=2
    )
    scale = np.abs(numeric).max() + 1.0
    np.testing.assert_allclose(law.hessian(x), numeric, rtol=1e-5, atol=1e-6 * scale)
    np.testing.assert_array_equal(law.curvature(x), np.diagonal(law.hessian(x), axis1=1, axis2=2))


def integral(law: Distribution, half_width: float, step: float) -> float:
    """Midpoint rule over a centred square (or interval), a band of rows at a time."""
    axis = np.arange(-half_width + step / 2, half_width, step)
    if law.dimension == 1:
        return float(np.exp(law.log_density(axis[:, None])).sum() * step)
    total = 0.0
    for band in np.array_split(axis, 20):
        points = np.stack(np.meshgrid(band, axis, indexing="ij"), axis=-1).reshape(-1, 2)
        total += np.exp(law.log_density(points)).sum()
    return total * step**2


@pytest.mark.parametrize(
    ("name", "half_width", "step", "tolerance"),
    [
        # The midpoint rule is exact to rounding for smooth laws once the step is below half a standard deviation.
        ("banana", 40.0, 0.1, 1e-10),
        ("mog", 8.0, 0.05, 1e-10),
        ("ring", 6.6, 0.02, 1e-10),
        ("gaussian_scales", 10.0, 0.01, 1e-10),
        # The edges of these fall between cells.
        ("square", 5.0, 0.02, 1e-10),
        ("cosine", 10.0, 0.02, 1e-6),
        # 1/r at the origin carries 2 w_1 N(0; 1, 0.2) = 1.7e-6 per unit of radius: the cells there err by less.
        ("mor", 6.6, 0.02, 1e-7),
        ("sheared banana", 40.0, 0.1, 1e-8),
        ("rotated cosine", 10.0, 0.02, 2e-3),  # slanted edges cut cells: 16 edge units x step / 2, randomly signed
    ],
)
def test_density_integrates_to_one(name: str, half_width: float, step: float, tolerance: float) -> None:
    assert integral(LAWS[name], half_width, step) == pytest.approx(1.0, abs=tolerance)


def test_funnel_density_integrates_to_one() -> None:
    # In x2 = sqrt(v) t every slice has the same width, whatever v is.
    x1, t = np.arange(-14, 14, 0.01) + 0.005, np.arange(-8, 8, 0.1) + 0.05
    root_v = np.sqrt(np.minimum(np.exp(-x1), 10.0))
    points = np.stack(np.broadcast_arrays(x1[:, None], root_v[:, None] * t), axis=-1).reshape(-1, 2)
    slices = np.exp(KNOWN["funnel"].log_density(points)).reshape(len(x1), len(t)).sum(axis=1) * 0.1
    # The law has a kink in x1 where v reaches its cap; it does not touch the integral over t.
    assert (slices * root_v).sum() * 0.01 == pytest.approx(1.0, abs=1e-8)


def test_negative_radii_are_part_of_the_ring_law() -> None:
    # With a standard deviation as large as the radius a sixth of the radii are negative: the histogram of |x| knows.
    law = Rings((1.0,), std=1.0)
    x = law.sample(200_000, rng_for("test", "fold"))
    r = np.linalg.norm(x, axis=1)
    edges = np.linspace(0.05, 3.0, 30)
    middle = (edges[1:] + edges[:-1]) / 2
    share = np.histogram(r, edges)[0] / len(r)
    points = np.stack([middle, np.zeros_like(middle)], axis=1)
    expected = np.exp(law.log_density(points)) * 2 * math.pi * middle * np.diff(edges)
    # Binomial error of about sqrt(0.05 / 2e5) = 5e-4, and 1e-4 from taking each bin at its middle.
    np.testing.assert_allclose(share, expected, atol=5 * 5e-4)


def test_rotation_turns_points_anticlockwise_and_keeps_the_density() -> None:
    base, turned = KNOWN["funnel"], rotated(KNOWN["funnel"], 90.0)
    x = base.sample(50, rng_for("test", "turn"))
    quarter = np.stack([-x[:, 1], x[:, 0]], axis=1)
    np.testing.assert_allclose(turned.sample(50, rng_for("test", "turn")), quarter, atol=1e-12)
    np.testing.assert_allclose(turned.log_density(quarter), base.log_density(x), atol=1e-9)


def test_ring_is_finite_at_the_origin() -> None:
    origin = np.zeros((1, 2))
    for name in ("ring", "mor"):
        assert np.isfinite(KNOWN[name].log_density(origin)).all()
        assert np.isfinite(KNOWN[name].score(origin)).all()


def test_density_is_zero_outside_the_support() -> None:
    assert KNOWN["square"].log_density(np.array([[3.1, 0.0]]))[0] == -np.inf
    assert KNOWN["cosine"].log_density(np.array([[4.1, 0.0]]))[0] == -np.inf
