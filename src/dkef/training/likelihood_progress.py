"""Everything a maximum-likelihood run needs to continue, and the checkpoint that holds it."""

import json
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path

import h5py
import numpy as np

from dkef.errors import DkefError
from dkef.files import whole_file
from dkef.models.protocol import Array
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


def write_progress(path: Path, progress: Progress) -> None:
    record = {
        "stopping": asdict(progress.stopping),
        "iteration": progress.iteration,
        "seconds": progress.seconds,
    }
    with whole_file(path) as scratch, h5py.File(scratch, "w") as file:
        for name in VECTORS:
            file.create_dataset(name, data=getattr(progress, name), track_times=False)
        for name in progress.trace[0]:
            file.create_dataset(f"trace/{name}", data=[row[name] for row in progress.trace], track_times=False)
        file.attrs["record"] = json.dumps(record)


def read_progress(path: Path) -> Progress:
    try:
        with h5py.File(path, "r") as file:
            vectors = {name: file[name][()] for name in VECTORS}
            record = json.loads(file.attrs["record"])
            columns = {name: column[()].tolist() for name, column in file["trace"].items()}
    except (OSError, KeyError, ValueError) as error:
        raise DkefError(f"{path} is not a checkpoint of this model ({error}); delete it to start again") from None
    trace = [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)]
    stopping = EarlyStopping(**record.pop("stopping"))
    return Progress(**vectors, stopping=stopping, trace=trace, **record)
