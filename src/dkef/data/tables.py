"""Tables of numbers as sources: CSV, .npy and the sets that scikit-learn carries with it."""

import importlib.util
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from tokenize import TokenError
from typing import Literal

import numpy as np

from dkef.config.sentences import suggestion
from dkef.config.typed import Count, Whole, require, section
from dkef.core.arrays import Array
from dkef.core.errors import DkefError, one_line
from dkef.data.delimited import Layout, first_line, is_number, open_raw, read_numbers, require_affordable
from dkef.data.source import RawTable, Removed, Source


@dataclass(frozen=True)
class ColumnChoice:
    """Which columns of a table are used: `columns` in that order, or all but those that `drop` names with a reason.

    With `columns` given, a column that neither names is an error unless `ignore_others` is set: a file that has
    changed since the configuration was written does not go unnoticed.
    """

    columns: list[str] | None = None
    drop: dict[str, str] | list[str] = field(default_factory=dict)  # names, or names with reasons
    ignore_others: bool = False

    def choose(self, names: Sequence[str], where: object) -> tuple[list[int], tuple[Removed, ...]]:
        """Positions of the used columns among `names`, and what is left out."""
        twice = sorted({name for name in names if list(names).count(name) > 1})
        if twice:
            raise DkefError(f"{where}: the column name {twice[0]!r} occurs twice; rename one of the columns")
        missing = [name for name in [*(self.columns or []), *self.drop] if name not in names]
        if missing:
            which = "column {} is" if len(missing) == 1 else "columns {} are"
            absent = which.format(", ".join(map(repr, missing)))
            meant = suggestion(missing[0], names)
            raise DkefError(f"{where}: {absent} missing; {meant}found are {', '.join(names)}")
        used = self.columns if self.columns is not None else [name for name in names if name not in self.drop]
        others = [name for name in names if name not in used and name not in self.drop]
        if others and not self.ignore_others:
            raise DkefError(
                f"{where}: there is an extra column {', '.join(map(repr, others))}; name it in dataset.source.columns "
                "or drop, or set ignore_others: true"
            )
        if not used:
            raise DkefError(f"{where}: no column is left after dropping {', '.join(self.drop)}")
        reasons = dict.fromkeys(others, "not chosen") | self._reasons()
        removed = tuple(Removed("column", name, reasons[name]) for name in names if name not in used)
        return [list(names).index(name) for name in used], removed

    def _reasons(self) -> dict[str, str]:
        return dict(self.drop) if isinstance(self.drop, dict) else dict.fromkeys(self.drop, "dropped")


@dataclass(frozen=True)
class TableFiles(ColumnChoice):
    """Columns of files: names below data/raw that data/sources.csv knows, or `paths` of your own, anywhere."""

    files: list[str] = field(default_factory=list)
    paths: list[str] = field(default_factory=list)

    @property
    def own_files(self) -> tuple[str, ...]:
        return tuple(self.paths)

    def true_density(self) -> None:
        return None


@section
@dataclass(frozen=True)
class Csv(TableFiles):
    """One or more delimited text files with equal columns, plain or gzip, their rows one after the other."""

    separator: str = ","  # or "whitespace"
    names: list[str] | None = None  # of all columns, where the file has no header line
    skip_lines: Whole = 0  # lines before the first row, where `names` is given
    max_rows: Count | None = None  # of each file
    drop_incomplete_rows: bool = False  # those without a value in some used column

    def __post_init__(self) -> None:
        require(bool(self.files or self.paths), "paths", self.paths, "at least one file")
        known = self.separator == "whitespace" or len(self.separator) == 1
        require(known, "separator", self.separator, "one character or 'whitespace'")

    def read(self, raw: Path, rng: np.random.Generator) -> RawTable:
        return self.read_paths([*(raw / name for name in self.files), *map(Path, self.paths)])

    def read_paths(self, paths: Sequence[Path]) -> RawTable:
        """The chosen columns of all files, which must have the same columns."""
        parts = [self._read_one(path) for path in paths]
        for path, part in zip(paths, parts, strict=True):
            if part.columns != parts[0].columns:
                raise DkefError(f"{path} has other columns than {paths[0]}")
        values = parts[0].values if len(parts) == 1 else np.concatenate([part.values for part in parts])
        complete = ~np.isnan(values).any(axis=1)  # all, unless drop_incomplete_rows lets others in
        gone = len(values) - int(complete.sum())
        if gone == len(values):
            raise DkefError(f"{paths[0]} has no row with a value in every column; drop columns in dataset.source.drop")
        removed = (Removed("rows", str(gone), "a value is missing"),) if gone else ()
        return RawTable(values[complete] if gone else values, parts[0].columns, parts[0].removed + removed)

    def _read_one(self, path: Path) -> RawTable:
        names = self.names or self._header(path)
        fields, removed = self.choose(names, path)
        used = [names[position] for position in fields]
        skip = self.skip_lines if self.names else 1
        layout = Layout(self.separator, skip, len(names), self.max_rows, missing_allowed=self.drop_incomplete_rows)
        values = read_numbers(path, used, fields, layout)
        return RawTable(values, tuple(used), removed)

    def _header(self, path: Path) -> list[str]:
        names = first_line(path, self.separator)
        other = next((mark for mark in ";\t|" if len(names) == 1 and mark in names[0]), None)
        if other is not None:
            raise DkefError(
                f"{path} has one column, {one_line(repr(names[0]))}; set dataset.source.separator to {other!r}"
            )
        if all(is_number(name) for name in names):
            raise DkefError(
                f"{path} begins with numbers where column names are expected; name its columns in dataset.source.names"
            )
        return names


@section
@dataclass(frozen=True)
class Npy(TableFiles):
    """A two-dimensional array of numbers in NumPy's own format."""

    names: list[str] | None = None  # of all columns; x1, x2, ... otherwise
    max_rows: Count | None = None

    def __post_init__(self) -> None:
        files = [*self.files, *self.paths]
        require(len(files) == 1, "paths", files, "exactly one file")

    def read(self, raw: Path, rng: np.random.Generator) -> RawTable:
        path = raw / self.files[0] if self.files else Path(self.paths[0])
        stored = _load_npy(path)
        names = self.names or [f"x{i + 1}" for i in range(stored.shape[1])]
        if len(names) != stored.shape[1]:
            raise DkefError(f"{path} has {stored.shape[1]} columns and dataset.source.names has {len(names)}")
        fields, removed = self.choose(names, path)
        require_affordable(len(stored[: self.max_rows]) * len(fields) * 8, path)
        values = np.asarray(stored[: self.max_rows, fields], dtype=np.float64)
        return RawTable(values, tuple(names[i] for i in fields), removed)


# The header of a .npy file is a Python literal, hence errors of Python's own parser.
NOT_NPY = (ValueError, EOFError, OSError, SyntaxError, TypeError, KeyError, OverflowError, RecursionError, MemoryError)


def _load_npy(path: Path) -> Array:
    """The array in a file, not yet in memory."""
    open_raw(path).close()
    try:
        stored: Array = np.load(path, mmap_mode="r", allow_pickle=False)
    except (*NOT_NPY, TokenError) as error:
        raise DkefError(f"{path} is not a whole .npy file ({one_line(error)}); delete it and get it again") from None
    if not isinstance(stored, np.ndarray) or stored.ndim != 2 or stored.dtype.kind not in "fiu":
        found = f"{stored.ndim}-dimensional of type {stored.dtype}" if isinstance(stored, np.ndarray) else "an archive"
        raise DkefError(f"{path} is {found}; needed is a two-dimensional array of numbers")
    if not stored.size:
        raise DkefError(f"{path} has the shape {stored.shape}; needed is at least one row and one column")
    return stored


BUNDLED: Mapping[str, str] = {"wine_recognition": "wine_data.csv", "breast_cancer": "breast_cancer.csv"}


@section
@dataclass(frozen=True)
class Bundled(ColumnChoice, Source):
    """A table that scikit-learn carries with it, read from its CSV file: real data without a network."""

    table: Literal["wine_recognition", "breast_cancer"] = field(kw_only=True)
    names: list[str] = field(default_factory=list)  # of all columns: the first line of these files holds counts

    def read(self, raw: Path, rng: np.random.Generator) -> RawTable:
        # Found without importing scikit-learn, which takes a second.
        package = importlib.util.find_spec("sklearn")
        if package is None or not package.submodule_search_locations:
            raise DkefError(f"dataset {self.table} comes with scikit-learn, which is not installed")
        path = Path(package.submodule_search_locations[0]) / "datasets" / "data" / BUNDLED[self.table]
        reader = Csv(self.columns, self.drop, self.ignore_others, paths=[str(path)], names=self.names, skip_lines=1)
        return reader.read_paths([path])
