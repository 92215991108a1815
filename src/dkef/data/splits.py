"""Training, validation and test rows with all that is needed to understand them, in one HDF5 file."""

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import h5py

from dkef.data.source import Removed
from dkef.data.whitening import Whitening
from dkef.errors import DkefError
from dkef.files import whole_file
from dkef.models.protocol import Array
from dkef.provenance import code_version, library_versions

PARTS = ("train", "valid", "test")


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
    with whole_file(path) as scratch, h5py.File(scratch, "w") as file:
        for part in PARTS:
            _store(file, part, getattr(splits, part))
            _store(file, f"rows/{part}", getattr(splits, f"{part}_rows"))
        _store(file, "whitening/mean", splits.whitening.mean)
        _store(file, "whitening/W", splits.whitening.W)
        file["whitening"].attrs["log_det"] = splits.whitening.log_det
        file.attrs["record"] = json.dumps(record, sort_keys=True)


def _store(file: h5py.File, name: str, array: Array) -> None:
    # The checksum turns a damaged file into an error on reading.
    file.create_dataset(name, data=array, track_times=False, chunks=True, fletcher32=True)


def read_splits(path: Path | str) -> Splits:
    """Read what write_splits wrote."""
    try:
        with h5py.File(path, "r") as file:
            record = json.loads(file.attrs["record"])
            arrays = {part: file[part][()] for part in PARTS}
            rows = {f"{part}_rows": file[f"rows/{part}"][()] for part in PARTS}
            whitening = Whitening(file["whitening/mean"][()], file["whitening/W"][()])
    except FileNotFoundError:
        raise DkefError(f"{path} does not exist; `snakemake {path}` makes it") from None
    except (OSError, KeyError, ValueError) as error:
        raise DkefError(f"{path} is not a whole splits file ({error}); delete it and run preprocess again") from None
    return Splits(
        **arrays,
        **rows,
        whitening=whitening,
        title=record["title"],
        whitened=record["whitened"],
        columns=tuple(record["columns"]),
        removed=tuple(Removed(*entry) for entry in record["removed"]),
        digest=record["digest"],
        subset_of=record["subset_of"],
    )


def read_provenance(path: Path) -> dict[str, Any]:
    """Configuration, code and library versions behind a splits file."""
    with h5py.File(path, "r") as file:
        provenance: dict[str, Any] = json.loads(file.attrs["record"])["provenance"]
    return provenance
