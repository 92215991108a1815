"""log Z of one model by every proposal, over a range of sample counts.

Every estimate has random numbers of its own, so that those of one proposal show how estimates of that size scatter.
Beside what an estimate knows of itself, its status says whether another one found mass that it has missed. What is
finished is kept in a folder and not done again.
"""

import logging
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from dkef.config.schema.metrics import Proposals
from dkef.config.schema.normaliser import Normaliser, Proposal
from dkef.data.splits import Splits
from dkef.models.protocol import DensityModel
from dkef.normaliser.chunks import ChunkRun
from dkef.normaliser.integrand import integrand_of
from dkef.normaliser.interval import TWO_SIDED
from dkef.normaliser.proposals.store import kept_proposal

log = logging.getLogger("dkef.normaliser.proposals")

PROPOSALS: tuple[Proposal, ...] = ("q0", "mixture", "annealed")  # the last starts from the one before
PILOT_SHARE = 10  # of the samples, for each pilot run; each run behind the bound has as many as log Z, up to a limit
MOST_PILOT, MOST_BOUND, LEAST = 1_000_000, 50_000_000, 200
CHUNK = 50_000_000


def estimates(
    model: DensityModel, splits: Splits, grid: Proposals, settings: Normaliser, name: tuple[str | int, ...],
    folder: Path, threads: int,
) -> Iterator[dict[str, Any]]:  # fmt: skip
    """A row for every proposal and number of samples."""
    integrand = integrand_of(model, " x ".join(map(str, name)))
    log_p = np.mean(model.log_density(splits.test))
    proposal = None
    for kind in PROPOSALS if integrand.q0 is not None else PROPOSALS[1:]:
        file = folder / f"{kind}.h5"
        proposal = kept_proposal(file, kind, integrand, splits.train, settings, name, log.info, proposal)
        for samples in getattr(grid, kind):
            run = ChunkRun(integrand, _sized(settings, kind, samples), (*name, kind, samples), threads, log, proposal)
            record = run.in_folder(folder / kind / str(samples))
            log.info("%s, %.3g samples: log Z %.4f, %s", kind, samples, record["log_z"], record["status"])
            yield {
                "proposal": kind,
                "samples": record["samples"],
                "evaluations": run.weights.cost * record["samples"],
                "log_z": record["log_z"],
                "stderr": record["log_z_stderr"],
                "bias_bound": record["log_z_bias_bound"],
                "effective_sample_size": record["effective_sample_size"],
                "pareto_k_hat": record["pareto_k_hat"],
                "halves_apart": abs(record["log_z_halves"][0] - record["log_z_halves"][1]),
                "log_likelihood": log_p - record["log_z"],
                "status": record["status"],
                "lower_limit": record["methods"][0]["lower_limit"],
            }


def status_among(row: dict[str, Any], rows: Sequence[dict[str, Any]]) -> str:
    """The status of an estimate, given all others of the same Z: has one of them found mass that it has missed?"""
    status: str = row["status"]
    upper = row["log_z"] + TWO_SIDED * row["stderr"]
    refuting = [other for other in rows if other["lower_limit"] is not None and other["lower_limit"] > upper]
    if not refuting:
        return status
    largest = max(refuting, key=lambda other: other["lower_limit"])
    gap = largest["lower_limit"] - row["log_z"]
    found = f"{largest['samples']:.3g} samples of {largest['proposal']} find at least {gap:.2g} nats more"
    return f"untrusted: {found}" if status == "ok" else f"{status}; {found}"


def _sized(settings: Normaliser, kind: Proposal, samples: int) -> Normaliser:
    """Settings of one estimate: pilot and bound in proportion to the samples."""
    return Normaliser(
        proposal=kind, samples=samples, bound_samples=min(samples, MOST_BOUND),
        pilot_samples=min(max(samples // PILOT_SHARE, LEAST), MOST_PILOT), chunk_samples=min(samples, CHUNK),
        percentile=settings.percentile, defensive_mixture=settings.defensive_mixture, annealing=settings.annealing,
    )  # fmt: skip
