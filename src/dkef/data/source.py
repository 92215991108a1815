"""What every source of rows offers, and the table it gives."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple, Protocol

import numpy as np

from dkef.core.arrays import Array

if TYPE_CHECKING:  # rows of real data have nothing to do with synthetic ones
    from dkef.data.synthetic.distributions import Distribution


class Removed(NamedTuple):
    """Something of the raw table that no model sees, and why."""

    kind: str  # column | rows
    name: str  # the column's name, or the number of rows
    reason: str


@dataclass(frozen=True)
class RawTable:
    """Rows as they are at the source, in raw units: values [n, d] in float64."""

    values: Array
    columns: tuple[str, ...]
    removed: tuple[Removed, ...] = ()
    test_rows: int | None = None  # how many of the last rows the source sets aside for testing, where it does


class Source(Protocol):
    """A frozen dataclass that `_target_` in a dataset YAML names; light to import."""

    @property
    def files(self) -> Sequence[str]:
        """Raw files below data/raw, each a row of data/sources.csv, that the fetch stage brings."""
        return ()

    @property
    def own_files(self) -> Sequence[str]:
        """Paths of files that the user keeps wherever they like; never fetched, never changed."""
        return ()

    def read(self, raw: Path, rng: np.random.Generator) -> RawTable:
        """The rows, from the files below `raw` or drawn with `rng`."""
        ...

    def true_density(self) -> "Distribution | None":
        """The distribution behind the rows where it is known."""
        return None
