"""Checkpoints of training runs: continued from only where they belong to the same settings, data and code."""

import logging
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np

from dkef.config.code import sources_digest, target_modules
from dkef.config.typed import plain
from dkef.core.arrays import Array
from dkef.core.errors import DkefError
from dkef.core.hdf5 import Contents, read_hdf5, write_hdf5
from dkef.core.provenance import array_digest, canonical
from dkef.training.adam import Adam
from dkef.training.early_stopping import EarlyStopping
from dkef.training.progress import Progress

NUMBERS = ("iteration", "skipped", "skipped_in_a_row", "loss_sum", "seconds", "stopped")


def checkpoint_identity(spec: Any, cell: tuple[str, str, int], *data: Array) -> str:
    """What a checkpoint belongs to: a model specification, (dataset, model, seed), data, and the code behind them."""
    settings = plain(spec)
    code = sources_digest(type(spec).__module__, *target_modules(settings))
    return canonical([settings, cell, array_digest(*data), code])


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
        "stopping": asdict(progress.stopping),
        "numbers": {name: getattr(progress, name) for name in NUMBERS},
    }
    write_hdf5(path, arrays, record)


def read_progress(path: Path | None, identity: str, log: logging.Logger) -> Progress | None:
    """The state left at `path`; None where there is none, or one that is damaged or belongs to something else."""
    if path is None or not path.exists():
        return None
    try:
        contents = read_hdf5(path, "a checkpoint", "training starts again")
        if contents.record.get("identity") == identity:
            return _restored(contents)
        log.info("%s is of other settings, data or code; training starts again", path)
    except DkefError as damaged:
        log.info("%s", damaged)
    except (KeyError, TypeError, ValueError):  # forged: damage is noticed by its digest
        log.info("%s is not a whole checkpoint; training starts again", path)
    return None


def _restored(contents: Contents) -> Progress:
    record, arrays, trace = contents.record, contents.arrays, contents.below("trace")
    columns = [trace[name].tolist() for name in record["columns"]]
    return Progress(
        theta=arrays["theta"],
        adam=Adam(arrays["adam_mean"], arrays["adam_square"], record["adam_count"]),
        best_theta=arrays["best_theta"],
        stopping=EarlyStopping(**record["stopping"]),
        trace=[dict(zip(record["columns"], row, strict=True)) for row in zip(*columns, strict=True)],
        **record["numbers"],
    )
