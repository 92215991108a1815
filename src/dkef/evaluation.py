"""What the evaluate stage leaves behind: one trained model at the test points."""

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import h5py

from dkef.errors import DkefError
from dkef.models.protocol import Array


@dataclass(frozen=True)
class EvaluatedModel:
    """Log density [n], score [n, d] and curvature [n, d] of a model at n points; of the truth too, where known."""

    record: dict[str, Any]  # status, normalised, config_digest, ...
    log_density: Array
    score: Array
    curvature: Array
    true_log_density: Array | None = None
    true_score: Array | None = None

    @property
    def status(self) -> str:
        return str(self.record["status"])


def read_evaluation(path: Path, points: int) -> EvaluatedModel:
    """Read an evaluation that must be of so many test points."""
    try:
        with h5py.File(path, "r") as file:
            record = json.loads(file.attrs["record"])
            arrays = {name: item[()] for name, item in file.items()}
        evaluated = EvaluatedModel(record, **arrays)
    except FileNotFoundError:
        raise DkefError(f"{path} does not exist; `snakemake {path}` makes it") from None
    except (OSError, KeyError, TypeError, ValueError) as error:
        raise DkefError(f"{path} is not an evaluation ({error}); delete it and evaluate again") from None
    for name, array in arrays.items():
        if len(array) != points:
            raise DkefError(f"{path}: {name} has {len(array)} rows for {points} test points; evaluate again")
    return evaluated
