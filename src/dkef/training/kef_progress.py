"""Where phase 1 stands, as a file that a killed run continues from."""

import math
from dataclasses import dataclass, field, replace
from pathlib import Path

import h5py
import numpy as np

from dkef.files import whole_file
from dkef.models.protocol import Array
from dkef.training.adam import Adam
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
    with whole_file(path) as scratch, h5py.File(scratch, "w") as file:
        for name, array in (
            ("theta", progress.theta),
            ("best_theta", progress.best_theta),
            ("adam_mean", progress.adam.mean),
            ("adam_square", progress.adam.square),
            ("trace", np.array([[row[c] for c in columns] for row in progress.trace])),
        ):
            file.create_dataset(name, data=array, track_times=False)
        file.attrs.update(
            identity=identity,
            columns=columns or [""],
            adam_count=progress.adam.count,
            best=progress.stopping.best,
            best_step=progress.stopping.best_step,
            iteration=progress.iteration,
            skipped=progress.skipped,
            skipped_in_a_row=progress.skipped_in_a_row,
            seconds=progress.seconds,
            stopped=progress.stopped,
        )


def read_progress(path: Path | None, identity: str, patience: int) -> Progress | None:
    """The state left at `path`; None where there is none, or one that belongs to other settings or data."""
    if path is None or not path.exists():
        return None
    try:
        with h5py.File(path, "r") as file:
            if file.attrs["identity"] != identity:
                return None
            attrs = dict(file.attrs)
            arrays = {name: file[name][()] for name in file}
    except (OSError, KeyError):  # not a file of ours: start afresh
        return None
    columns = [str(name) for name in attrs["columns"]]
    return Progress(
        theta=arrays["theta"],
        adam=Adam(arrays["adam_mean"], arrays["adam_square"], int(attrs["adam_count"])),
        best_theta=arrays["best_theta"],
        stopping=EarlyStopping(patience, float(attrs["best"]), int(attrs["best_step"])),
        iteration=int(attrs["iteration"]),
        skipped=int(attrs["skipped"]),
        skipped_in_a_row=int(attrs["skipped_in_a_row"]),
        seconds=float(attrs["seconds"]),
        stopped=str(attrs["stopped"]),
        trace=[dict(zip(columns, map(float, row), strict=True)) for row in arrays["trace"]],
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
