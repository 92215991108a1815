"""What pages of tables show, as values for their templates: one function a page, under the page's name."""

import math
from collections import Counter
from collections.abc import Mapping
from typing import Any

from dkef.core.errors import DkefError, one_line
from dkef.core.files import AGAIN
from dkef.metrics.registry import METRICS
from dkef.report.claims.verdict import FAILED, HELD, NO_CHANCE, NO_TEST, OPEN
from dkef.results.experiment import DatasetEntry
from dkef.results.lookup import Results
from dkef.results.names import model_order
from dkef.results.tables import CLAIMS, REFERENCE_VALUES

SHOWN = [name for name, metric in METRICS.items() if metric.shown]
HEADINGS = {
    "log_likelihood": "log-likelihood", "log_likelihood_bias_bound": "bound on its bias", "fssd2": "FSSD²",
    "fssd_p_value": "p-value of FSSD", "ksd2": "KSD²", "fisher_divergence": "Fisher divergence",
}  # fmt: skip
ARROWS = {True: " ↑", False: " ↓", None: ""}
KINDS = {HELD: "held", FAILED: "failed", OPEN: "open"}  # verdicts, and their colours


def summary(results: Results) -> dict[str, Any]:
    """For each dataset its models, the metrics that any of them has, and all their medians."""
    tables: list[dict[str, Any]] = []
    for entry in results.info.ordered():
        models = model_order(entry.models)
        metrics = [metric for metric in SHOWN if any((entry.name, m, metric) in results.medians for m in models)]
        cells = {
            (model, metric): cell
            for model in models
            for metric in metrics
            if (cell := _cell(results, entry, model, metric))
        }
        headings = [f"{_heading(metric)}{ARROWS[METRICS[metric].more_is_better]}" for metric in metrics]
        runs = {model: _runs(entry, model, cells) for model in models}
        tables.append(
            {"entry": entry, "models": models, "metrics": metrics, "headings": headings, "cells": cells, "runs": runs}
        )
    valued = {cell["median"].valued for table in tables for cell in table["cells"].values()}
    return {"tables": tables, "single": 1 in valued, "several": max(valued, default=0) > 1}


def _runs(entry: DatasetEntry, model: str, cells: Mapping[tuple[str, str], dict[str, Any]]) -> str:
    """How many runs a model has, and of how many where some are not finished."""
    runs = max((cell["median"].runs for (name, _), cell in cells.items() if name == model), default=0)
    planned = f" of {entry.planned(model)}" if runs < entry.planned(model) else ""
    return f"{runs}{planned} run{'s' if planned or runs != 1 else ''}"


def _heading(metric: str) -> str:
    """A metric in words."""
    basic = metric.removesuffix("_no_copies")
    name = HEADINGS.get(basic, basic.replace("_", " "))
    return name if basic == metric else f"{name}, no copies"


def _cell(results: Results, entry: DatasetEntry, model: str, metric: str) -> dict[str, Any] | None:
    """A median with, where one run stands behind it, its standard error, and why other runs have no value."""
    key = (entry.name, model, metric)
    if key not in results.medians:
        return None
    runs = list(results.runs(*key).values())
    return {
        "median": results.medians[key],
        "stderr": runs[0].stderr if len(runs) == 1 else None,
        "reasons": results.reasons(*key),
    }


def claims(results: Results) -> dict[str, Any]:
    """Every statement, those first that runs of this experiment speak to, and how many there are of each verdict.

    Statements of mathematics alone stand beside them; where there are none, nothing of the paper was run.
    """
    rows = results.frame(CLAIMS).to_dict("records")
    counts = Counter(row["verdict"] for row in rows)
    if unknown := sorted(counts.keys() - KINDS.keys()):
        raise DkefError(f"claims.csv has the verdict {one_line(repr(unknown[0]))}, which is none; {AGAIN}")
    by_runs = any(row["test"] not in (NO_TEST, NO_CHANCE) for row in rows)
    judged = [row for row in rows if by_runs and row["test"] != NO_TEST]
    others = [row for row in rows if row not in judged]
    return {"judged": judged, "others": others, "counts": {v: counts[v] for v in KINDS}, "kinds": KINDS}


def reference_values(results: Results) -> dict[str, Any]:
    """Reference values, those that stand beside one of ours apart from the others."""
    rows = results.frame(REFERENCE_VALUES).to_dict("records")
    beside = [row for row in rows if not math.isnan(row["ours"])]
    return {"beside": beside, "others": [row for row in rows if math.isnan(row["ours"])]}
