"""log Z of a model: what jobs of the workflow and a person at the command line share."""

import json
import logging
from pathlib import Path
from typing import Any

from threadpoolctl import threadpool_limits  # type: ignore[import-untyped]

from dkef.config.schema.normaliser import Normaliser
from dkef.config.typed import typed
from dkef.core.arrays import Array
from dkef.core.files import write_json
from dkef.data.splits import read_splits
from dkef.models.storage import load_own_model
from dkef.normaliser.chunks import ChunkRun
from dkef.normaliser.files import PROPOSAL
from dkef.normaliser.integrand import Integrand, integrand_of
from dkef.normaliser.proposals.store import Name, kept_proposal, read_proposal
from dkef.normaliser.target import TargetRun

log = logging.getLogger("dkef.normaliser.run")


def training_rows(path: Path | None) -> Array | None:
    return None if path is None else read_splits(path).train


class Job:
    """What a job of the workflow is given: a model file and its canonical configuration."""

    def __init__(self, config: str, model: Path, threads: int) -> None:
        values = json.loads(config)
        self.name: Name = (values["dataset"], values["model"], values["seed"])
        self.settings = typed(Normaliser, values["normaliser"], lambda _: "--config", "normaliser")
        self.integrand = integrand_of(load_own_model(model), model)
        self.threads = threads

    def fit_proposal(self, file: Path, data: Path | None) -> None:
        """Write the proposal that the settings name, unless it is there."""
        with threadpool_limits(1, user_api="blas"):
            kept_proposal(
                file, self.settings.proposal, self.integrand, training_rows(data), self.settings, self.name, log.info
            )

    def chunks(self, proposal: Path) -> ChunkRun:
        """The chunks that are drawn from a proposal in a file."""
        fitted = read_proposal(proposal, self.integrand)
        return ChunkRun(self.integrand, self.settings, self.name, self.threads, log, fitted)

    def in_folder(self, folder: Path, data: Path | None) -> dict[str, Any]:
        return estimate_in(folder, self.integrand, training_rows(data), self.settings, self.name, self.threads)


def estimate_in(
    folder: Path, integrand: Integrand, rows: Array | None, settings: Normaliser, name: Name, threads: int
) -> dict[str, Any]:
    """The whole estimate with its files in a folder; what is finished there is not done again."""
    with threadpool_limits(1, user_api="blas"):
        if settings.proposal == "cheapest":
            return TargetRun(integrand, rows, settings, name, threads, log).in_folder(folder)
        file = folder / PROPOSAL
        proposal = kept_proposal(file, settings.proposal, integrand, rows, settings, name, log.info)
        return ChunkRun(integrand, settings, name, threads, log, proposal).in_folder(folder)


def write_log_z(path: Path, record: dict[str, Any]) -> None:
    """Write log_z.json, and say what is in it."""
    write_json(path, record)
    bias = record["log_z_bias_bound"]
    log.info(
        "log Z = %.6f from %s, 95 %% interval %.4f to %.4f, bias %s, effective sample size %.4g of %.4g; %s",
        record["log_z"], record["proposal"], record["log_z_low"], record["log_z_high"],
        f"at most {bias:.2g}" if bias is not None else f"not bounded ({record['bound_condition']})",
        record["effective_sample_size"], record["samples"],
        "no sign of trouble" if record["status"] == "ok" else record["status"],
    )  # fmt: skip
    log.info("written to %s", path)
