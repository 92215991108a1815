"""Stein discrepancies against loops over points, closed forms for Gaussians, and their laws over many seeds."""

import dataclasses
import math

import numpy as np
import pytest
from scipy.spatial.distance import pdist
from scipy.stats import kstest

import dkef
from dkef.core.arrays import Array
from dkef.core.errors import DkefError
from dkef.core.streams import rng_for
from dkef.metrics.stein import compare_fssd, draw_locations, fssd, ksd, median_distance

SIZES = [(2, 1, 1), (7, 1, 3), (40, 2, 5), (23, 5, 2), (60, 3, 11)]  # n, d, J


def sample(n: int, d: int, J: int) -> tuple[Array, Array, Array, Array, float]:
    """Points, two scores that have nothing to do with them, locations and a bandwidth."""
    rng = rng_for("test", "stein", n, d, J)
    x = 3.0 + 2.0 * rng.standard_normal((n, d))
    p, q = rng.standard_normal((2, n, d))
    return x, p, q, 3.0 + rng.standard_normal((J, d)), float(rng.uniform(0.5, 3.0))


def naive_features(x: Array, score: Array, v: Array, s: float) -> Array:
    """tau(x) at every location and coordinate by four loops; [n, J d]."""
    n, d = x.shape
    tau = np.zeros((n, len(v), d))
    for i in range(n):
        for b in range(len(v)):
            kernel = math.exp(-sum((x[i, k] - v[b, k]) ** 2 for k in range(d)) / (2 * s**2))
            for k in range(d):
                slope = -(x[i, k] - v[b, k]) / s**2 * kernel
                tau[i, b, k] = (score[i, k] * kernel + slope) / math.sqrt(d * len(v))
    return tau.reshape(n, -1)


def naive_fssd(tau: Array) -> tuple[float, float]:
    """The U-statistic as a loop over pairs of different points, and the H1 variance as printed by its authors."""
    n, mu = len(tau), tau.mean(axis=0)
    pairs = [float(tau[i] @ tau[j]) for i in range(n) for j in range(n) if i != j]
    variance = 4 * np.mean([float(t @ mu) ** 2 for t in tau]) - 4 * float(mu @ mu) ** 2
    return sum(pairs) / (n * (n - 1)), variance


def naive_h(x: Array, y: Array, p: Array, q: Array, s: float) -> float:
    """The KSD kernel of two points, term by term: l p.q + p.grad_y l + q.grad_x l + sum_d d_x d_y l."""
    total = 0.0
    kernel = math.exp(-float((x - y) @ (x - y)) / (2 * s**2))
    for k in range(len(x)):
        gap = (x[k] - y[k]) / s**2
        total += kernel * (p[k] * q[k] + p[k] * gap - q[k] * gap + 1 / s**2 - gap**2)
    return total


@pytest.mark.parametrize(("n", "d", "J"), SIZES)
def test_fssd_and_its_variance_equal_a_loop_over_pairs(n: int, d: int, J: int) -> None:
    x, p, _, v, s = sample(n, d, J)
    statistic, variance = naive_fssd(naive_features(x, p, v, s))
    found = fssd(x, p, v, s)
    assert found.statistic == pytest.approx(statistic, abs=1e-10)
    assert found.variance == pytest.approx(variance, abs=1e-10)
    assert found.stderr == pytest.approx(math.sqrt(max(variance, 0) / n), abs=1e-6)


@pytest.mark.parametrize(("n", "d", "J"), SIZES)
def test_the_relative_statistic_and_its_variance_equal_a_loop_over_pairs(n: int, d: int, J: int) -> None:
    x, p, q, v, s = sample(n, d, J)
    tau_p, tau_q = naive_features(x, p, v, s), naive_features(x, q, v, s)
    (fssd_p, var_p), (fssd_q, var_q) = naive_fssd(tau_p), naive_fssd(tau_q)
    mu_p, mu_q = tau_p.mean(axis=0), tau_q.mean(axis=0)
    both = np.mean([(a @ mu_p) * (b @ mu_q) for a, b in zip(tau_p, tau_q, strict=True)])
    covariance = 4 * both - 4 * (mu_p @ mu_p) * (mu_q @ mu_q)
    found = compare_fssd(x, p, q, v, s)
    assert found.statistic == pytest.approx(fssd_p - fssd_q, abs=1e-10)
    assert found.variance == pytest.approx(var_p - 2 * covariance + var_q, abs=1e-10)
    z = math.sqrt(n) * found.statistic / math.sqrt(found.variance)
    assert found.p_value == pytest.approx(0.5 * math.erfc(z / math.sqrt(2)), abs=1e-12)


@pytest.mark.parametrize(("n", "d", "J"), SIZES)
def test_ksd_and_its_variance_equal_a_double_loop(n: int, d: int, J: int) -> None:
    x, p, _, _, s = sample(n, d, J)
    h = np.array([[naive_h(x[i], x[j], p[i], p[j], s) for j in range(n)] for i in range(n)])
    off = h - np.diag(np.diag(h))
    found = ksd(x, p, s)
    assert found.statistic == pytest.approx(off.sum() / (n * (n - 1)), abs=1e-10)
    assert found.v_statistic == pytest.approx(h.mean(), abs=1e-10)
    assert found.variance == pytest.approx(4 * np.var(off.sum(axis=1) / (n - 1)), abs=1e-10)


@pytest.mark.parametrize("block_rows", [1, 3, 16, 59, 60, 61, 1000])
def test_blocks_of_any_size_give_the_same(block_rows: int) -> None:
    x, p, q, v, s = sample(60, 3, 11)
    # Values are of order one and sums have at most 3600 terms, added in another order: 1e-12 leaves room.
    for whole, blocked in [
        (fssd(x, p, v, s), fssd(x, p, v, s, block_rows=block_rows)),
        (compare_fssd(x, p, q, v, s), compare_fssd(x, p, q, v, s, block_rows=block_rows)),
        (ksd(x, p, s), ksd(x, p, s, block_rows=block_rows)),
        (ksd(x, p, s), ksd(x, p, s, block_rows=block_rows, threads=3)),
    ]:
        assert dataclasses.astuple(blocked) == pytest.approx(dataclasses.astuple(whole), abs=1e-12, rel=1e-12)


def test_ksd_is_the_same_to_the_last_bit_with_any_number_of_threads() -> None:
    x, p, _, _, s = sample(500, 4, 1)
    assert ksd(x, p, s, block_rows=64, threads=4) == ksd(x, p, s, block_rows=64, threads=1)


def test_a_common_shift_of_points_and_locations_changes_nothing() -> None:
    x, p, _, v, s = sample(60, 3, 11)
    # A shift by 2^23 rounds the points themselves at 1e-9; squares of shifted points would lose all but 1e-3.
    far, far_v = x + 2.0**23, v + 2.0**23
    assert fssd(far, p, far_v, s).statistic == pytest.approx(fssd(x, p, v, s).statistic, abs=1e-9)
    assert ksd(far, p, s).statistic == pytest.approx(ksd(x, p, s).statistic, abs=1e-9)


def test_float32_arrays_are_computed_in_float64() -> None:
    x, p, _, v, s = sample(60, 3, 11)
    single = [a.astype(np.float32) for a in (x, p, v)]
    double = [a.astype(np.float64) for a in single]
    assert fssd(*single, s) == fssd(*double, s)
    assert ksd(*single[:2], s) == ksd(*double[:2], s)


def gaussian_gap(d: int, J: int) -> tuple[Array, Array, float]:
    """A shift m between data N(0, I) and model N(m, I), locations, and a bandwidth."""
    rng = rng_for("test", "closed form", d, J)
    return np.full(d, 0.5), rng.standard_normal((J, d)), 1.3


def test_fssd_of_a_shifted_gaussian_is_its_closed_form_on_average() -> None:
    m, v, s = gaussian_gap(2, 4)
    # E l(x, v) (score - true score) = m E l(x, v), a Gaussian integral.
    mean_kernel = (s**2 / (1 + s**2)) * np.exp(-(v**2).sum(axis=1) / (2 * (1 + s**2)))
    truth = float(m @ m) * float((mean_kernel**2).sum()) / (2 * len(v))
    xs = rng_for("test", "fssd closed form").standard_normal((400, 30, 2))
    found = np.array([fssd(x, m - x, v, s).statistic for x in xs])
    assert abs(found.mean() - truth) < 4 * found.std() / math.sqrt(len(found))
    assert found.std() / math.sqrt(len(found)) < truth / 20  # the check above has teeth


def test_ksd_of_a_shifted_gaussian_is_its_closed_form_on_average() -> None:
    m, _, s = gaussian_gap(2, 1)
    truth = float(m @ m) * s**2 / (s**2 + 2)  # |m|^2 E l(x, x'), x - x' ~ N(0, 2 I)
    xs = rng_for("test", "ksd closed form").standard_normal((400, 30, 2))
    found = np.array([ksd(x, m - x, s).statistic for x in xs])
    assert abs(found.mean() - truth) < 4 * found.std() / math.sqrt(len(found))
    assert found.std() / math.sqrt(len(found)) < truth / 20


def test_the_stderr_of_fssd_and_ksd_is_their_spread_over_samples_where_the_model_is_wrong() -> None:
    m, v, s = np.array([1.0, 0.0]), rng_for("test", "spread").standard_normal((4, 2)), 1.3
    xs = rng_for("test", "spread of fssd").standard_normal((300, 200, 2))
    for estimates in ([fssd(x, m - x, v, s) for x in xs], [ksd(x, m - x, s) for x in xs]):
        spread = np.std([e.statistic for e in estimates], ddof=1)
        claimed = np.mean([e.stderr for e in estimates])
        # 300 samples know their standard deviation to 4 %; terms of order 1 / n are left out of the claim.
        assert claimed == pytest.approx(spread, rel=0.15)


def test_fssd_of_the_true_density_is_centred_at_zero() -> None:
    v, s, seeds = rng_for("test", "level").standard_normal((3, 2)), 1.5, 200
    samples = (rng_for("test", "null", seed).standard_normal((150, 2)) for seed in range(seeds))
    statistics = [fssd(x, -x, v, s).statistic for x in samples]
    assert abs(np.mean(statistics)) < 4 * np.std(statistics) / math.sqrt(seeds)


def test_the_p_value_of_two_equally_good_different_models_is_uniform() -> None:
    m, s, seeds = np.array([0.7, 0.2]), 1.5, 200
    half = rng_for("test", "mirror").standard_normal((3, 2))
    v = np.vstack([half, -half])  # mirrored locations make N(m, I) and N(-m, I) exactly as far from N(0, I)
    p_values = []
    for seed in range(seeds):
        x = rng_for("test", "equal", seed).standard_normal((200, 2))
        p_values.append(compare_fssd(x, m - x, -m - x, v, s).p_value)
    # Kolmogorov-Smirnov: the largest gap between 200 uniform values and their law exceeds 0.137 once in a thousand.
    assert kstest(p_values, "uniform").pvalue > 0.001


def test_the_power_against_a_worse_model_grows_with_n() -> None:
    v, s, shift = rng_for("test", "power").standard_normal((4, 2)), 1.5, np.array([0.25, 0.0])
    power = []
    for n in (50, 200, 800):
        xs = [rng_for("test", "power", n, seed).standard_normal((n, 2)) for seed in range(60)]
        power.append(np.mean([compare_fssd(x, shift - x, -x, v, s).p_value < 0.05 for x in xs]))
    assert power[0] < 0.5 < power[2]
    assert power[0] < power[1] < power[2]


def test_a_p_value_near_zero_favours_the_second_model() -> None:
    x = rng_for("test", "direction").standard_normal((500, 2))
    v = rng_for("test", "direction v").standard_normal((10, 2))
    good, bad = -x, 1.0 - x
    assert compare_fssd(x, bad, good, v, 1.5).p_value < 1e-3
    assert compare_fssd(x, good, bad, v, 1.5).p_value > 1 - 1e-3


def test_the_p_values_of_both_orders_sum_to_one() -> None:
    for n, d, J in SIZES:
        x, p, q, v, s = sample(n, d, J)
        there, back = compare_fssd(x, p, q, v, s), compare_fssd(x, q, p, v, s)
        assert there.p_value + back.p_value == pytest.approx(1.0, abs=1e-15)
        assert there.variance == back.variance


def test_a_model_against_itself_is_undefined_and_says_so() -> None:
    x, p, _, v, s = sample(60, 3, 11)
    for same in (p, p.copy(), p * (1 + 1e-16), p + 1e-15):  # equal, and equal up to rounding
        found = compare_fssd(x, p, same, v, s)
        assert found.undefined
        assert math.isnan(found.p_value)
        assert abs(found.statistic) < 1e-13
    assert not compare_fssd(x, p, p + 1e-7, v, s).undefined  # float32 rounding is a difference


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf, 1e200])
def test_a_score_that_is_not_finite_is_an_error_with_a_count(value: float) -> None:
    x, p, q, v, s = sample(60, 3, 11)
    p[[3, 17], 1] = value
    for call in (
        lambda: fssd(x, p, v, s),
        lambda: compare_fssd(x, p, q, v, s),
        lambda: compare_fssd(x, q, p, v, s),
        lambda: ksd(x, p, s),
    ):
        with pytest.raises(DkefError, match="2 of 60 scores not finite"):
            call()


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"score": np.zeros((5, 2))}, "must be equal"),
        ({"x": np.zeros((1, 3)), "score": np.zeros((1, 3))}, "n >= 2"),
        ({"locations": np.zeros((4, 2))}, "locations"),
        ({"locations": np.zeros((0, 3))}, "J >= 1"),
        ({"bandwidth": 0.0}, "bandwidth"),
        ({"bandwidth": math.nan}, "bandwidth"),
    ],
)
def test_misshapen_input_is_one_sentence(change: dict[str, object], message: str) -> None:
    x, p, _, v, s = sample(60, 3, 11)
    with pytest.raises(DkefError, match=message):
        fssd(**({"x": x, "score": p, "locations": v, "bandwidth": s} | change))  # type: ignore[arg-type]


def test_the_median_distance_is_over_all_pairs_of_at_most_so_many_rows() -> None:
    x = rng_for("test", "median").standard_normal((50, 3))
    distances = [math.dist(x[i], x[j]) for i in range(50) for j in range(i)]
    assert median_distance(x, 50, rng_for("test", "rows")) == pytest.approx(np.median(distances), rel=1e-14)
    few = median_distance(x, 10, rng_for("test", "rows"))
    assert few == median_distance(x, 10, rng_for("test", "rows"))
    rows = rng_for("test", "rows").choice(50, 10, replace=False)
    assert few == np.median(pdist(x[rows]))


def test_duplicate_rows_give_no_bandwidth_but_a_sentence() -> None:
    with pytest.raises(DkefError, match="no bandwidth"):
        median_distance(np.zeros((5, 2)), 10, rng_for("test", "rows"))


def test_more_locations_extend_fewer_ones() -> None:
    x = rng_for("test", "locations").standard_normal((50, 3))
    few, many = (draw_locations(x, J, 0.2, rng_for("test", "draw")) for J in (7, 20))
    np.testing.assert_array_equal(many[:7], few)


def test_locations_are_rows_of_the_sample_plus_noise_of_the_given_size() -> None:
    x = 1e6 * np.arange(300.0).reshape(100, 3)
    v = draw_locations(x, 2000, 0.2, rng_for("test", "noise"))
    noise = v - 1e6 * np.round(v / 1e6)
    drawn = np.round(v[:, 0] / 3e6).astype(int)
    np.testing.assert_array_equal(np.round(v / 1e6), x[drawn] / 1e6)
    assert len(set(drawn)) > 95  # 2000 draws of 100 rows miss one with probability 2e-9 each
    assert noise.std() == pytest.approx(0.2, rel=0.05)  # 6000 values know theirs to 1 %
    np.testing.assert_array_equal(draw_locations(x, 5, 0.0, rng_for("test", "noise")) % 1e6, 0.0)


def test_stein_is_reached_from_the_package() -> None:
    assert dkef.stein.fssd is fssd
