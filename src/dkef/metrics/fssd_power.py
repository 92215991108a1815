"""What FSSD can see: two modes in every coordinate against the normal distribution with the same first two moments.

    p(x) = prod_d [ N(x_d; -m, s^2) + N(x_d; m, s^2) ] / 2,   m^2 + s^2 = 1,        q = N(0, I)

Stein features of p have mean zero under p, so that those of q have the mean, at a location v and with width h,

    xi_d(v) = E_p l(x, v) (score_q(x) - score_p(x))_d = A(v_d) prod_{e != d} B(v_e),
    A(v) = E exp(-(x - v)^2 / (2 h^2)) (score_q(x) - score_p(x)),    B(v) = E exp(-(x - v)^2 / (2 h^2)),

expectations over one coordinate. The median distance of two points is about sqrt(2 D): at that width the product of the
B is of order 1, and the exponential in A is 1 - (x - v)^2 / (4 D) + (x - v)^4 / (32 D^2) - ... Its first two terms see
nothing but the first two moments, which are equal. What is left is of order D^-2, and FSSD^2 of order D^-4, while the
noise of its estimate stays of order 1 / n.
"""

import math
from dataclasses import dataclass, field
from typing import Annotated, Any

import numpy as np
from pydantic import Field

from dkef.config.typed import AtLeastTwo, Count, Positive, Share, section
from dkef.core.arrays import Array
from dkef.core.streams import rng_for
from dkef.metrics.stein import compare_fssd, draw_locations, fssd, median_distance

SOME = Field(min_length=1)
# One coordinate, by the trapezoidal rule: its error falls as exp(-2 pi r / step), r = pi s^2 / (2 m) being how far from
# the real axis the score has its first pole.
REACH, NODES = 6.0, 301


@section
@dataclass(frozen=True)
class FssdPower:
    """The study; rows and locations are those of the paper's tests on WhiteWine and Parkinsons."""

    mode: Share = 0.9  # m: the modes are 4.1 s apart
    dimensions: Annotated[list[Count], SOME] = field(default_factory=lambda: [1, 2, 5, 11, 15, 22, 43])
    bandwidth_factors: Annotated[list[Positive], SOME] = field(default_factory=lambda: [0.25, 0.5, 1.0, 2.0])
    rows: AtLeastTwo = 500
    locations: AtLeastTwo = 100
    repeats: AtLeastTwo = 200
    level: Share = 0.05

    @property
    def width(self) -> float:
        """s."""
        return math.sqrt(1 - self.mode**2)

    def draw(self, n: int, d: int, rng: np.random.Generator) -> Array:
        """Rows of p, [n, d]."""
        return self.mode * rng.choice([-1.0, 1.0], (n, d)) + self.width * rng.standard_normal((n, d))

    def true_score(self, x: Array) -> Array:
        """d log p / dx: the pull of the mode at m has the weight (1 + tanh(m x / s^2)) / 2."""
        score: Array = (self.mode * np.tanh(self.mode * x / self.width**2) - x) / self.width**2
        return score

    def population(self, locations: Array, bandwidth: float) -> float:
        """FSSD^2 of q at given locations [J, d], without sampling."""
        x = np.linspace(-REACH, REACH, NODES)
        log_mass = -0.5 * ((x - self.mode) / self.width) ** 2, -0.5 * ((x + self.mode) / self.width) ** 2
        mass = np.exp(np.logaddexp(*log_mass))
        mass /= mass.sum()
        kernel = mass * np.exp(-0.5 * ((locations[:, :, None] - x) / bandwidth) ** 2)  # [J, d, nodes]
        a, b = kernel @ (-x - self.true_score(x)), kernel.sum(axis=2)
        xi = a * np.exp(np.log(b).sum(axis=1, keepdims=True) - np.log(b))
        return float((xi**2).mean())


def measure(settings: FssdPower) -> list[dict[str, Any]]:
    """A record for every dimension and bandwidth: means over repeats, and how often the test finds p ahead."""
    return [_cell(settings, d, factor) for d in settings.dimensions for factor in settings.bandwidth_factors]


def _cell(settings: FssdPower, d: int, factor: float) -> dict[str, Any]:
    found = np.array([_repeat(settings, d, factor, repeat) for repeat in range(settings.repeats)])
    normal, truth, population, p_values = found.T
    power = float((p_values < settings.level).mean())
    return {
        "dimension": d, "bandwidth_factor": factor, "rows": settings.rows, "repeats": settings.repeats,
        "fssd2_normal": normal.mean(), "fssd2_normal_std": normal.std(ddof=1), "fssd2_normal_exact": population.mean(),
        "fssd2_truth": truth.mean(), "power": power,
        "power_stderr": math.sqrt(power * (1 - power) / settings.repeats),
    }  # fmt: skip


def _repeat(settings: FssdPower, d: int, factor: float, repeat: int) -> tuple[float, float, float, float]:
    """FSSD^2 of q and of p, the exact one of q, and the p-value of "q fits no worse than p"."""
    rng = rng_for("fssd-power", d, repeat)
    x = settings.draw(settings.rows, d, rng)
    locations = draw_locations(x, settings.locations, 0.0, rng)
    width = factor * median_distance(x, settings.rows, rng)
    scores = -x, settings.true_score(x)
    normal, truth = (fssd(x, score, locations, width).statistic for score in scores)
    test = compare_fssd(x, *scores, locations, width)
    return normal, truth, settings.population(locations, width), test.p_value
