"""Tables of all cells in one, in an order that does not depend on that of the files."""

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import pandas as pd

from dkef.core.tables import as_numbers, concatenate
from dkef.metrics.registry import METRICS
from dkef.results.tables import METRICS as METRICS_TABLE
from dkef.results.tables import SENSITIVITY, Table

Order = Mapping[str, Callable[[str], Any]]  # columns, and how to order their texts
CELL: Order = {"dataset": str, "model": str, "seed": int}


def gather_metrics(paths: Sequence[Path]) -> pd.DataFrame:
    """All metrics, ordered by dataset, model, seed and metric."""
    ranks = {metric: rank for rank, metric in enumerate(METRICS)}
    return _gather(paths, METRICS_TABLE, {**CELL, "metric": ranks.__getitem__})


def order_metrics(rows: pd.DataFrame) -> pd.DataFrame:
    """Rows of metrics in the order of `gather_metrics`."""
    ranks = {metric: rank for rank, metric in enumerate(METRICS)}
    keys = rows.assign(seed=rows["seed"].astype(int), metric=rows["metric"].map(ranks))
    return rows.loc[keys.sort_values(["dataset", "model", "seed", "metric"]).index]


def gather_sensitivity(paths: Sequence[Path]) -> pd.DataFrame:
    """All sensitivity tables; KSD has no locations."""
    setting: Order = {"statistic": str, "bandwidth_factor": float, "locations": lambda text: int(text or 0)}
    return _gather(paths, SENSITIVITY, {**CELL, **setting})


def _gather(paths: Sequence[Path], table: Table, order: Order) -> pd.DataFrame:
    """Texts as they stand, and `number` beside `value`."""
    rows = concatenate(paths, table.columns, order)
    return rows.assign(number=as_numbers(rows["value"]))
