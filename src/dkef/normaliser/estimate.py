"""From moments of importance weights to log Z, its bias bound, and whether to believe either."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

import numpy as np

from dkef.config.schema.normaliser import Normaliser
from dkef.config.typed import require
from dkef.normaliser.bias_bound import BoundError, bias_bound, hoeffding_upper
from dkef.normaliser.moments import Moments
from dkef.normaliser.weights import LONG_STAGES, Halves, Weights

LEAST_RHO = 1e-9  # Hoeffding's inequality allows no less for any number of samples that can be drawn
TIE_MARGIN = 0.001  # log s lies this much below the percentile, so that ties do not count as "below"

# An estimate that few samples carry is too small and looks too sure of itself. These limits are conventions.
LEAST_EFFECTIVE = 100.0  # samples; the relative error of Z is then 10 %
LARGEST_SQUARE_SHARE = 0.1  # of sum r^2 in one sample: beyond it the variance, and so error and bound, are too small
LEAST_SHARE = 0.005  # of Z: a sample that makes less moves log Z by less than a hundredth, whatever its square
DISAGREEMENT = 4.0  # standard errors between independent estimates of Z
MARKOV = math.log(100)  # nats by which an estimate of log Z exceeds the truth with a chance of at most 1 %
LARGEST_TAIL_INDEX = 0.7  # of the weights: beyond it, sums of any affordable size mislead (see `pareto`) ...
TAIL_MATTERS = 0.3  # ... where the tail makes so much of the sum of squares; even weights have odd tails that do not


@dataclass(frozen=True)
class Pilot:
    """What Proposition 1 needs to know of r before the long runs; log_a is None where r has no lower bound."""

    log_a: float | None
    log_s: float
    rho: float

    def __post_init__(self) -> None:
        for key, found in (("log_a", self.log_a), ("log_s", self.log_s)):
            require(found is None or math.isfinite(found), key, found, "a finite number")
        require(LEAST_RHO <= self.rho < math.inf, "rho", self.rho, f"a number of at least {LEAST_RHO}")


@dataclass(frozen=True)
class Stages:
    """Moments of the three long runs, from disjoint streams; those of z in two halves."""

    variance: Moments
    bound_z: Moments
    z_halves: Halves

    @property
    def z(self) -> Moments:
        return Moments.merge(self.z_halves)


def run_pilot(weights: Weights, samples: int, threads: int = 1, percentile: float = 40.0) -> Pilot:
    """s just under a percentile of one sample of r, rho from a second one by Hoeffding at 0.999."""
    log_s = float(np.percentile(weights.log_r("percentile", 0, samples, threads), percentile)) - TIE_MARGIN
    below = int(np.count_nonzero(weights.log_r("hoeffding", 0, samples, threads) <= log_s))
    return Pilot(weights.log_a, log_s, hoeffding_upper(below, samples))


def bound(pilot: Pilot, variance: Moments, bound_z: Moments, n: int) -> float:
    """The estimated bound of Proposition 1 for n samples; BoundError where it cannot be had or would be too small."""
    if pilot.log_a is None:
        raise BoundError("linear kernels have no lower bound")
    share = variance.largest_square_share
    if _rests_on_one(variance):
        raise BoundError(f"the variance rests on few samples: the largest makes {share:.0%} of the sum of squares")
    found = bias_bound(pilot.log_a, pilot.log_s, pilot.rho, bound_z.log_mean, variance.log_variance, n)
    if not math.isfinite(found):
        raise BoundError("the bound is too large to be written as a number")
    return found


def own_doubts(moments: Moments) -> list[str]:
    """Reasons not to trust one mean of weights, in words; none where there is no sign of trouble."""
    found = []
    if moments.effective_sample_size < LEAST_EFFECTIVE:
        found.append(f"effective sample size {moments.effective_sample_size:.3g} of {moments.count:.3g}")
    if _rests_on_one(moments):
        found.append(
            f"one sample makes {moments.largest_share:.2g} of Z and {moments.largest_square_share:.0%} of the sum of "
            "squares"
        )
    k = moments.tail_index
    if k is not None and k > LARGEST_TAIL_INDEX and moments.tail_square_share > TAIL_MATTERS:
        found.append(f"the largest weights have the tail index {k:.2f}, above {LARGEST_TAIL_INDEX}")
    return found


def _rests_on_one(moments: Moments) -> bool:
    return moments.largest_square_share > LARGEST_SQUARE_SHARE and moments.largest_share > LEAST_SHARE


def doubts(stages: Stages, others: Mapping[str, Moments] = MappingProxyType({})) -> list[str]:
    """Reasons not to trust log Z; `others` are estimates from other proposals that have no doubts of their own."""
    z = stages.z
    first, second = stages.z_halves
    found = own_doubts(z)
    if (gap := disagreement(first, second)) is not None:
        found.append(f"its two halves differ by {gap:.2g} nats, beyond their standard errors")
    runs = {"variance run": stages.variance, "bound_z run": stages.bound_z}
    runs |= {f"estimate from {name}": moments for name, moments in others.items()}
    for name, other in runs.items():
        if (gap := disagreement(z, other)) is not None:
            found.append(f"the {name} differs by {gap:.2g} nats, beyond its standard error")
    return found


def disagreement(one: Moments, other: Moments) -> float | None:
    """Difference of two independent estimates of log Z in nats, where it is more than chance."""
    gap = abs(one.log_mean - other.log_mean)
    beyond = gap > DISAGREEMENT * math.hypot(one.stderr, other.stderr) + 1e-9  # rounding of equal weights is no doubt
    return gap if beyond else None


def missed_mass(log_z: float, stderr: float, other: float, other_stderr: float, other_sound: bool) -> float | None:
    """Nats by which another estimate is larger beyond chance: a proposal can overlook part of Z but not invent it.

    Even an estimate with doubts tells: it has mean Z, so that by Markov's inequality it exceeds 100 Z with a chance of
    at most 1 %, whatever its variance.
    """
    chance = math.hypot(stderr, other_stderr) if other_sound else stderr
    beyond = other - log_z > DISAGREEMENT * chance + (1e-9 if other_sound else MARKOV)
    return other - log_z if beyond else None


def conclude(
    proposal: str, pilot: Pilot, stages: Stages, stopped: str, others: Mapping[str, Moments] = MappingProxyType({})
) -> dict[str, Any]:
    """The record of log_z.json."""
    z = stages.z
    bias: float | None = None
    condition = "ok"
    try:
        bias = bound(pilot, stages.variance, stages.bound_z, z.count)
    except BoundError as failure:
        condition = str(failure)
    reasons = doubts(stages, others)
    return {
        "proposal": proposal,
        "log_z": z.log_mean,
        "log_z_stderr": z.stderr,
        "log_z_bias_bound": bias,
        "bound_condition": condition,
        "effective_sample_size": z.effective_sample_size,
        "largest_weight_share": z.largest_share,
        "tail_index": z.tail_index,
        "log_z_halves": [half.log_mean for half in stages.z_halves],
        "log_z_others": {name: [other.log_mean, other.stderr] for name, other in others.items()},
        "samples": z.count,
        "stopped": stopped,
        "status": f"untrusted: {'; '.join(reasons)}" if reasons else "ok",
        "log_a": pilot.log_a,
        "log_s": pilot.log_s,
        "rho": pilot.rho,
        "variance_samples": stages.variance.count,
        "bound_z_samples": stages.bound_z.count,
    }


def estimate(proposal: str, weights: Weights, settings: Normaliser, threads: int = 1) -> dict[str, Any]:
    """The whole estimate in memory, for sample counts that need no files to resume from; see `conclude`."""
    pilot = run_pilot(weights, settings.pilot_samples, threads, settings.percentile)
    halves: dict[str, Halves] = {}
    for stage in LONG_STAGES:
        chunks = [weights.moments(stage, k, settings.chunk_samples, threads) for k in range(settings.chunks(stage))]
        halves[stage] = merge_halves(chunks)
    variance, bound_z = (Moments.merge(halves[stage]) for stage in ("variance", "bound_z"))
    return conclude(proposal, pilot, Stages(variance, bound_z, halves["z"]), "samples")


def merge_halves(chunks: Sequence[Halves]) -> Halves:
    """Moments of all first halves and of all second ones."""
    return Moments.merge(first for first, _ in chunks), Moments.merge(second for _, second in chunks)
