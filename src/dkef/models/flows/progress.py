"""Everything a maximum-likelihood run needs to continue, and the checkpoint that holds it."""

import logging
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np

from dkef.core.arrays import Array
from dkef.core.hdf5 import Contents, write_hdf5
from dkef.training.checkpoint import read_checkpoint
from dkef.training.early_stopping import EarlyStopping

VECTORS = ("theta", "m", "v", "best")


@dataclass(frozen=True)
class Progress:
    """State of a run after some iterations; from equal progress equal numbers follow."""

    theta: Array  # [P], all parameters
    m: Array  # [P], Adam's mean of gradients
    v: Array  # [P], Adam's mean of squared gradients
    best: Array  # [P], parameters at the best validation
    stopping: EarlyStopping
    iteration: int = 0
    seconds: float = 0.0
    trace: list[dict[str, float]] = field(default_factory=list)

    @classmethod
    def start(cls, theta: Array, patience: int) -> "Progress":
        zeros = np.zeros_like(theta)
        return cls(theta, zeros, zeros, theta, EarlyStopping(patience))

    def observe(self, loss: float, log_likelihood: float) -> "Progress":
        """The state after a validation."""
        stopping = self.stopping.observe(self.iteration, -log_likelihood)
        best = self.theta if stopping.best_step == self.iteration else self.best
        record = {
            "iteration": self.iteration,
            "training_loss": loss,
            "validation_log_likelihood": log_likelihood,
        }
        return replace(self, stopping=stopping, best=best, trace=[*self.trace, record])


def write_progress(path: Path, progress: Progress, identity: str) -> None:
    """Leave the state at `path`, marked with what it belongs to."""
    record = {
        "identity": identity,
        "stopping": asdict(progress.stopping),
        "iteration": progress.iteration,
        "seconds": progress.seconds,
    }
    arrays = {name: getattr(progress, name) for name in VECTORS}
    for name in progress.trace[0]:
        arrays[f"trace/{name}"] = np.array([row[name] for row in progress.trace])
    write_hdf5(path, arrays, record)


def read_progress(path: Path | None, identity: str, log: logging.Logger) -> Progress | None:
    """The state left at `path`; None where there is none, or one that is damaged or belongs to something else."""
    return read_checkpoint(path, identity, _restored, log)


def _restored(contents: Contents) -> Progress:
    columns = {name: column.tolist() for name, column in contents.below("trace").items()}
    trace = [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)]
    stored = {name: value for name, value in contents.record.items() if name != "identity"}
    record: dict[str, Any] = stored | {name: contents.arrays[name] for name in VECTORS}
    return Progress(**record | {"stopping": EarlyStopping(**record["stopping"]), "trace": trace})
