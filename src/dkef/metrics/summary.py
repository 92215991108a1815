"""Medians over seeds, and paired tests against the reference model.

Intervals are order statistics around the median, tests are exact signed-rank tests over seeds (same split, same
locations). Both treat seeds as independent, although their splits draw from the same rows.
"""

from collections.abc import Iterator, Mapping
from typing import Any

import pandas as pd

from dkef.core.arrays import Array
from dkef.metrics.medians import median_interval, signed_rank_p_value
from dkef.metrics.registry import METRICS

OUTCOMES = ("ok", "untrusted", "diverged", "invalid", "undefined")
INTERVAL = ("interval_low", "interval_high", "interval_coverage")
PAIRED = [name for name, metric in METRICS.items() if metric.paired and metric.more_is_better is not None]
# With fewer differences no outcome has a p-value below 0.05: the smallest of n is 2^(1 - n).
FEWEST_PAIRS = 6


def summary_rows(table: pd.DataFrame) -> Iterator[dict[str, Any]]:
    """One row for each (dataset, model, metric): the median over the runs that have a value, and how all runs ended.

    Untrusted values take part, ok and untrusted ones together stand behind the median; the others have no value.
    """
    for key, runs in table.groupby(["dataset", "model", "metric"], sort=False):
        outcomes = runs["status"].str.partition(":")[0]
        counts = {f"runs_{outcome}": int((outcomes == outcome).sum()) for outcome in OUTCOMES}
        values = runs["number"].dropna().to_numpy()
        names = dict(zip(("dataset", "model", "metric"), key, strict=True))
        yield names | interval_cells("median", values) | {"runs": len(runs)} | counts


def paired_rows(table: pd.DataFrame, references: Mapping[str, str | None]) -> Iterator[dict[str, Any]]:
    """One row for each (dataset, metric, model): the model minus the reference, seed by seed."""
    for (dataset, metric), rows in table[table["metric"].isin(PAIRED)].groupby(["dataset", "metric"], sort=False):
        reference = references.get(dataset)
        # pivot, unlike pivot_table, refuses to average.
        values = rows.pivot(index="seed", columns="model", values="number")  # noqa: PD010
        statuses = rows.pivot(index="seed", columns="model", values="status")  # noqa: PD010
        doubts = statuses.apply(lambda column: column.str.startswith("untrusted").eq(True))
        if reference not in values:
            continue
        for model in values.columns.drop(reference):
            differences = (values[model] - values[reference]).dropna()
            names = {"dataset": dataset, "metric": metric, "model": model, "reference": reference}
            yield names | {
                "pairs": len(differences),
                "seeds_without_pair": len(values) - len(differences),
                "pairs_untrusted": int((doubts[model] | doubts[reference])[differences.index].sum()),
                **paired_test(differences.to_numpy(), more_is_better=bool(METRICS[metric].more_is_better)),
            }


def paired_test(differences: Array, more_is_better: bool) -> dict[str, Any]:
    """Median of the differences [n] of a model from the reference, its interval, and the signed-rank p-value.

    As in Wilcoxon's own test, differences of exactly zero say nothing about the sign and are left out of the p-value.
    """
    cells = interval_cells("median_difference", differences)
    median = cells["median_difference"]
    moved = differences[differences != 0]
    enough = len(moved) >= FEWEST_PAIRS
    return cells | {
        "p_value": signed_rank_p_value(moved) if enough else None,
        "better": ("model" if (median > 0) == more_is_better else "reference") if median else None,
        "status": "ok" if enough else f"undefined: {len(moved)} seeds differ, p below 0.05 needs {FEWEST_PAIRS}",
    }


def interval_cells(name: str, values: Array) -> dict[str, float | None]:
    """The cells of a median, under the given name, and its interval."""
    found = median_interval(values)
    cells = (found.median, found.low, found.high, found.coverage)
    return dict(zip((name, *INTERVAL), cells, strict=True))
