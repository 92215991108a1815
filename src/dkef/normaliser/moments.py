"""Mergeable moments of importance weights r, in logs.

Sums of squares are kept about the mean, so that no difference of large numbers is ever taken; merging sums with
math.fsum, so that the order of the parts does not matter at all and their grouping only in the last bit.
"""

import itertools
import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Self

import numpy as np

from dkef.config.typed import of_record
from dkef.core.arrays import Array
from dkef.core.errors import DkefError
from dkef.core.files import AGAIN
from dkef.normaliser.pareto import TAIL, pareto_k_hat, tail_size

MOST_WEIGHTS = 10**18
LARGEST_LOG = 1e15  # the rounding of larger logarithms is itself more than a nat


def log(x: float) -> float:
    """log x with log 0 = -inf."""
    return math.log(x) if x > 0 else -math.inf


@dataclass(frozen=True)
class Moments:
    """count, mean, centred sum of squares and maximum of weights r."""

    count: int
    log_mean: float
    log_m2: float  # log sum (r - mean)^2; -inf where all r are equal
    log_max: float
    largest: tuple[float, ...] = ()  # logs of the largest weights, in descending order: for Pareto k-hat

    @classmethod
    def of_weights(cls, log_r: Array) -> Self:
        """Moments of exp(log_r), log_r [n]."""
        top = float(log_r.max())
        r = np.exp(log_r - top)
        mean = r.mean()
        log_m2 = 2 * top + log(((r - mean) ** 2).sum())
        return cls(len(r), top + math.log(mean), log_m2, top, _largest(log_r))

    @classmethod
    def merge(cls, parts: Iterable["Moments"]) -> Self:
        """Moments of all parts together."""
        parts = list(parts)
        if not parts:
            raise DkefError("there are no samples to merge; draw at least one chunk")
        scale = max(part.log_mean for part in parts)
        count = sum(part.count for part in parts)
        means = [math.exp(part.log_mean - scale) for part in parts]
        mean = math.fsum(part.count * m for part, m in zip(parts, means, strict=True)) / count
        within = [math.exp(part.log_m2 - 2 * scale) for part in parts]
        between = [part.count * (m - mean) ** 2 for part, m in zip(parts, means, strict=True)]
        log_max = max(part.log_max for part in parts)
        log_m2 = 2 * scale + log(math.fsum(within + between))
        largest = _largest(np.concatenate([part.largest for part in parts]))
        return cls(count, scale + math.log(mean), log_m2, log_max, largest)

    @property
    def log_variance(self) -> float:
        """log of the unbiased estimate of Var[r]."""
        return self.log_m2 - math.log(self.count - 1) if self.count > 1 else math.inf

    @property
    def log_sum_squares(self) -> float:
        """log sum r^2."""
        a, b = self.log_m2, math.log(self.count) + 2 * self.log_mean
        return max(a, b) + math.log1p(math.exp(-abs(a - b)))

    @property
    def effective_sample_size(self) -> float:
        """(sum r)^2 / sum r^2."""
        return math.exp(2 * (math.log(self.count) + self.log_mean) - self.log_sum_squares)

    @property
    def largest_share(self) -> float:
        """Part of sum r that the largest r makes."""
        return math.exp(self.log_max - math.log(self.count) - self.log_mean)

    @property
    def largest_square_share(self) -> float:
        """Part of sum r^2 that the largest r makes."""
        return math.exp(2 * self.log_max - self.log_sum_squares)

    @property
    def pareto_k_hat(self) -> float | None:
        """Shape of the Pareto distribution that the largest r follow (`pareto`); None where there are too few."""
        return pareto_k_hat(np.array(self.largest), self.count)

    @property
    def tail_square_share(self) -> float:
        """Part of sum r^2 that the tail makes whose index that is."""
        tail = np.array(self.largest[: tail_size(self.count)])
        return float(np.exp(2 * tail - self.log_sum_squares).sum())

    @property
    def stderr(self) -> float:
        """Standard error of log mean r, to first order."""
        return math.exp(0.5 * (self.log_variance - math.log(self.count)) - self.log_mean)

    def record(self) -> dict[str, Any]:
        """As JSON types; the derived figures are for the reader."""
        return {
            "count": self.count,
            "log_mean": self.log_mean,
            "log_m2": None if self.log_m2 == -math.inf else self.log_m2,
            "log_max": self.log_max,
            "largest": list(self.largest),
            "log_sum": math.log(self.count) + self.log_mean,
            "effective_sample_size": self.effective_sample_size,
        }

    @classmethod
    def of_record(cls, record: Mapping[str, Any], where: object) -> Self:
        """Moments as a file `where` has them; one sentence where no weights have such moments."""
        if isinstance(record, Mapping) and record.get("log_m2", 0) is None:
            record = {**record, "log_m2": -math.inf}
        moments = of_record(cls, record, where, AGAIN)
        if (fault := moments.fault()) is not None:
            raise DkefError(f"{where} holds the moments of no weights: {fault}; {AGAIN}")
        return moments

    def fault(self) -> str | None:
        """What shows that these are not moments of weights; beyond it, the figures derived from them overflow."""
        logs = [self.log_mean, self.log_max, *self.largest, *([] if self.log_m2 == -math.inf else [self.log_m2])]
        if not 1 <= self.count <= MOST_WEIGHTS:
            return f"their number is {self.count}"
        if not all(abs(value) <= LARGEST_LOG for value in logs):  # NaN is neither more nor less
            return "a logarithm is not finite or beyond all use"
        rounding = 1e-6 + 1e-15 * abs(self.log_max)
        log_count = math.log(self.count)
        if not self.log_mean - rounding <= self.log_max <= self.log_mean + log_count + rounding:
            return "the largest one is below the mean or above the sum"
        if self.log_m2 > 2 * self.log_max + log_count + 2 * rounding:
            return "they spread more than the largest one allows"
        falling = all(a >= b for a, b in itertools.pairwise((self.log_max, *self.largest)))
        return None if falling and len(self.largest) <= self.count else "the largest ones are not in descending order"


def _largest(log_r: Array) -> tuple[float, ...]:
    """The largest TAIL + 1 values in descending order: the tail and its threshold."""
    kept = np.partition(log_r, -TAIL - 1)[-TAIL - 1 :] if len(log_r) > TAIL + 1 else log_r
    return tuple(np.sort(kept)[::-1].tolist())
