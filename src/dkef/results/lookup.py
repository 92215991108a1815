"""One place to look up results: values of runs, medians, invalid runs, and the files that a figure or page reads."""

import argparse
import functools
import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pandas as pd

from dkef.core.errors import DkefError
from dkef.data.splits import Splits
from dkef.results.experiment import ExperimentInfo
from dkef.results.read import Grid, Key, read_files
from dkef.results.tables import GRIDS, METRICS, SPLITS, SUMMARY, TRACES, Table

OK = "ok"  # the status of a value without a doubt; "untrusted: why" is one with a value too


@dataclass(frozen=True)
class Run:
    """A metric of one run that has a value."""

    value: float
    stderr: float  # NaN where there is none
    status: str = OK

    @property
    def trusted(self) -> bool:
        return self.status == OK


@dataclass(frozen=True)
class Median:
    """A row of summary.csv: the median over the runs that have a value, and how all runs ended."""

    value: float = math.nan
    low: float = math.nan  # the interval of order statistics around it
    high: float = math.nan
    coverage: float = math.nan
    runs: int = 0
    ok: int = 0
    untrusted: int = 0
    diverged: int = 0
    invalid: int = 0
    undefined: int = 0

    @property
    def valued(self) -> int:
        """Runs with a value, trusted or not."""
        return self.ok + self.untrusted

    @property
    def failed(self) -> int:
        """Runs that ended without a valid value: what the paper calls invalid."""
        return self.diverged + self.invalid

    @property
    def endings(self) -> str:
        """How the runs without a value ended: "2 diverged, 1 undefined"."""
        ended = {"diverged": self.diverged, "invalid": self.invalid, "undefined": self.undefined}
        return ", ".join(f"{count} {kind}" for kind, count in ended.items() if count)

    @property
    def trusted(self) -> bool:
        """Whether at least half of the values behind it are."""
        return self.ok >= self.untrusted


@dataclass(frozen=True)
class Results:
    """The results of one experiment, as far as they were read."""

    info: ExperimentInfo
    tables: Mapping[str, Any] = field(default_factory=dict)  # what `read_files` gave, by the name of the table

    @staticmethod
    def add_arguments(parser: argparse.ArgumentParser) -> None:
        """The options of a stage that reads results, for `read`."""
        parser.add_argument("--config", required=True, help="canonical JSON: experiment, title, datasets, reduced")
        parser.add_argument(
            "--table", nargs="+", action="append", default=[], metavar=("NAME", "FILE"), help="a table and its files"
        )

    @classmethod
    def read(cls, config: str, given: Sequence[Sequence[str]], known: Sequence[Table]) -> "Results":
        """From a job's slice of the configuration, and the files of each table: ["metrics", "a.csv"], ..."""
        by_name = {table.name: table for table in known}
        for name, *_ in given:
            if name not in by_name:
                raise DkefError(f"--table {name} is not read here; allowed are {', '.join(by_name) or 'none'}")
        tables = {name: read_files(by_name[name], [Path(path) for path in paths]) for name, *paths in given}
        return cls(ExperimentInfo.parse(config), tables)

    def frame(self, table: Table) -> pd.DataFrame:
        """The rows of a table; none where it was not read."""
        found: pd.DataFrame = self.tables.get(table.name, pd.DataFrame(columns=list(table.columns)))
        return found

    def having(self, tables: Mapping[str, Any]) -> "Results":
        """The same with some more tables, by name."""
        return replace(self, tables={**self.tables, **tables})

    def by_cell(self, table: Table) -> Mapping[Any, Any]:
        """What a family of files holds, by cell; none where it was not read."""
        found: Mapping[Any, Any] = self.tables.get(table.name, {})
        return found

    @property
    def grids(self) -> Mapping[Key, Grid]:
        return self.by_cell(GRIDS)

    @property
    def traces(self) -> Mapping[Key, pd.DataFrame]:
        return self.by_cell(TRACES)

    @property
    def splits(self) -> Mapping[tuple[str, int], Splits]:
        return self.by_cell(SPLITS)

    def runs(self, dataset: str, model: str, metric: str) -> Mapping[int, Run]:
        """Runs that have a value, by seed."""
        return self._runs.get((dataset, model, metric), {})

    def run(self, key: Key, metric: str) -> Run:
        """A metric of one run; its value is NaN where there is none."""
        return self.runs(key[0], key[1], metric).get(key[2], Run(math.nan, math.nan))

    @functools.cached_property
    def _runs(self) -> dict[tuple[str, str, str], dict[int, Run]]:
        found: dict[tuple[str, str, str], dict[int, Run]] = {}
        names = ["dataset", "model", "metric", "seed", "value", "stderr", "status"]
        for d, m, metric, seed, value, stderr, status in self.frame(METRICS).sort_values("seed")[names].to_numpy():
            if math.isfinite(value):
                found.setdefault((d, m, metric), {})[int(seed)] = Run(float(value), float(stderr), str(status))
        return found

    def median(self, dataset: str, model: str, metric: str) -> Median:
        """The summary's row; one of no runs where there is none."""
        return self.medians.get((dataset, model, metric), Median())

    def reasons(self, dataset: str, model: str, metric: str) -> str:
        """Why runs have no value, in the words of their statuses, with the number of runs of each."""
        counts = self._reasons.get((dataset, model, metric), Counter())
        return "; ".join(f"{reason} ({count})" if count > 1 else reason for reason, count in counts.items())

    @functools.cached_property
    def _reasons(self) -> dict[tuple[str, str, str], Counter[str]]:
        rows = self.frame(METRICS)
        found: dict[tuple[str, str, str], Counter[str]] = {}
        for d, m, metric, status in rows[rows["value"].isna()][["dataset", "model", "metric", "status"]].to_numpy():
            found.setdefault((d, m, metric), Counter())[str(status).removeprefix("undefined: ")] += 1
        return found

    @functools.cached_property
    def medians(self) -> dict[tuple[str, str, str], Median]:
        """Every row of the summary by dataset, model and metric, in its order."""
        rows = self.frame(SUMMARY)[list(SUMMARY.columns)].to_numpy()
        return {(r[0], r[1], r[2]): Median(*r[3:7], *map(int, r[7:])) for r in rows}

    def true_mass(self, dataset: str, region: str) -> float:
        """The truth's share of mass in a region."""
        for key, grid in self.grids.items():
            if key[0] == dataset and region in grid.facts.get("true_masses", {}):
                return float(grid.facts["true_masses"][region])
        return math.nan
