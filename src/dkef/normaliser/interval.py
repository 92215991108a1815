"""An interval for log Z from several estimates, none of which is taken at its word.

Every method draws independent weights r >= 0 with mean Z. What it says of itself is wrong where n draws miss a part of
their distribution: rare large weights make it too small, rare small ones too large. So each also gives a lower limit of
log Z that assumes nothing but r >= 0. Another estimate whose own upper limit lies below has missed mass.

For m >= Z and 0 < a < 1 the product of 1 + a (r_i - m) / m over the draws has an expectation of at most 1, and none of
its factors is negative: by Markov's inequality it exceeds 1 / level with a chance of at most `level`. The same holds of
the mean of such products over several a. With u = a (r - m) / m >= -a each factor has log(1 + u) >= u - g(a) u^2, where
g(a) = -(log(1 - a) + a) / a^2, so that sums of r and r^2 are enough to find the largest m that is excluded. Weights are
cut to min(r, c), with a mean of at most Z for every c that is fixed before r is drawn: one large weight would otherwise
spoil the sum of squares. (Fan, Grama, Liu 2015; Waudby-Smith, Ramdas 2024.) The mean of all r over m is one more such
number, and needs no c: where one weight exceeds all others by thousands of nats, it alone tells how much was missed.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.special import ndtri

from dkef.core.arrays import Array
from dkef.normaliser.moments import Moments

COVERAGE = 0.95
TWO_SIDED = float(ndtri(0.5 + COVERAGE / 2))
REFUTING_LEVEL = 1e-3  # chance that a lower limit lies above Z
DISAGREEMENT = 3.3  # standard errors between independent estimates: a chance of a thousandth
ROUNDING = 1e-9  # nats: of weights that are all the same
LARGEST_REMOVED = 1e6  # weight in units of c, beyond which the rounding of its square would show
TRUNCATED_SHARE = 0.01  # of Z that one truncated weight makes at most
LARGEST_STAKE = 0.9  # a: the larger, the less n equal weights leave open, about log(1 / level) / (a n) of Z

# An estimate that few samples carry is too small and looks too sure of itself. These limits are conventions.
LEAST_EFFECTIVE = 100.0  # samples; the relative error of Z is then 10 %
LEAST_WITNESS = 30.0  # samples of a method that only has to confirm another one: 18 %
LARGEST_SQUARE_SHARE = 0.1  # of sum r^2 in one sample: beyond it the variance, and so error and bound, are too small
LEAST_SHARE = 0.005  # of Z: a sample that makes less moves log Z by less than a hundredth, whatever its square
LARGEST_K_HAT = 0.7  # of the weights: beyond it, sums of any affordable size mislead (see `pareto`) ...
TAIL_MATTERS = 0.3  # ... where the tail makes so much of the sum of squares; even weights have odd tails that do not


def own_doubts(moments: Moments, least: float = LEAST_EFFECTIVE) -> list[str]:
    """Signs of trouble in one mean of weights, in words."""
    found = []
    if moments.effective_sample_size < least:
        found.append(f"effective sample size {moments.effective_sample_size:.3g} of {moments.count:.3g}")
    if rests_on_one(moments):
        found.append(
            f"one sample makes {moments.largest_share:.2g} of Z and {moments.largest_square_share:.0%} of the sum of "
            "squares"
        )
    if has_heavy_tail(moments):
        found.append(f"the largest weights have a Pareto k-hat of {moments.pareto_k_hat:.2f}, above {LARGEST_K_HAT}")
    return found


def has_heavy_tail(moments: Moments) -> bool:
    k = moments.pareto_k_hat
    return k is not None and k > LARGEST_K_HAT and moments.tail_square_share > TAIL_MATTERS


def rests_on_one(moments: Moments) -> bool:
    return moments.largest_square_share > LARGEST_SQUARE_SHARE and moments.largest_share > LEAST_SHARE


def truncation(log_z: float, count: int) -> float:
    """log c for `count` weights, given an estimate of log Z that did not see them."""
    return log_z + math.log(count * TRUNCATED_SHARE) if count * TRUNCATED_SHARE > 1 else log_z


def lower_limit(moments: Moments, log_c: float, level: float = REFUTING_LEVEL) -> float:
    """Lower confidence limit of log Z: from min(r, c) by every stake, and from the mean of r by Markov's inequality."""
    mean, squares = truncated_sums(moments, log_c)
    a = stakes(moments.count)
    each = level / (len(a) + 1)
    limit = excluded_mean(moments.count, mean, squares, a, each)
    return max(log_c + math.log(limit) if limit > 0 else -math.inf, moments.log_mean + math.log(each))


def truncated_sums(moments: Moments, log_c: float) -> tuple[float, float]:
    """Mean of min(r, c) / c, and sum of its squares.

    Moments keep the largest weights, and those beyond c are among them unless c was far too small. Where they are not,
    or are so large that nothing of the others is left in the sums, the others count as 0: that only lowers the limit.
    """
    n = moments.count
    with np.errstate(over="ignore"):
        largest = np.exp(np.array(moments.largest) - log_c)  # in units of c
    beyond = largest[largest > 1]
    if len(beyond) and (len(beyond) == len(largest) or beyond[0] > LARGEST_REMOVED):
        kept = np.minimum(largest, 1.0)
        return float(kept.sum()) / n, float((kept**2).sum())
    mean = math.exp(moments.log_mean - log_c) - float((beyond - 1).sum()) / n
    squares = math.exp(moments.log_sum_squares - 2 * log_c) - float((beyond**2 - 1).sum())
    return mean, max(squares, n * mean**2)


def stakes(n: int) -> Array:
    """Values of a for n weights: halved until one draw cannot matter."""
    values: Array = LARGEST_STAKE * 0.5 ** np.arange(math.ceil(math.log2(n)) + 1)
    return values


def excluded_mean(n: int, mean: float, squares: float, stakes: Array, level: float) -> float:
    """Largest m that n values >= 0 exclude as an upper limit of their expectation; 0 if they exclude none.

    Each a excludes m where, with t = 1 / m, the sum of u - g(a) u^2 reaches log(1 / level): a quadratic in t, of
    which the smallest root counts, since every product falls with m.
    """
    g = -(np.log1p(-stakes) + stakes) / stakes**2
    square = g * stakes**2 * squares
    linear = n * mean * (stakes + 2 * g * stakes**2)
    constant = n * (stakes + g * stakes**2) + math.log(1 / level)
    discriminant = linear**2 - 4 * square * constant
    able = discriminant >= 0
    # 1 / t of the smaller root, in the form that does not subtract like numbers
    means = (linear[able] + np.sqrt(discriminant[able])) / (2 * constant[able])
    return float(means.max(initial=0.0))


@dataclass(frozen=True)
class Method:
    """One estimate of log Z, independent of all others."""

    name: str
    moments: Moments
    log_c: float  # truncation of its weights, fixed before they were drawn
    evaluations: int = 0  # of p~, or what costs as much: seconds would differ from run to run

    @property
    def log_z(self) -> float:
        return self.moments.log_mean

    @property
    def stderr(self) -> float:
        return self.moments.stderr

    @property
    def lower_limit(self) -> float:
        return lower_limit(self.moments, self.log_c)

    @property
    def upper_limit(self) -> float:
        """What it says of itself."""
        return self.log_z + TWO_SIDED * self.stderr

    def refuted_by(self, others: Sequence["Method"]) -> "Method | None":
        """A method that has found more mass than this one allows for."""
        refuting = [other for other in others if other.lower_limit > self.upper_limit + ROUNDING]
        return max(refuting, key=lambda other: other.lower_limit, default=None)

    def record(self) -> dict[str, Any]:
        limit = self.lower_limit
        return {
            "method": self.name,
            "log_z": self.log_z,
            "stderr": self.stderr,
            "lower_limit": limit if math.isfinite(limit) else None,
            "effective_sample_size": self.moments.effective_sample_size,
            "pareto_k_hat": self.moments.pareto_k_hat,
            "samples": self.moments.count,
            "evaluations": self.evaluations,
        }


@dataclass(frozen=True)
class Verdict:
    """The estimate to report, an interval for log Z, and every sign of trouble."""

    reported: Method
    low: float
    high: float
    reasons: tuple[str, ...]

    @property
    def status(self) -> str:
        return f"untrusted: {'; '.join(self.reasons)}" if self.reasons else "ok"


def judge(main: Method, others: Sequence[Method]) -> Verdict:
    """The interval that methods have in common with the truth, as far as they can tell.

    `main` was chosen before it drew its weights, and is reported unless it is in doubt or refuted; other draws from its
    own proposal never replace it, since to take those without a large weight is to leave out mass. Its standard error
    makes the interval; a sound method that differs by more than both errors explain extends it as far as its own
    estimate. A method in doubt of its own confirms by agreeing, and says nothing by differing.
    """
    methods = [main, *others]
    standing = [method for method in methods if method.refuted_by(methods) is None]
    doubtful = main not in standing or own_doubts(main.moments)
    able = [method for method in standing if main not in standing or method is main or method.name != main.name]
    reported = min(able, key=lambda m: (len(own_doubts(m.moments)), m.stderr)) if doubtful else main
    others_standing = [m for m in standing if m.name != reported.name]
    witnesses = [m for m in others_standing if m.moments.effective_sample_size >= LEAST_WITNESS]
    low, high = reported.log_z - TWO_SIDED * reported.stderr, reported.upper_limit
    reasons = own_doubts(reported.moments)
    confirmed = False
    for witness in witnesses:
        gap, chance = witness.log_z - reported.log_z, math.hypot(witness.stderr, reported.stderr) + ROUNDING
        sound = not own_doubts(witness.moments, LEAST_WITNESS)
        if sound and abs(gap) > TWO_SIDED * chance:
            low, high = min(low, witness.log_z), max(high, witness.log_z)
        confirmed = confirmed or sound or abs(gap) <= TWO_SIDED * chance
    if not confirmed:
        said = [f"{m.name} {m.log_z - reported.log_z:+.2g} nats" for m in methods if m.name != reported.name]
        reasons.append("no second method confirms it" + (f" ({', '.join(said)})" if said else ""))
    return Verdict(reported, low, high, tuple(reasons))
