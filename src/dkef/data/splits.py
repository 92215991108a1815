"""Training, validation and test rows with all that is needed to understand them, in one HDF5 file."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from dkef.core.arrays import Array
from dkef.core.errors import DkefError, one_line
from dkef.core.hdf5 import Contents, read_hdf5, write_hdf5
from dkef.core.provenance import code_version, library_versions
from dkef.data.source import Removed
from dkef.data.whitening import Whitening

PARTS = ("train", "valid", "test")
REMEDY = "delete it and run preprocess again"


@dataclass(frozen=True)
class Splits:
    """The rows that models see, float64 [n, d], and where they come from."""

    title: str
    train: Array
    valid: Array
    test: Array
    train_rows: Array  # [n] which row of the raw table, counted from 0, each row is
    valid_rows: Array
    test_rows: Array
    whitening: Whitening  # the identity where the rows are in raw units
    whitened: bool
    columns: tuple[str, ...]  # of the raw table; whitened coordinates are mixtures of them
    removed: tuple[Removed, ...]
    digest: str  # of the split rows before any linear algebra, and of how they are whitened
    subset_of: str | None = None  # the full set, where these rows are only part of one
    valid_copies: Array | None = None  # [n] kinds of data.copies: which rows are copies of training rows before any
    test_copies: Array | None = None  # noise was added; None where nobody has looked

    @property
    def dimension(self) -> int:
        return len(self.columns)


def write_splits(path: Path, splits: Splits, provenance: dict[str, Any]) -> None:
    """Write a splits file, whole or not at all."""
    record = {
        "title": splits.title,
        "whitened": splits.whitened,
        "columns": splits.columns,
        "removed": splits.removed,
        "digest": splits.digest,
        "subset_of": splits.subset_of,
        "provenance": provenance | {"code_version": code_version(), "libraries": library_versions()},
    }
    arrays = {part: getattr(splits, part) for part in PARTS}
    arrays |= {f"rows/{part}": getattr(splits, f"{part}_rows") for part in PARTS}
    arrays |= {
        f"copies/{part}": copies
        for part in ("valid", "test")
        if (copies := getattr(splits, f"{part}_copies")) is not None
    }
    arrays |= {f"whitening/{name}": np.asarray(getattr(splits.whitening, name)) for name in ("mean", "W", "log_det")}
    write_hdf5(path, arrays, record)


def read_splits(path: Path | str) -> Splits:
    """Read what write_splits wrote."""
    contents = _read(path)
    record, arrays = contents.record, contents.arrays
    try:
        splits = Splits(
            **{part: arrays[part] for part in PARTS},
            **{f"{part}_rows": arrays[f"rows/{part}"] for part in PARTS},
            valid_copies=arrays.get("copies/valid"),
            test_copies=arrays.get("copies/test"),
            whitening=Whitening(arrays["whitening/mean"], arrays["whitening/W"]),
            title=record["title"],
            whitened=record["whitened"],
            columns=tuple(record["columns"]),
            removed=tuple(Removed(*entry) for entry in record["removed"]),
            digest=str(record["digest"]),
            subset_of=record["subset_of"],
        )
    except (KeyError, TypeError, ValueError) as error:
        raise DkefError(f"{path} is not a whole splits file ({one_line(error)}); {REMEDY}") from None
    _check_shapes(path, splits)
    return splits


def _check_shapes(path: Path | str, splits: Splits) -> None:
    d = splits.dimension
    shapes = {"whitening mean": (splits.whitening.mean.shape, (d,)), "whitening W": (splits.whitening.W.shape, (d, d))}
    for part in PARTS:
        rows = getattr(splits, f"{part}_rows").shape
        shapes[part] = (getattr(splits, part).shape, (*rows[:1], d))
        if (copies := getattr(splits, f"{part}_copies", None)) is not None:
            shapes[f"copies/{part}"] = (copies.shape, rows)
    for name, (found, wanted) in shapes.items():
        if found != wanted:
            raise DkefError(f"{path}: {name} has the shape {found} where {wanted} fits the rest; {REMEDY}")


def read_provenance(path: Path) -> dict[str, Any]:
    """Configuration, code and library versions behind a splits file."""
    provenance: dict[str, Any] = _read(path, arrays=False).record.get("provenance", {})
    return provenance


def _read(path: Path | str, arrays: bool = True) -> Contents:
    return read_hdf5(Path(path), "a whole splits file", REMEDY, arrays)
