"""Stein discrepancies: how far a model's score is from the distribution behind a sample, without any normaliser.

Section 3.2 of the paper, with the kernel l(x, v) = exp(-|x - v|^2 / (2 s^2)) and s given as `bandwidth`. The Stein
feature of a point x at a location v is

    score(x) l(x, v) + grad_x l(x, v) = l(x, v) (score(x) - (x - v) / s^2),

whose mean over the data is zero at every v exactly when the score is that of the data. Everything below is a sum of
products of l with per-point and per-location vectors, so that it runs in blocks, as matrix products, and nothing of
size points x locations x coordinates ever exists.
"""

import math
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

import numpy as np
from threadpoolctl import threadpool_limits  # type: ignore[import-untyped]

from dkef.core.arrays import Array
from dkef.core.errors import DkefError
from dkef.metrics.pointwise import require_finite

# Two scores that differ by rounding alone have no order: below this ratio of standard deviations the test is 0 / 0.
ROUNDING = 1e-12


@dataclass(frozen=True)
class Discrepancy:
    """Unbiased estimate of a squared discrepancy from n points; it may be negative.

    `variance` is that of sqrt(n) times the statistic where the discrepancy is positive. Where it is zero the statistic
    shrinks like 1 / n, and `stderr` then overstates its spread by a factor of about sqrt(2).
    """

    statistic: float
    variance: float
    n: int

    @property
    def stderr(self) -> float:
        return math.sqrt(self.variance / self.n)


@dataclass(frozen=True)
class KernelDiscrepancy(Discrepancy):
    """Squared kernel Stein discrepancy: the U-statistic, and the V-statistic, which is biased but never negative."""

    v_statistic: float


@dataclass(frozen=True)
class RelativeTest:
    """Test of "P fits no worse than Q"; a small p-value favours Q.

    `statistic` is FSSD^2 of P minus FSSD^2 of Q. Where the two scores agree up to rounding the test is 0 / 0:
    `undefined` is then True and `p_value` is NaN on purpose.
    """

    statistic: float
    variance: float
    n: int
    p_value: float
    undefined: bool


def fssd(x: Array, score: Array, locations: Array, bandwidth: float, block_rows: int = 2000) -> Discrepancy:
    """FSSD^2 of a model's score [n, d] at the sample x [n, d], at the locations [J, d], with its variance under H1."""
    statistic, projection = _project(x, score, locations, bandwidth, block_rows)
    return Discrepancy(statistic, 4 * float(projection.var()), len(x))


def compare_fssd(
    x: Array, score_p: Array, score_q: Array, locations: Array, bandwidth: float, block_rows: int = 2000
) -> RelativeTest:
    """The relative test of Jitkrittum et al. (2018): which of two scores has the smaller FSSD to that of x.

    The variance v_P - 2 c + v_Q of sqrt(n) times the statistic is four times the variance of the difference of the two
    projections: in this form it cannot turn negative.
    """
    statistic_p, projection_p = _project(x, score_p, locations, bandwidth, block_rows)
    statistic_q, projection_q = _project(x, score_q, locations, bandwidth, block_rows)
    statistic = statistic_p - statistic_q
    spread = float((projection_p - projection_q).std())
    undefined = spread <= ROUNDING * float(projection_p.std() + projection_q.std())
    # Phi(-t) = erfc(t / sqrt 2) / 2 at t = sqrt(n) (FSSD^2_p - FSSD^2_q) / sd, where sd = 2 spread
    p_value = math.nan if undefined else math.erfc(math.sqrt(len(x) / 2) * statistic / (2 * spread)) / 2
    return RelativeTest(statistic, 4 * spread**2, len(x), p_value, undefined)


def ksd(x: Array, score: Array, bandwidth: float, block_rows: int = 512, threads: int = 1) -> KernelDiscrepancy:
    """Squared KSD of a model's score [n, d] at the sample x [n, d]: the mean over pairs of

    h(x, y) = l(x, y) [ score(x).score(y) + (score(x) - score(y)).(x - y) / s^2 + d / s^2 - |x - y|^2 / s^4 ].

    n^2 / 2 pairs in tiles of block_rows^2. The numbers do not depend on `threads`.
    """
    x, score = _checked(bandwidth, x, score)
    (n, d), s = x.shape, bandwidth
    u = (x - x.mean(axis=0)) / s
    # The bracket is g.g' + u.u'/s^2 + a + a' + d/s^2: one product of two tables with 2 d + 2 columns.
    g = score - u / s
    a = (score * u).sum(axis=1) / s - (u**2).sum(axis=1) / s**2
    one = np.ones(n)
    left, right = np.column_stack([g, u / s, a + d / s**2, one]), np.column_stack([g, u / s, one, a])

    def strip(rows: slice) -> Array:
        """Sums of h over the pairs of `rows` with themselves and all later points, credited to both ends."""
        sums = np.zeros(n - rows.start)
        for columns in _blocks(n, block_rows, rows.start):
            h = _kernel(u[rows], u[columns])
            if columns == rows:
                np.fill_diagonal(h, 0.0)
            h *= left[rows] @ right[columns].T
            sums[: rows.stop - rows.start] += h.sum(axis=1)
            if columns != rows:
                sums[columns.start - rows.start : columns.stop - rows.start] += h.sum(axis=0)
        return sums

    sums = np.zeros(n)
    for rows, part in _in_order(strip, _blocks(n, block_rows), threads):
        sums[rows.start :] += part
    diagonal = float((score**2).sum()) + n * d / s**2
    total = float(sums.sum())
    return KernelDiscrepancy(total / (n * (n - 1)), 4 * float((sums / (n - 1)).var()), n, (total + diagonal) / n**2)


def median_distance(x: Array, max_rows: int, rng: np.random.Generator) -> float:
    """Median distance between pairs of rows, of at most `max_rows` rows drawn without replacement."""
    rows = x if len(x) <= max_rows else x[rng.choice(len(x), max_rows, replace=False)]
    squares = [((rows[i + 1 :] - rows[i]) ** 2).sum(axis=1) for i in range(len(rows) - 1)]
    median = float(np.median(np.sqrt(np.concatenate(squares)))) if squares else 0.0
    if not (median > 0 and math.isfinite(median)):
        raise DkefError(
            f"the median distance between {len(rows)} test rows is {median}, which is no bandwidth; "
            "remove duplicate or non-finite rows"
        )
    return median


def draw_locations(x: Array, n_locations: int, noise: float, rng: np.random.Generator) -> Array:
    """Rows of x drawn with replacement plus N(0, noise^2); [J, d].

    Drawn one by one, so that more locations extend fewer ones.
    """
    d = x.shape[1]
    return np.stack([x[rng.integers(len(x))] + noise * rng.standard_normal(d) for _ in range(n_locations)])


def _project(x: Array, score: Array, locations: Array, bandwidth: float, block_rows: int) -> tuple[float, Array]:
    """FSSD^2, and the projection tau(x).mu of every point on the mean feature [n], in two passes over blocks.

    tau(x): [J, d], the Stein features over sqrt(J d); mu: its mean. The mean of the projection is |mu|^2, and four
    times its variance is the variance of sqrt(n) FSSD^2 under H1.
    """
    x, score, locations = _checked(bandwidth, x, score, locations)
    (n, d), s = x.shape, bandwidth
    scale = 1 / math.sqrt(locations.size)
    centre = locations.mean(axis=0)  # the features only see differences; small numbers cancel less
    v = (locations - centre) / s
    w = v / s

    def block(rows: slice) -> tuple[Array, Array]:
        """l(x, v_b): [rows, J], and g: [rows, d], so that the feature at v_b is l (g + w_b)."""
        u = (x[rows] - centre) / s
        return _kernel(u, v), score[rows] - u / s

    first, second = np.zeros((len(v), d + 1)), np.zeros((len(v), d + 2))
    for rows in _blocks(n, block_rows):
        kernel, g = block(rows)
        one = np.ones(len(g))
        first += kernel.T @ np.column_stack([g, one])
        second += (kernel * kernel).T @ np.column_stack([g, one, (g**2).sum(axis=1)])
    mu = (first[:, :d] + first[:, d:] * w) * (scale / n)
    # The mean of |tau|^2 = sum_b l^2 (|g|^2 + 2 g.w_b + |w_b|^2).
    mean_square = float((second * np.column_stack([2 * w, (w**2).sum(axis=1), np.ones(len(w))])).sum()) * scale**2 / n
    projection = np.empty(n)
    for rows in _blocks(n, block_rows):
        kernel, g = block(rows)
        projection[rows] = (kernel * (g @ mu.T + (w * mu).sum(axis=1))).sum(axis=1) * scale
    return (n * float((mu**2).sum()) - mean_square) / (n - 1), projection


def _kernel(u: Array, v: Array) -> Array:
    """exp(-|u - v|^2 / 2) for all pairs of rows; [n, m], by one product."""
    one = np.ones
    exponent: Array = (
        np.column_stack([u, -0.5 * (u**2).sum(axis=1), one(len(u))])
        @ np.column_stack([v, one(len(v)), -0.5 * (v**2).sum(axis=1)]).T
    )
    np.minimum(exponent, 0.0, out=exponent)  # rounding must not make two points closer than equal
    return np.exp(exponent, out=exponent)


def _blocks(n: int, rows: int, start: int = 0) -> list[slice]:
    return [slice(first, min(first + rows, n)) for first in range(start, n, rows)]


def _in_order(task: Callable[[slice], Array], blocks: list[slice], threads: int) -> Iterator[tuple[slice, Array]]:
    """Run a task on each block in some threads and give the results in the order of the blocks.

    NumPy frees the interpreter lock in its loops; its own threads are held at one, both because ours use the cores
    better and because results must not depend on how many there are.
    """
    with threadpool_limits(1, user_api="blas"), ThreadPoolExecutor(threads) as pool:
        yield from zip(blocks, pool.map(task, blocks), strict=True)


def _checked(bandwidth: float, x: Array, score: Array, *locations: Array) -> list[Array]:
    """The arrays in float64, or one sentence on why their shapes or values allow no discrepancy."""
    arrays = [np.asarray(array, dtype=np.float64) for array in (x, score, *locations)]
    if arrays[0].ndim != 2 or arrays[0].shape != arrays[1].shape or len(arrays[0]) < 2:
        raise DkefError(f"points {arrays[0].shape} and scores {arrays[1].shape} must be equal [n, d] with n >= 2")
    for v in arrays[2:]:
        if v.ndim != 2 or v.shape[1] != arrays[0].shape[1] or len(v) < 1:
            raise DkefError(f"locations {v.shape} must be [J, {arrays[0].shape[1]}] with J >= 1")
    if not (bandwidth > 0 and math.isfinite(bandwidth)):
        raise DkefError(f"the bandwidth is {bandwidth}; it must be a positive number")
    for name, array in zip(("points", "scores", "locations"), arrays, strict=False):
        require_finite(name, array)
    return arrays
