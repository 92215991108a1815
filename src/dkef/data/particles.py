"""The two particle-physics sets in the form their first users distribute them."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

import numpy as np

from dkef.config.typed import Count, require, section
from dkef.core.arrays import Array
from dkef.core.errors import DkefError
from dkef.data.delimited import Layout, first_line, gather, read_chunks, read_numbers
from dkef.data.source import RawTable, Removed, Source


def repeated_minimum(x: Array, more_than: int) -> Array:
    """Which columns have a smallest value that occurs more than so many times; [d] of bool.

    MAF's rule for "too discrete". It meant the most frequent value and looks at the smallest; the slip decides which
    columns of MiniBooNE go, so it stays.
    """
    repeated: Array = (x == x.min(axis=0)).sum(axis=0) > more_than
    return repeated


@section
@dataclass(frozen=True)
class MiniBoone(Source):
    """UCI's text file: a line with the two class sizes, the signal rows, the background rows; 50 columns."""

    file: str = "miniboone/MiniBooNE_PID.txt"
    outlier_below: float = -100.0  # MAF drops rows whose first feature is below this
    max_repeats: Count = 5  # and columns whose smallest value occurs more often

    @property
    def files(self) -> tuple[str, ...]:
        return (self.file,)

    def read(self, raw: Path, rng: np.random.Generator) -> RawTable:
        path = raw / self.file
        signal = self._signal_rows(path)
        names = [f"uci_col_{i + 1:02d}" for i in range(50)]
        layout = Layout("whitespace", skip_lines=1, fields=50, max_rows=signal)
        x = read_numbers(path, names, range(50), layout)
        if len(x) < signal:
            raise DkefError(f"{path} is cut off: {len(x)} of {signal} signal rows; delete it and fetch it again")
        outliers = x[:, 0] < self.outlier_below
        x = x[~outliers]
        repeated = repeated_minimum(x, self.max_repeats)
        reason = f"smallest value occurs more than {self.max_repeats} times"
        rows = Removed("rows", str(outliers.sum()), f"outliers, {names[0]} below {self.outlier_below:g}")
        columns = (Removed("column", names[i], reason) for i in np.flatnonzero(repeated))
        kept = np.flatnonzero(~repeated)
        return RawTable(x[:, kept], tuple(names[i] for i in kept), (rows, *columns))

    @staticmethod
    def _signal_rows(path: Path) -> int:
        counts = first_line(path, "whitespace")
        if len(counts) != 2 or not all(count.isdigit() and len(count) < 10 for count in counts):
            raise DkefError(
                f"{path} begins with {' '.join(counts)[:60]!r} where the numbers of signal and background rows are "
                "expected; is it MiniBooNE_PID.txt?"
            )
        return int(counts[0])


FEATURES = tuple(f"f{i}" for i in range(27))


@section
@dataclass(frozen=True)
class Hepmass(Source):
    """The signal rows of `1000_train` and `1000_test`, UCI's gzip files or MAF's cut of them, one after the other.

    The files are read a chunk at a time and only so many rows from their start, because UCI's hold millions. The rows
    of the second file are the source's own test rows, as in MAF.
    """

    train_file: str = "hepmass/1000_train.csv.gz"
    test_file: str = "hepmass/1000_test.csv.gz"
    train_file_rows: Count | None = 700_000  # from the start of each file; null for all
    test_file_rows: Count | None = 350_000
    # maf: drop those whose smallest value repeats among the training rows | listed: drop those that `drop` names
    features: Literal["maf", "listed"] = "listed"
    max_repeats: Count = 5  # of the smallest value, under maf
    drop: dict[str, str] = field(default_factory=dict)  # features left out under `listed`, with the reason

    def __post_init__(self) -> None:
        for name in self.drop:
            require(name in FEATURES, "drop", name, "features f0 to f26")

    @property
    def files(self) -> tuple[str, ...]:
        return (self.train_file, self.test_file)

    def read(self, raw: Path, rng: np.random.Generator) -> RawTable:
        train, test = raw / self.train_file, raw / self.test_file
        test_rows = 0

        def chunks() -> Iterator[Array]:
            nonlocal test_rows
            yield from self._signal(train, self.train_file_rows)
            for chunk in self._signal(test, self.test_file_rows):
                test_rows += len(chunk)
                yield chunk

        x = gather(chunks(), train)
        if not len(x):
            raise DkefError(f"{train} and {test} have no signal row (label 1)")
        if self.features == "maf":
            return self._without_repeats(x, test_rows)
        removed = tuple(Removed("column", name, why) for name, why in self.drop.items())
        return RawTable(x, self._read_features(), removed, test_rows)

    def _without_repeats(self, x: Array, test_rows: int) -> RawTable:
        """MAF's rule, which looks at the rows of the first file: 21 features are left."""
        repeated = repeated_minimum(x[: len(x) - test_rows], self.max_repeats)
        reason = f"smallest value occurs more than {self.max_repeats} times"
        removed = tuple(Removed("column", FEATURES[i], reason) for i in np.flatnonzero(repeated))
        kept = np.flatnonzero(~repeated)
        return RawTable(x[:, kept], tuple(FEATURES[i] for i in kept), removed, test_rows)

    def _read_features(self) -> tuple[str, ...]:
        """Features that leave the files: all where the rows decide."""
        return FEATURES if self.features == "maf" else tuple(name for name in FEATURES if name not in self.drop)

    def _signal(self, path: Path, max_rows: int | None) -> Iterator[Array]:
        """Features of the signal rows of one file."""
        header = first_line(path, ",")
        if tuple(header[1:28]) != FEATURES or "label" not in header[0]:
            raise DkefError(f"{path}: the header {','.join(header)[:80]!r} is not 'label, f0 to f26'; is it HEPMASS?")
        # One of the files has a spurious last column, which is not read.
        wanted = self._read_features()
        fields = [0, *(FEATURES.index(name) + 1 for name in wanted)]
        for chunk in read_chunks(path, ["label", *wanted], fields, Layout(",", skip_lines=1, max_rows=max_rows)):
            yield chunk[chunk[:, 0] == 1, 1:]
