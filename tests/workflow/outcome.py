"""What two runs of one experiment have to agree on: tables to the byte, arrays to the bit, and what is recorded."""

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from dkef.core.hdf5 import read_hdf5

PRODUCED = ("data/processed", "results")
TEXT, ARRAYS = (".csv", ".json"), (".h5",)


def differences(first: Path, second: Path) -> list[Path]:
    """Results, relative to both projects' folders, that are unequal or that only one of them has."""
    names = sorted({*_results(first), *_results(second)})
    return [name for name in names if not equal(first / name, second / name)]


def results_of(project: Path) -> list[Path]:
    """All tables and arrays that a run left behind, relative to the project's folder."""
    return sorted(_results(project))


def _results(project: Path) -> Iterator[Path]:
    for top in PRODUCED:
        for path in (project / top).rglob("*"):
            if path.suffix in TEXT + ARRAYS and "published" not in path.parts:
                yield path.relative_to(project)


def equal(first: Path, second: Path) -> bool:
    """Whether two files hold the same result."""
    if not (first.is_file() and second.is_file()):
        return False
    if first.suffix in TEXT:
        return first.read_bytes() == second.read_bytes()
    mine, yours = (read_hdf5(path, "a result", "") for path in (first, second))
    if mine.arrays.keys() != yours.arrays.keys() or _timeless(mine.record) != _timeless(yours.record):
        return False
    return all(_same(mine.arrays[name], yours.arrays[name]) for name in mine.arrays)


def _timeless(record: Any) -> str:
    """A record as text, less the seconds that a stage took, which no two runs share."""

    def kept(value: Any) -> Any:
        if not isinstance(value, Mapping):
            return value
        return {key: kept(entry) for key, entry in value.items() if "seconds" not in key.split("_")}

    return json.dumps(kept(record), sort_keys=True)


def _same(first: Any, second: Any) -> bool:
    """Equal type, shape and bits; a NaN equals itself."""
    a, b = np.asarray(first), np.asarray(second)
    if a.dtype != b.dtype or a.shape != b.shape:
        return False
    return a.tobytes() == b.tobytes() if a.dtype.kind in "biufc" else bool(np.all(a == b))
