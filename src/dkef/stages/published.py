"""Stage `published`: every recoverable number of the paper's authors and of others, beside ours.

The paper prints its results as pictures; data/published.csv holds what notebooks, older figures and other papers give,
each with its source and whether it can be compared at all.
"""

import argparse
import math
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pandas as pd

from dkef.config.typed import require
from dkef.core.errors import run_stage
from dkef.core.tables import read_table, write_table
from dkef.report.figures.look import paper_set
from dkef.results.inputs import read_summary

PUBLISHED_COLUMNS = ("source", "place", "comparable", "dataset", "model", "metric", "value", "uncertainty", "note")
COLUMNS = (
    *("dataset", "model", "metric", "published", "uncertainty", "ours", "low", "high", "coverage", "runs"),
    *("untrusted", "difference", "comparable", "source", "place", "note"),
)
COMPARABLE = ("yes", "roughly", "no")


def read_published(path: Path) -> pd.DataFrame:
    """data/published.csv, checked."""
    table = read_table(path, PUBLISHED_COLUMNS, numbers=("value", "uncertainty"))
    for word in table["comparable"]:
        require(word in COMPARABLE, f"{path}: comparable", word, "one of " + ", ".join(COMPARABLE))
    return table


def beside_ours(published: pd.DataFrame, summary: pd.DataFrame) -> Iterator[dict[str, Any]]:
    """A row for each published number and each of our datasets that it speaks of, also where we have no value.

    Ours is the median over runs with its interval; a part of a set stands beside the number for the whole set, and its
    name says that it is a part.
    """
    for _, row in published.iterrows():
        for dataset, ours in _ours(summary, row):
            value = float(ours["median"]) if ours is not None else math.nan
            known = math.isfinite(value)
            yield {
                "dataset": dataset,
                "published": float(row["value"]),
                "uncertainty": None if math.isnan(row["uncertainty"]) else float(row["uncertainty"]),
                "ours": value if known else None,
                "low": _number(ours, "interval_low"),
                "high": _number(ours, "interval_high"),
                "coverage": _number(ours, "interval_coverage"),
                "runs": int(ours["runs_ok"] + ours["runs_untrusted"]) if ours is not None else 0,
                "untrusted": int(ours["runs_untrusted"]) if ours is not None else 0,
                "difference": value - float(row["value"]) if known else None,
            } | {key: row[key] for key in ("model", "metric", "comparable", "source", "place", "note")}


def _ours(summary: pd.DataFrame, row: pd.Series) -> list[tuple[str, pd.Series | None]]:
    """Our rows on the same set, model and metric; the truth's own numbers stand under every model."""
    metric = "true_log_likelihood" if (row["model"], row["metric"]) == ("truth", "log_likelihood") else row["metric"]
    same = summary[summary["metric"] == metric]
    if row["model"] != "truth":
        same = same[same["model"] == row["model"]]
    named = [(name, paper_set(name) or name) for name in dict.fromkeys(same["dataset"])]
    found = [name for name, plain in named if plain == (paper_set(row["dataset"]) or row["dataset"])]
    if not found:
        return [(str(row["dataset"]), None)]
    return [(name, same[same["dataset"] == name].iloc[0]) for name in found]


def _number(row: pd.Series | None, key: str) -> float | None:
    return None if row is None or math.isnan(row[key]) else float(row[key])


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m dkef.stages.published", description=__doc__.splitlines()[0])
    parser.add_argument("--published", type=Path, required=True, help="data/published.csv")
    parser.add_argument("--summary", type=Path, required=True, help="summary.csv of an experiment")
    parser.add_argument("--out", type=Path, required=True, help="CSV file to write")
    args = parser.parse_args()
    write_table(args.out, COLUMNS, beside_ours(read_published(args.published), read_summary(args.summary)))


if __name__ == "__main__":
    run_stage(main)
