"""Readers of every file that a report is made of; what a file should not be is one sentence on what to do."""

import json
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pandas as pd
from omegaconf import OmegaConf

from dkef.core.arrays import Array
from dkef.core.errors import DkefError, one_line
from dkef.core.files import AGAIN, read_json, require_noted
from dkef.core.hdf5 import read_hdf5
from dkef.core.tables import read_table
from dkef.data.splits import Splits, read_splits
from dkef.results.tables import CELL, Table

Key = tuple[str, str, int]  # dataset, model, seed


@dataclass(frozen=True)
class Grid:
    """One grid file: arrays by name, and what the grid stage found."""

    arrays: Mapping[str, Array]
    facts: Mapping[str, Any]  # JSON record: dataset, model, seed, status, normaliser check, masses

    def __getitem__(self, name: str) -> Array:
        return self.arrays[name]

    def __contains__(self, name: str) -> bool:
        return name in self.arrays


def read_files(table: Table, paths: Sequence[Path]) -> Any:
    """What the files of a table hold: one frame of all rows, one record, or a mapping by cell."""
    return READERS[table.reader](table, paths)


def read_frame(table: Table, *paths: Path) -> pd.DataFrame:
    """Tables of one kind as one frame, numbers as numbers; a missing number is NaN, and its row's status says why."""
    frames = [_with_whole_seeds(path, read_table(path, table.columns, table.numbers)) for path in paths]
    return pd.concat(frames) if frames else pd.DataFrame(columns=list(table.columns))


def _with_whole_seeds(path: Path, table: pd.DataFrame) -> pd.DataFrame:
    if "seed" not in table:
        return table
    for seed in table["seed"]:
        if not float(seed).is_integer():
            raise DkefError(f"{path} has the seed {seed}, which is not a whole number; {AGAIN}")
    return table.assign(seed=[int(seed) for seed in table["seed"]])


def read_grid(path: Path) -> tuple[Key, Grid]:
    """A grid file and the cell it belongs to, which stands in the file itself."""
    remedy = "delete it and run the grid stage again"
    contents = read_hdf5(path, "a grid file", remedy)
    facts = contents.record
    try:
        key = (str(facts["dataset"]), str(facts["model"]), int(facts["seed"]))
    except (KeyError, TypeError, ValueError) as error:
        raise DkefError(f"{path} is not a grid file ({one_line(error)}); {remedy}") from None
    return key, Grid(contents.arrays, facts)


def read_trace(path: Path) -> tuple[Key, pd.DataFrame]:
    """A training trace and its cell."""
    require_noted(path, "delete it and train again")
    try:
        table = pd.read_csv(path)
    except FileNotFoundError:
        raise DkefError(f"{path} does not exist; `snakemake {path}` makes it") from None
    except pd.errors.EmptyDataError:
        table = pd.DataFrame()  # a closed-form fit has nothing to trace
    except (pd.errors.ParserError, UnicodeDecodeError, ValueError) as error:
        raise DkefError(f"{path} is not a CSV table ({one_line(error)}); delete it and train again") from None
    return cell_of(path), table


def read_benchmark(path: Path) -> tuple[Key, dict[str, float]]:
    """What Snakemake measured of the training of a cell: `s`, seconds, and `max_rss`, MB, as far as it could."""
    try:
        measured = dict(json.loads(path.read_text(encoding="utf-8").splitlines()[0]))
        found = {key: float(measured[key]) for key in ("s", "max_rss") if isinstance(measured.get(key), int | float)}
    except FileNotFoundError:
        raise DkefError(f"{path} does not exist; `snakemake {path}` makes it") from None
    except (ValueError, TypeError, IndexError, OverflowError, RecursionError) as error:
        raise DkefError(
            f"{path} is not what Snakemake measured ({one_line(error)}); delete it and train again"
        ) from None
    return cell_of(path), found


def core_seconds(benchmark: Path) -> float:
    """Core-seconds of a job: processor time where it was measured, else wall time."""
    try:
        measured = json.loads(benchmark.read_text(encoding="utf-8").splitlines()[0])
        found = [measured.get(key) for key in ("cpu_time", "s")]
    except (OSError, ValueError, IndexError, AttributeError):
        return 0.0
    return next((float(value) for value in found if isinstance(value, int | float)), 0.0)


def read_split(path: Path) -> tuple[tuple[str, int], Splits]:
    """Splits of one dataset and seed, from .../<dataset>/seed<k>.h5."""
    return (path.parent.name, _seed(path.stem, path)), read_splits(path)


def cell_folder(experiment: str, key: Key) -> Path:
    """Where the files of a cell lie, from the project's folder."""
    return Path(CELL.format(experiment=experiment, dataset=key[0], model=key[1], seed=key[2]))


def cell_of(path: Path) -> Key:
    """The cell of a file .../<dataset>/<model>/seed<k>/<name>."""
    dataset, model, seed = path.parts[-4:-1]
    return dataset, model, _seed(seed, path)


def _seed(text: str, path: Path) -> int:
    match = re.fullmatch(r"seed(\d+)", text)
    if match is None:
        raise DkefError(f"{path}: expected seed<k> in the path, found {text!r}")
    return int(match[1])


def _each(read: Callable[[Path], tuple[Any, Any]]) -> Callable[[Table, Sequence[Path]], Any]:
    return lambda table, paths: dict(map(read, paths))


READERS: dict[str, Callable[[Table, Sequence[Path]], Any]] = {
    "table": lambda table, paths: read_frame(table, *paths),
    "record": lambda table, paths: read_json(paths[0]),
    "yaml": lambda table, paths: {path.stem: OmegaConf.to_container(OmegaConf.load(path)) for path in paths},
    "paths": lambda table, paths: list(paths),
    "grid": _each(read_grid),
    "trace": _each(read_trace),
    "splits": _each(read_split),
    "benchmark": _each(read_benchmark),
}
