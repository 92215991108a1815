"""Where phase 1 stands, as a file that a killed run continues from."""

import logging
import math
from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np

from dkef.core.arrays import Array
from dkef.core.hdf5 import Contents, write_hdf5
from dkef.training.adam import Adam
from dkef.training.checkpoint import read_checkpoint
from dkef.training.early_stopping import EarlyStopping


@dataclass(frozen=True)
class Progress:
    """Everything that the next iteration depends on; random numbers are named by iteration and need no state."""

    theta: Array
    adam: Adam
    best_theta: Array
    stopping: EarlyStopping
    iteration: int = 0  # iterations done
    skipped: int = 0
    skipped_in_a_row: int = 0
    seconds: float = 0.0  # spent so far, over all runs
    stopped: str = ""  # why phase 1 ended; empty while it goes on
    trace: list[dict[str, float]] = field(default_factory=list)

    @property
    def last_validation(self) -> float:
        """The newest validation loss; iterations between validations have none."""
        losses = (row["validation_loss"] for row in reversed(self.trace))
        return next((loss for loss in losses if not math.isnan(loss)), math.nan)

    @classmethod
    def start(cls, theta: Array, patience: int) -> "Progress":
        return cls(theta, Adam.start(len(theta)), theta, EarlyStopping(patience))


def write_progress(path: Path, progress: Progress, identity: str) -> None:
    """Leave the state at `path`, marked with what it belongs to."""
    columns = list(progress.trace[0]) if progress.trace else []
    arrays = {
        "theta": progress.theta,
        "best_theta": progress.best_theta,
        "adam_mean": progress.adam.mean,
        "adam_square": progress.adam.square,
    }
    # A column each, so that whole numbers stay whole and the trace of a resumed run is the same text.
    arrays |= {f"trace/{name}": np.array([row[name] for row in progress.trace]) for name in columns}
    record = {
        "identity": identity,
        "columns": columns,
        "adam_count": progress.adam.count,
        "best": progress.stopping.best,
        "best_step": progress.stopping.best_step,
        "iteration": progress.iteration,
        "skipped": progress.skipped,
        "skipped_in_a_row": progress.skipped_in_a_row,
        "seconds": progress.seconds,
        "stopped": progress.stopped,
    }
    write_hdf5(path, arrays, record)


def read_progress(path: Path | None, identity: str, patience: int, log: logging.Logger) -> Progress | None:
    """The state left at `path`; None where there is none, or one that is damaged or belongs to something else."""
    return read_checkpoint(path, identity, lambda contents: _restored(contents, patience), log)


def _restored(contents: Contents, patience: int) -> Progress:
    record, arrays, trace = contents.record, contents.arrays, contents.below("trace")
    columns = [trace[name].tolist() for name in record["columns"]]
    return Progress(
        theta=arrays["theta"],
        adam=Adam(arrays["adam_mean"], arrays["adam_square"], record["adam_count"]),
        best_theta=arrays["best_theta"],
        stopping=EarlyStopping(patience, record["best"], record["best_step"]),
        iteration=record["iteration"],
        skipped=record["skipped"],
        skipped_in_a_row=record["skipped_in_a_row"],
        seconds=record["seconds"],
        stopped=record["stopped"],
        trace=[dict(zip(record["columns"], row, strict=True)) for row in zip(*columns, strict=True)],
    )


def with_step(progress: Progress, theta: Array, adam: Adam) -> Progress:
    """After a step that was taken."""
    return replace(progress, theta=theta, adam=adam, skipped_in_a_row=0)


def without_step(progress: Progress) -> Progress:
    """After a step that had no finite gradient and was not taken."""
    return replace(progress, skipped=progress.skipped + 1, skipped_in_a_row=progress.skipped_in_a_row + 1)


def with_validation(progress: Progress, iteration: int, loss: float) -> Progress:
    """After a validation; a new lowest loss makes the current vector the best one."""
    stopping = progress.stopping.observe(iteration, loss if math.isfinite(loss) else math.inf)
    improved = stopping is not progress.stopping
    return replace(progress, stopping=stopping, best_theta=progress.theta if improved else progress.best_theta)
