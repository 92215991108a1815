"""From moments of importance weights to log Z, its bias bound, and whether to believe either."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from dkef.config.schema.normaliser import Normaliser
from dkef.config.typed import require
from dkef.normaliser.bias_bound import BoundError, bias_bound, hoeffding_upper
from dkef.normaliser.interval import (
    DISAGREEMENT,
    ROUNDING,
    TWO_SIDED,
    Method,
    own_doubts,
    rests_on_one,
    truncation,
)
from dkef.normaliser.moments import Moments
from dkef.normaliser.weights import LONG_STAGES, Halves, Weights

LEAST_RHO = 1e-9  # Hoeffding's inequality allows no less for any number of samples that can be drawn
TIE_MARGIN = 0.001  # log s lies this much below the percentile, so that ties do not count as "below"


@dataclass(frozen=True)
class Pilot:
    """What Proposition 1 needs to know of r before the long runs; log_a is None where r has no lower bound."""

    log_a: float | None
    log_s: float
    rho: float
    no_floor: str = Weights.no_floor  # why log_a is None, where it is

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
    return Pilot(weights.log_a, log_s, hoeffding_upper(below, samples), weights.no_floor)


def bound(pilot: Pilot, variance: Moments, bound_z: Moments, n: int, stopping: Moments | None = None) -> float:
    """The estimated bound of Proposition 1 for n samples; BoundError where it cannot be had or would be too small.

    Where a stream of its own decided how many to draw, that also decides whether the variance can be believed: to
    refuse a bound because its own variance is large would leave the small ones, too small on average.
    """
    if pilot.log_a is None:
        raise BoundError(pilot.no_floor)
    decisive, doubt = stopping or variance, ""
    if rests_on_one(decisive):
        share = decisive.largest_square_share
        doubt = f"the variance rests on few samples: the largest makes {share:.0%} of the sum of squares; "
    try:
        found = bias_bound(pilot.log_a, pilot.log_s, pilot.rho, bound_z.log_mean, variance.log_variance, n)
    except BoundError as failure:
        raise BoundError(f"{doubt}{failure}") from failure
    if not math.isfinite(found):
        raise BoundError(f"{doubt}the bound is too large to be written as a number")
    if doubt:
        raise BoundError(f"{doubt}with it the formula gives {found:.2g} nats")
    return found


def streams_apart(stages: Stages) -> list[str]:
    """Disagreements among the disjoint streams of one run, in words."""
    first, second = stages.z_halves
    pairs = {
        "its two halves differ": (first, second),
        "the variance run differs": (stages.z, stages.variance),
        "the bound_z run differs": (stages.z, stages.bound_z),
    }
    found = []
    for words, (one, other) in pairs.items():
        gap, chance = abs(one.log_mean - other.log_mean), math.hypot(one.stderr, other.stderr) + ROUNDING
        if gap > DISAGREEMENT * chance:
            found.append(f"{words} by {gap:.2g} nats, beyond the standard error")
    return found


def conclude(
    proposal: str, pilot: Pilot, stages: Stages, stopped: str, stopping: Moments | None = None, cost: int = 1
) -> tuple[dict[str, Any], Method]:
    """The record of log_z.json and the estimate behind it.

    Where a stream of its own (`stopping`) decided on the length of the others, those are alike and independent of the
    decision, and log Z rests on all three of them; Appendix D takes the last.
    """
    z = stages.z if stopping is None else Moments.merge([stages.variance, stages.bound_z, stages.z])
    bias: float | None = None
    condition = "ok"
    try:
        bias = bound(pilot, stages.variance, stages.bound_z, z.count, stopping)
    except BoundError as failure:
        condition = str(failure)
    elsewhere = stages.bound_z if stopping is None else stopping  # a stream that z is no part of
    log_c = truncation(elsewhere.log_mean, z.count)
    method = Method(proposal, z, log_c, cost * z.count)
    reasons = own_doubts(z) + streams_apart(stages)
    record = {
        "proposal": proposal,
        "log_z": z.log_mean,
        "log_z_stderr": z.stderr,
        "log_z_low": z.log_mean - TWO_SIDED * z.stderr,
        "log_z_high": method.upper_limit,
        "log_z_bias_bound": bias,
        "bound_condition": condition,
        "effective_sample_size": z.effective_sample_size,
        "largest_weight_share": z.largest_share,
        "pareto_k_hat": z.pareto_k_hat,
        "log_z_halves": [half.log_mean for half in stages.z_halves],
        "samples": z.count,
        "stopped": stopped,
        "status": f"untrusted: {'; '.join(reasons)}" if reasons else "ok",
        "methods": [method.record()],
        "log_a": pilot.log_a,
        "log_s": pilot.log_s,
        "rho": pilot.rho,
        "variance_samples": stages.variance.count,
        "bound_z_samples": stages.bound_z.count,
    }
    return record, method


def estimate(proposal: str, weights: Weights, settings: Normaliser, threads: int = 1) -> dict[str, Any]:
    """The whole estimate in memory, for sample counts that need no files to resume from; see `conclude`."""
    pilot = run_pilot(weights, settings.pilot_samples, threads, settings.percentile)
    halves: dict[str, Halves] = {}
    for stage in LONG_STAGES:
        chunks = [weights.moments(stage, k, settings.chunk_samples, threads) for k in range(settings.chunks(stage))]
        halves[stage] = merge_halves(chunks)
    variance, bound_z = (Moments.merge(halves[stage]) for stage in ("variance", "bound_z"))
    return conclude(proposal, pilot, Stages(variance, bound_z, halves["z"]), "samples", cost=weights.cost)[0]


def merge_halves(chunks: Sequence[Halves]) -> Halves:
    """Moments of all first halves and of all second ones."""
    return Moments.merge(first for first, _ in chunks), Moments.merge(second for _, second in chunks)
