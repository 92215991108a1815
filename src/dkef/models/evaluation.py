"""What the evaluate stage leaves behind: one trained model at the test points."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from dkef.core.arrays import Array
from dkef.core.errors import DkefError, one_line
from dkef.core.hdf5 import read_hdf5, write_hdf5

REMEDY = "delete it and evaluate again"


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

    def rows(self, kept: Array) -> "EvaluatedModel":
        """The same at some of the points; kept is [n] of bool."""
        return EvaluatedModel(
            self.record,
            self.log_density[kept],
            self.score[kept],
            self.curvature[kept],
            None if self.true_log_density is None else self.true_log_density[kept],
            None if self.true_score is None else self.true_score[kept],
        )


def write_evaluation(path: Path, arrays: dict[str, Array], record: dict[str, Any]) -> None:
    """Write arrays in float64 beside a JSON record of where they come from."""
    write_hdf5(path, {name: np.asarray(array, dtype=np.float64) for name, array in arrays.items()}, record)


def read_evaluation(path: Path, shape: tuple[int, ...]) -> EvaluatedModel:
    """Read an evaluation that must be of test points of this shape, [n, d]."""
    contents = read_hdf5(path, "an evaluation", REMEDY)
    try:
        evaluated = EvaluatedModel(contents.record, **contents.arrays)
    except TypeError as error:
        raise DkefError(f"{path} is not an evaluation ({one_line(error)}); {REMEDY}") from None
    if missing := [key for key in ("status", "normalised", "log_z_status") if key not in contents.record]:
        raise DkefError(f"{path} is not an evaluation (its record has no {missing[0]}); {REMEDY}")
    if not isinstance(digest := contents.record.get("config_digest"), str | None):
        raise DkefError(f"{path} is not an evaluation (its config_digest is {one_line(repr(digest))}); {REMEDY}")
    for name, array in contents.arrays.items():
        if array.shape != (shape[:1] if name.endswith("log_density") else shape):
            raise DkefError(
                f"{path}: {name} has the shape {array.shape} for test points of the shape {shape}; {REMEDY}"
            )
    return evaluated
