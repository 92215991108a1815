"""Witnesses: a dense quadratic programme in the span of the representer theorem, Hermite polynomials, adaptive
quadrature, finite differences, and the true density of a Gaussian."""

import math
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from numpy.polynomial.hermite import hermval
from scipy.integrate import quad

from dkef.core.arrays import Array
from dkef.core.errors import ConfigError, DkefError
from dkef.core.streams import rng_for
from dkef.models.kcef.conditional import Hyper, Rows, derivatives, fit_beta
from dkef.models.kcef.cross_validation import FoldSolver, cross_validated_score
from dkef.models.kcef.density import Conditional, KcefModel
from dkef.models.kcef.search import Search
from dkef.models.kcef.spec import Kcef
from dkef.models.protocol import Fit, FitContext
from dkef.models.storage import load_model, write_model

HYPER = Hyper(0.4, 0.7, 1e-2)
STD = 2.0


def curve(n: int, name: str = "curve") -> Array:
    """Rows around a bent line in three dimensions."""
    rng = rng_for("test", "kcef", name)
    t = rng.normal(size=n)
    noise = rng.normal(size=(n, 3))
    return np.stack([t, t**2 / 2 - 1 + 0.5 * noise[:, 1], np.sin(2 * t) + 0.5 * noise[:, 2]], axis=1)


@pytest.fixture(scope="module")
def model() -> KcefModel:
    x = curve(60)
    return KcefModel(tuple(Conditional.fit(x[:, :i], x[:, i], HYPER, STD, 1e-10) for i in range(3)))


def hermite_derivative(r: float, g: float, j: int) -> float:
    """d^j/dr^j exp(-g r^2) = (-sqrt g)^j H_j(sqrt(g) r) exp(-g r^2)."""
    return float((-math.sqrt(g)) ** j * hermval(math.sqrt(g) * r, [0] * j + [1]) * math.exp(-g * r**2))


def naive_solution(u: Array, y: Array, hyper: Hyper) -> tuple[Array, Array]:
    """Coefficients c1, c2 of the best f = sum_b c1_b dK_b + c2_b d^2 K_b, from the loss written out in them.

    Loss: mean_b [f''(b) + q'(b) f'(b) + f'(b)^2 / 2] + lambda |f|^2 / 2, a quadratic in 2n numbers. Its matrix is
    singular to rounding; the minimiser in function values does not depend on which solution is taken.
    """
    n = len(y)

    def inner(b: int, j: int, c: int, i: int) -> float:
        """<d^j K_b, d^i K_c>."""
        kx = math.exp(-hyper.g_x * float(((u[b] - u[c]) ** 2).sum()))
        return kx * (-1) ** i * hermite_derivative(float(y[b] - y[c]), hyper.g_y, i + j)

    basis = [(c, i) for i in (1, 2) for c in range(n)]
    first = np.array([[inner(b, 1, c, i) for c, i in basis] for b in range(n)])
    second = np.array([[inner(b, 2, c, i) for c, i in basis] for b in range(n)])
    gram = np.array([[inner(b, j, c, i) for c, i in basis] for b, j in basis])
    linear = (second + (-y / STD**2)[:, None] * first).mean(axis=0)
    coefficients = -np.linalg.lstsq(first.T @ first / n + hyper.lam * gram, linear, rcond=1e-15)[0]
    return coefficients[:n], coefficients[n:]


def naive_f1_f2(u: Array, y: Array, c: tuple[Array, Array], hyper: Hyper, at: tuple[Array, float]) -> list[float]:
    """f' and f'' in y at one point, by loops."""
    point_u, point_y = at
    out = []
    for j in (1, 2):
        total = 0.0
        for b in range(len(y)):
            kx = math.exp(-hyper.g_x * float(((point_u - u[b]) ** 2).sum()))
            for i in (1, 2):
                total += c[i - 1][b] * kx * (-1) ** i * hermite_derivative(point_y - y[b], hyper.g_y, i + j)
        out.append(total)
    return out


def test_kernel_derivatives_by_recurrence_equal_hermite_polynomials() -> None:
    r, g = np.linspace(-3, 3, 7), 0.8
    found = derivatives(np.exp(-g * r**2), r, g, 4)
    expected = [[hermite_derivative(v, g, j) for v in r] for j in range(5)]
    np.testing.assert_allclose(found, expected, rtol=1e-12, atol=1e-13)


def test_the_fit_equals_a_dense_minimisation_over_the_whole_span_on_30_points() -> None:
    x = curve(30)
    u, y = x[:, :2], x[:, 2]
    fitted = Conditional.fit(u, y, HYPER, STD, 1e-8)
    c = naive_solution(u, y, HYPER)
    _, w1, w2 = fitted.features(y[:5], order=2)
    weights = fitted.weights(u[:5])
    for i in range(5):
        f1, f2 = naive_f1_f2(u, y, c, HYPER, (u[i], float(y[i])))
        # the dense matrix has condition ~1e13; its least-squares solution keeps about seven digits
        assert weights[i] @ w1[i] == pytest.approx(f1, rel=1e-6, abs=1e-6)
        assert weights[i] @ w2[i] == pytest.approx(f2, rel=1e-6, abs=1e-6)


@pytest.fixture(params=[7, 64])
def tile(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Rows worked on at once: a few tiles, the last one smaller, or all in one."""
    monkeypatch.setattr("dkef.models.kcef.cross_validation.TILE", request.param)


@pytest.mark.usefixtures("tile")
def test_one_inverse_solves_every_fold_exactly() -> None:
    rng = rng_for("test", "folds")
    A = np.cov(rng.normal(size=(12, 40))) + np.eye(12)
    rhs = rng.normal(size=(12, 4))
    solved = FoldSolver(A.copy(), folds=4).solve(rhs)
    for v in range(4):
        kept = np.setdiff1d(np.arange(12), np.arange(3 * v, 3 * v + 3))
        np.testing.assert_allclose(solved[kept, v], np.linalg.solve(A[np.ix_(kept, kept)], rhs[kept, v]), rtol=1e-11)
        assert not solved[3 * v : 3 * v + 3, v].any()


@pytest.mark.usefixtures("tile")
def test_the_cross_validated_score_equals_refitting_without_each_fold_by_dense_loops() -> None:
    x = curve(30)
    u, y = x[:, :1], x[:, 1]
    losses = []
    for v in range(3):
        held = np.arange(10 * v, 10 * v + 10)
        kept = np.setdiff1d(np.arange(30), held)
        c = naive_solution(u[kept], y[kept], HYPER)
        for b in held:
            f1, f2 = naive_f1_f2(u[kept], y[kept], c, HYPER, (u[b], float(y[b])))
            losses.append(f2 - y[b] / STD**2 * f1 + f1**2 / 2)
    value, _ = cross_validated_score(Rows.of(u, y, STD), HYPER, folds=3)
    assert value == pytest.approx(np.mean(losses), rel=1e-6)


@pytest.mark.usefixtures("tile")
def test_the_gradient_of_the_cross_validated_score_equals_central_differences() -> None:
    x = curve(40)
    rows = Rows.of(x[:, :2], x[:, 2], STD)
    _, gradient = cross_validated_score(rows, HYPER, folds=4)
    for i in range(3):
        step = 1e-5 * HYPER[i]
        ends = []
        for sign in (1, -1):
            moved = list(HYPER)
            moved[i] += sign * step
            ends.append(cross_validated_score(rows, Hyper(*moved), folds=4)[0])
        # truncation ~ (relative step)^2 = 1e-10; rounding ~ 1e-13 / 1e-5
        assert gradient[i] == pytest.approx((ends[0] - ends[1]) / (2 * step), rel=1e-6)


@pytest.mark.parametrize("scale", ["plain", "log"])
def test_the_search_ends_where_the_penalised_score_is_flat(scale: str) -> None:
    x = curve(100)
    rows = Rows.of(x[:, :1], x[:, 1], STD)
    search = Search(Hyper(1.0, 1.0, 1e-2), 10, 0.1, scale, Hyper(1e-6, 1e-6, 1e-6), 10.0, 500, 1e-10)
    hyper, trace, _ = search.run(rows)
    _, gradient = cross_validated_score(rows, hyper, 10)
    slope = (gradient + 0.2 * np.array(hyper)) * np.array(hyper)
    assert np.abs(slope).max() < 1e-3
    assert trace[-1]["held_out_score"] < trace[0]["held_out_score"]


def test_every_conditional_integrates_to_one(model: KcefModel) -> None:
    for i, conditional in enumerate(model.conditionals):
        u = np.array([[0.3, -0.9][:i]])
        grid = conditional.features(conditional.grid)[0]

        def density(y: float, c: Conditional = conditional, u: Array = u, grid: Array = grid) -> float:
            return math.exp(c.log_p(u, np.array([y]), grid)[0])

        integral, error = quad(density, -20, 20, points=[-3, -1, 0, 1, 3], limit=200, epsabs=1e-12)
        # 1e-10 is the tolerance the grid was refined to
        assert integral == pytest.approx(1, abs=1e-10 + error)


def test_the_stated_quadrature_error_covers_what_a_four_times_finer_grid_changes(model: KcefModel) -> None:
    x = curve(20, "elsewhere")
    coarse = KcefModel(tuple(replace(c, nodes=65) for c in model.conditionals))
    fine = KcefModel(tuple(replace(c, nodes=1025) for c in model.conditionals))
    stated = coarse.log_z_error(x)
    assert (np.abs(coarse.log_density(x) - fine.log_density(x)) <= stated + 1e-13).all()
    assert stated.max() > 1e-13  # or the comparison shows nothing


def test_a_grid_that_cuts_off_mass_is_widened_until_it_holds_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("dkef.models.kcef.density.REACH", 0.1)
    x = rng_for("test", "kcef", "narrow").normal(size=(60, 1))
    conditional = Conditional.fit(x[:, :0], x[:, 0], HYPER, STD, 1e-8)
    assert conditional.high > x.max() + 0.1 * STD  # where it would have ended
    grid = np.linspace(-30, 30, 6001)
    density = np.exp(conditional.log_p(np.empty((6001, 0)), grid, conditional.features(conditional.grid)[0]))
    assert density.sum() * 0.01 == pytest.approx(1, abs=1e-7)


def test_joint_score_and_curvature_equal_differences_of_the_log_density(model: KcefModel) -> None:
    x, h = curve(8, "points"), 1e-3
    at = model.evaluate(x, batch=3)
    np.testing.assert_allclose(at.log_density, model.log_density(x), rtol=1e-12)
    for d in range(3):
        shift = h * np.eye(3)[d]
        near = [model.log_density(x + k * shift) for k in (-2, -1, 0, 1, 2)]
        first = (near[0] - 8 * near[1] + 8 * near[3] - near[4]) / (12 * h)
        second = (-near[0] + 16 * near[1] - 30 * near[2] + 16 * near[3] - near[4]) / (12 * h**2)
        # fourth-order stencils: truncation ~ h^4 = 1e-12; rounding 1e-13 / h and 1e-13 / h^2
        np.testing.assert_allclose(at.score[:, d], first, rtol=1e-8, atol=1e-8)
        np.testing.assert_allclose(at.curvature[:, d], second, rtol=1e-5, atol=1e-5)


def on_a_grid() -> Array:
    """Points that share coordinates: each of the eight with each other value, some twice."""
    return np.array([[a, b, c] for c in (0.1, -1.0) for a in (0.3, -0.9) for b in (1.2, 0.0, 1.2)])


@pytest.mark.parametrize("points", [on_a_grid(), on_a_grid()[:5], curve(9, "apart")], ids=["grid", "part", "apart"])
def test_points_that_share_coordinates_have_the_values_of_each_alone(model: KcefModel, points: Array) -> None:
    alone, together = [model.evaluate(row[None]) for row in points], model.evaluate(points, batch=5)
    # the same sums in another order
    for name in ("log_density", "score", "curvature"):
        expected = np.concatenate([getattr(at, name) for at in alone])
        np.testing.assert_allclose(getattr(together, name), expected, rtol=1e-10, atol=1e-12)
    np.testing.assert_allclose(model.log_density(points, batch=5), together.log_density, rtol=1e-12)


def test_no_points_have_no_values(model: KcefModel) -> None:
    nowhere = np.empty((0, 3))
    at = model.evaluate(nowhere)
    assert (at.log_density.shape, at.score.shape, at.curvature.shape) == ((0,), (0, 3), (0, 3))
    assert model.log_density(nowhere).shape == (0,)


def test_samples_follow_the_conditional_distribution_function() -> None:
    x = curve(60)
    conditional = Conditional.fit(x[:, :1], x[:, 1], HYPER, STD, 1e-10)
    grid = conditional.features(conditional.grid)[0]
    u = np.full((4000, 1), 0.7)
    drawn = np.sort(conditional.sample(u, grid, rng_for("test", "kcef", "sample")))
    points = np.linspace(-3, 3, 9)
    density = np.exp(conditional.log_p(np.full((6001, 1), 0.7), fine := np.linspace(-15, 15, 6001), grid))
    cdf = np.interp(points, fine, np.cumsum(density) * (fine[1] - fine[0]))
    empirical = np.searchsorted(drawn, points) / len(drawn)
    # four standard errors of a proportion of 4000 draws
    assert np.abs(empirical - cdf).max() < 4 * 0.5 / math.sqrt(4000)


def test_a_two_dimensional_gaussian_is_approached_as_rows_are_added() -> None:
    rng = rng_for("test", "kcef", "gaussian")
    L = np.array([[1.0, 0.0], [0.6, 0.8]])
    train, test = rng.normal(size=(600, 2)) @ L.T, rng.normal(size=(2000, 2)) @ L.T
    precision = np.linalg.inv(L @ L.T)

    def divergence(n: int) -> float:
        fit = Kcef(scale="log").fit(train[:n], test[:100], FitContext())
        return float(0.5 * ((fit.model.score(test) + test @ precision) ** 2).sum(axis=1).mean())

    few, many = divergence(100), divergence(600)
    # half the mean squared score of the truth is 1.56; a fit of 600 rows leaves a few per cent of it
    assert many < 0.08
    assert many < few / 3


def test_a_model_file_gives_back_the_same_model(model: KcefModel, tmp_path: Path) -> None:
    write_model(tmp_path / "model.h5", Fit(model), {})
    x = curve(5, "again")
    np.testing.assert_array_equal(load_model(tmp_path / "model.h5").evaluate(x).curvature, model.evaluate(x).curvature)


def test_only_the_first_rows_are_used_and_their_number_is_noted() -> None:
    x = curve(80)
    spec = Kcef(rows=40, max_iterations=2)
    first, all_rows = spec.fit(x[:40], x[60:], FitContext()), spec.fit(x, x[60:], FitContext())
    np.testing.assert_array_equal(first.model.log_density(x), all_rows.model.log_density(x))
    assert all_rows.notes["rows_used"] == 40
    assert all_rows.notes["log_z_error"] < 1e-6


def test_values_out_of_range_and_too_few_rows_are_refused_with_a_sentence() -> None:
    with pytest.raises(ConfigError, match=r"^folds is 1; allowed is >= 2"):
        Kcef(folds=1)
    with pytest.raises(ConfigError, match=r"^g_init is 100.0; allowed is from g_lower to upper"):
        Kcef(g_init=100.0)
    with pytest.raises(DkefError, match="too few for 10 folds"):
        Kcef().fit(curve(12), curve(5), FitContext())


def test_beta_solves_the_stated_system() -> None:
    x = curve(25)
    rows = Rows.of(x[:, :1], x[:, 1], STD)
    beta = fit_beta(rows, HYPER)
    n = 25
    G = np.array([[math.exp(-0.4 * rows.squared[b, c]) * -hermite_derivative(rows.r[b, c], 0.7, 2) for c in range(n)] for b in range(n)])  # fmt: skip  # noqa: E501
    h = [
        np.mean([
            math.exp(-0.4 * rows.squared[b, a])
            * (hermite_derivative(rows.r[b, a], 0.7, 3) - rows.q1[a] * hermite_derivative(rows.r[b, a], 0.7, 2))
            for a in range(n)
        ])
        for b in range(n)
    ]  # fmt: skip
    np.testing.assert_allclose((G + n * 1e-2 * np.eye(n)) @ beta, np.array(h) / 1e-2, rtol=1e-9, atol=1e-9)
