"""What a figure is drawn from: tables, grids, traces and splits, read once and keyed by dataset, model and seed."""

import functools
import json
import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pandas as pd

from dkef.core.arrays import Array
from dkef.core.errors import DkefError, one_line
from dkef.core.files import AGAIN, require_noted
from dkef.core.hdf5 import read_hdf5
from dkef.core.tables import read_table
from dkef.data.splits import PARTS
from dkef.metrics.pointwise import COLUMNS, PROPOSAL_COLUMNS, PROVENANCE, SENSITIVITY_COLUMNS
from dkef.report.figures.look import dataset_order, model_order
from dkef.stages.agreement import AGREEMENT_COLUMNS
from dkef.stages.summarise import SUMMARY_COLUMNS

Key = tuple[str, str, int]  # dataset, model, seed

OK, UNTRUSTED = "ok", "untrusted"  # statuses of rows with a value; what follows a colon says why it is doubted
OWN_REFERENCE = "undefined: the model is its own reference"  # status of fssd_p_value of the reference model


@dataclass(frozen=True)
class DatasetEntry:
    """A dataset of the experiment, as a figure shows it."""

    name: str
    title: str
    models: tuple[str, ...]
    seeds: tuple[int, ...]
    synthetic: bool = False
    subset_of: str | None = None


@dataclass(frozen=True)
class Request:
    """Which figure is asked for, and which cells of which experiment stand behind it."""

    figure: str
    experiment: str
    title: str
    datasets: tuple[DatasetEntry, ...]
    reduced: str | None = None  # how this run is smaller than the paper's; printed in the figure

    @classmethod
    def parse(cls, text: str) -> "Request":
        """The request in a job's JSON slice; keys that figures do not read are left alone."""
        values = json.loads(text)
        datasets = tuple(
            DatasetEntry(
                entry["name"],
                entry.get("title") or entry["name"],
                tuple(entry["models"]),
                tuple(entry["seeds"]),
                bool(entry.get("synthetic", False)),
                entry.get("subset_of"),
            )
            for entry in values["datasets"]
        )
        return cls(
            values.get("figure", ""),
            values["experiment"],
            values.get("title", ""),
            datasets,
            values.get("reduced"),
        )

    def ordered(self, synthetic: bool | None = None) -> list[DatasetEntry]:
        """Datasets in the paper's order; only the synthetic or only the other ones where asked."""
        by_name = {entry.name: entry for entry in self.datasets}
        return [
            by_name[name]
            for name in dataset_order(list(by_name))
            if synthetic is None or by_name[name].synthetic == synthetic
        ]

    def models(self) -> list[str]:
        """All models of the experiment in the paper's order."""
        return model_order([model for entry in self.datasets for model in entry.models])


@dataclass(frozen=True)
class Grid:
    """One grid file: arrays by name, and what the grid stage found."""

    arrays: Mapping[str, Array]
    facts: Mapping[str, Any]  # JSON record: dataset, model, seed, status, normaliser check, masses

    def __getitem__(self, name: str) -> Array:
        return self.arrays[name]

    def __contains__(self, name: str) -> bool:
        return name in self.arrays


@dataclass(frozen=True)
class Inputs:
    """Everything a drawing function is given."""

    request: Request
    metrics: pd.DataFrame = field(default_factory=lambda: pd.DataFrame(columns=list(COLUMNS)))
    summary: pd.DataFrame = field(default_factory=lambda: pd.DataFrame(columns=list(SUMMARY_COLUMNS)))
    grids: Mapping[Key, Grid] = field(default_factory=dict)
    traces: Mapping[Key, pd.DataFrame] = field(default_factory=dict)
    splits: Mapping[tuple[str, int], Mapping[str, Array]] = field(default_factory=dict)
    sensitivity: pd.DataFrame = field(default_factory=lambda: pd.DataFrame(columns=list(SENSITIVITY_COLUMNS)))
    agreement: pd.DataFrame = field(default_factory=lambda: pd.DataFrame(columns=list(AGREEMENT_COLUMNS)))
    proposals: pd.DataFrame = field(default_factory=lambda: pd.DataFrame(columns=list(PROPOSAL_COLUMNS)))

    def runs(self, dataset: str, model: str, metric: str) -> pd.DataFrame:
        """Rows of metrics.csv for one bar: one row a seed."""
        return self._runs.get((dataset, model, metric), self.metrics.iloc[:0])

    @functools.cached_property
    def _runs(self) -> dict[tuple[str, str, str], pd.DataFrame]:
        """metrics.csv cut into bars, once: a figure asks for hundreds."""
        groups = self.metrics.sort_values("seed").groupby(["dataset", "model", "metric"], sort=False)
        return {(str(d), str(m), str(metric)): rows for (d, m, metric), rows in groups}

    def one(self, key: Key, metric: str) -> tuple[float, bool]:
        """A metric of one run and whether it is trusted; NaN where it has no value."""
        rows = self.runs(key[0], key[1], metric)
        rows = rows[rows["seed"] == key[2]]
        if rows.empty:
            return math.nan, True
        return float(rows["value"].iloc[0]), not str(rows["status"].iloc[0]).startswith(UNTRUSTED)

    def row(self, dataset: str, model: str, metric: str) -> Mapping[str, Any] | None:
        """The summary's row for one bar, or None where there is none."""
        return self._rows.get((dataset, model, metric))

    @functools.cached_property
    def _rows(self) -> dict[tuple[str, str, str], dict[str, Any]]:
        rows = self.summary.to_dict("records")
        return {(str(row["dataset"]), str(row["model"]), str(row["metric"])): row for row in rows}

    def reference(self, dataset: str) -> str | None:
        """The model with which fssd_p_value compares the others: the one that has none because it is that model."""
        m = self.metrics
        own = m[(m["dataset"] == dataset) & (m["metric"] == "fssd_p_value") & (m["status"] == OWN_REFERENCE)]
        return None if own.empty else str(own["model"].iloc[0])


def read_metrics(path: Path) -> pd.DataFrame:
    """metrics.csv with numbers as numbers; a missing value is NaN and its status says why."""
    return _with_whole_seeds(path, read_table(path, COLUMNS, numbers=("seed", "value", "stderr")))


def read_summary(path: Path) -> pd.DataFrame:
    """summary.csv with numbers as numbers."""
    return read_table(path, SUMMARY_COLUMNS, numbers=SUMMARY_COLUMNS[3:])


def read_sensitivity(path: Path) -> pd.DataFrame:
    """The table of FSSD and KSD over settings; KSD has no locations."""
    numbers = ("seed", "bandwidth_factor", "locations", "value", "stderr")
    return _with_whole_seeds(path, read_table(path, SENSITIVITY_COLUMNS, numbers=numbers))


def _with_whole_seeds(path: Path, table: pd.DataFrame) -> pd.DataFrame:
    for seed in table["seed"]:
        if not float(seed).is_integer():
            raise DkefError(f"{path} has the seed {seed}, which is not a whole number; {AGAIN}")
    return table.assign(seed=[int(seed) for seed in table["seed"]])


def read_agreement(path: Path) -> pd.DataFrame:
    """The table of rank correlations over settings."""
    taus = [name for name in AGREEMENT_COLUMNS if name.startswith("tau")]
    return read_table(path, AGREEMENT_COLUMNS, numbers=("bandwidth_factor", "locations", *taus))


def read_proposals(paths: Sequence[Path]) -> pd.DataFrame:
    """log Z by every proposal and number of samples, the tables of all cells in one."""
    numbers = tuple(c for c in PROPOSAL_COLUMNS if c not in ("dataset", "model", "proposal", "status", *PROVENANCE))
    return pd.concat([_with_whole_seeds(p, read_table(p, PROPOSAL_COLUMNS, numbers=numbers)) for p in paths])


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
    """A training trace, with its cell from the path .../<dataset>/<model>/seed<k>/trace.csv."""
    dataset, model, seed = path.parts[-4:-1]
    require_noted(path, "delete it and train again")
    try:
        table = pd.read_csv(path)
    except FileNotFoundError:
        raise DkefError(f"{path} does not exist; `snakemake {path}` makes it") from None
    except pd.errors.EmptyDataError:
        table = pd.DataFrame()  # a closed-form fit has nothing to trace
    except (pd.errors.ParserError, UnicodeDecodeError, ValueError) as error:
        raise DkefError(f"{path} is not a CSV table ({one_line(error)}); delete it and train again") from None
    return (dataset, model, _seed(seed, path)), table


def read_split(path: Path) -> tuple[tuple[str, int], dict[str, Array]]:
    """Train, valid and test rows of one dataset and seed, from .../<dataset>/seed<k>.h5."""
    remedy = "delete it and run preprocess again"
    arrays = read_hdf5(path, "a splits file", remedy).arrays
    if missing := [part for part in PARTS if part not in arrays]:
        raise DkefError(f"{path} does not hold splits (it has no {missing[0]}); {remedy}")
    return (path.parent.name, _seed(path.stem, path)), {part: arrays[part] for part in PARTS}


def _seed(text: str, path: Path) -> int:
    match = re.fullmatch(r"seed(\d+)", text)
    if match is None:
        raise DkefError(f"{path}: expected seed<k> in the path, found {text!r}")
    return int(match[1])
