"""Reference values: every recoverable number of the paper's authors and of others, beside ours.

The paper prints its results as pictures; data/reference_values.csv holds what notebooks, older figures and other
papers give, each with its source and whether it can be compared at all.
"""

import math
from collections.abc import Iterator
from typing import Any

from dkef.config.typed import require
from dkef.results.lookup import Median, Results
from dkef.results.names import paper_set
from dkef.results.tables import KNOWN_VALUES

COMPARABLE = ("yes", "roughly", "no")


def beside_ours(results: Results) -> Iterator[dict[str, Any]]:
    """A row for each reference value and each of our datasets that it speaks of, also where we have no value.

    Ours is the median over runs with its interval; a part of a set stands beside the number for the whole set, and its
    name says that it is a part.
    """
    for row in results.frame(KNOWN_VALUES).to_dict("records"):
        require(
            row["comparable"] in COMPARABLE,
            f"{KNOWN_VALUES.path}: comparable",
            row["comparable"],
            "one of " + ", ".join(COMPARABLE),
        )
        for dataset, ours in _ours(results, row).items():
            yield {
                "dataset": dataset,
                "reference_value": row["value"],
                "uncertainty": _known(row["uncertainty"]),
                "ours": _known(ours.value),
                "low": _known(ours.low),
                "high": _known(ours.high),
                "coverage": _known(ours.coverage),
                "runs": ours.valued,
                "untrusted": ours.untrusted,
                "difference": _known(ours.value - row["value"]),
            } | {key: row[key] for key in ("model", "metric", "comparable", "source", "place", "note")}


def _ours(results: Results, row: dict[str, Any]) -> dict[str, Median]:
    """Our medians on the same set, model and metric, by dataset; the truth's own numbers stand under every model."""
    of_truth = (row["model"], row["metric"]) == ("truth", "log_likelihood")
    wanted = "true_log_likelihood" if of_truth else row["metric"]
    same_set = paper_set(row["dataset"]) or row["dataset"]
    found: dict[str, Median] = {}
    for (dataset, model, metric), median in results.medians.items():
        same = metric == wanted and row["model"] in (model, "truth")
        if same and (paper_set(dataset) or dataset) == same_set:
            found.setdefault(dataset, median)
    return found or {row["dataset"]: Median()}


def _known(value: float) -> float | None:
    return value if math.isfinite(value) else None
