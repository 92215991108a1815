"""From moments of importance weights to log Z, its bias bound, and whether to believe either."""

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from dkef.models.kef_parameters import KefParameters
from dkef.normaliser.bias_bound import BoundError, bias_bound, hoeffding_upper
from dkef.normaliser.moments import Moments
from dkef.normaliser.settings import Normaliser
from dkef.normaliser.weights import LONG_STAGES, Q0Weights

PERCENTILE = 40.0
TIE_MARGIN = 0.001  # log s lies this much below the percentile, so that ties do not count as "below"

# An estimate that few samples carry is too small and looks too sure of itself. These limits are conventions.
LEAST_EFFECTIVE = 100.0  # samples; the relative error of Z is then 10 %
LARGEST_SQUARE_SHARE = 0.1  # of sum r^2 in one sample: beyond it the variance, and so error and bound, are too small
DISAGREEMENT = 4.0  # standard errors between independent estimates of Z


@dataclass(frozen=True)
class Pilot:
    """What Proposition 1 needs to know of r before the long runs; log_a is None where r has no lower bound."""

    log_a: float | None
    log_s: float
    rho: float


@dataclass(frozen=True)
class Stages:
    """Moments of the three long runs, from disjoint streams."""

    variance: Moments
    bound_z: Moments
    z: Moments


def run_pilot(weights: Q0Weights, samples: int, threads: int = 1) -> Pilot:
    """s just under the 40th percentile of one sample of r, rho from a second one by Hoeffding at 0.999."""
    log_s = float(np.percentile(weights.log_r("percentile", 0, samples, threads), PERCENTILE)) - TIE_MARGIN
    below = int(np.count_nonzero(weights.log_r("hoeffding", 0, samples, threads) <= log_s))
    return Pilot(weights.log_a, log_s, hoeffding_upper(below, samples))


def bound(pilot: Pilot, variance: Moments, bound_z: Moments, n: int) -> float:
    """The estimated bound of Proposition 1 for n samples; BoundError where it cannot be had or would be too small."""
    if pilot.log_a is None:
        raise BoundError("linear kernels have no lower bound")
    share = variance.largest_square_share
    if share > LARGEST_SQUARE_SHARE:
        raise BoundError(f"the variance rests on few samples: the largest makes {share:.0%} of the sum of squares")
    return bias_bound(pilot.log_a, pilot.log_s, pilot.rho, bound_z.log_mean, variance.log_variance, n)


def doubts(stages: Stages) -> list[str]:
    """Reasons not to trust log Z, in words; none where there is no sign of trouble."""
    z = stages.z
    found = []
    if z.effective_sample_size < LEAST_EFFECTIVE:
        found.append(f"effective sample size {z.effective_sample_size:.3g} of {z.count:.3g}")
    if z.largest_square_share > LARGEST_SQUARE_SHARE:
        found.append(
            f"one sample makes {z.largest_share:.2g} of Z and {z.largest_square_share:.0%} of the sum of squares"
        )
    for name, other in (("variance", stages.variance), ("bound_z", stages.bound_z)):
        gap = abs(z.log_mean - other.log_mean)
        if gap > DISAGREEMENT * math.hypot(z.stderr, other.stderr) + 1e-9:  # rounding of equal weights is no doubt
            found.append(f"the {name} run differs by {gap:.2g} nats, beyond its standard error")
    return found


def conclude(pilot: Pilot, stages: Stages, stopped: str) -> dict[str, Any]:
    """The record of log_z.json."""
    z = stages.z
    bias: float | None = None
    condition = "ok"
    try:
        bias = bound(pilot, stages.variance, stages.bound_z, z.count)
    except BoundError as failure:
        condition = str(failure)
    reasons = doubts(stages)
    return {
        "log_z": z.log_mean,
        "log_z_stderr": z.stderr,
        "log_z_bias_bound": bias,
        "bound_condition": condition,
        "effective_sample_size": z.effective_sample_size,
        "largest_weight_share": z.largest_share,
        "samples": z.count,
        "stopped": stopped,
        "status": f"untrusted: {'; '.join(reasons)}" if reasons else "ok",
        "log_a": pilot.log_a,
        "log_s": pilot.log_s,
        "rho": pilot.rho,
        "variance_samples": stages.variance.count,
        "bound_z_samples": stages.bound_z.count,
    }


def estimate(
    parameters: KefParameters, settings: Normaliser, name: tuple[str | int, ...], threads: int = 1
) -> dict[str, Any]:
    """The whole estimate in memory, for sample counts that need no files to resume from; see `conclude`."""
    weights = Q0Weights(parameters, *name)
    pilot = run_pilot(weights, settings.pilot_samples, threads)
    chunks = {stage: range(settings.chunks(stage)) for stage in LONG_STAGES}
    merged = {
        stage: Moments.merge(weights.moments(stage, k, settings.chunk_samples, threads) for k in numbers)
        for stage, numbers in chunks.items()
    }
    return conclude(pilot, Stages(**merged), "samples")
