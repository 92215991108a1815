"""What pages of tables show, as values for their templates: one function a page, under the page's name."""

import math
from collections import Counter
from typing import Any

from dkef.core.errors import DkefError, one_line
from dkef.core.files import AGAIN
from dkef.metrics.registry import METRICS
from dkef.report.claims.verdict import FAILED, HELD, OPEN
from dkef.results.lookup import Results
from dkef.results.names import model_order
from dkef.results.tables import CLAIMS, REFERENCE_VALUES

SHOWN = [name for name, metric in METRICS.items() if metric.shown]
KINDS = {HELD: "held", FAILED: "failed", OPEN: "open"}  # verdicts, and their colours


def summary(results: Results) -> dict[str, Any]:
    """For each dataset its models, the metrics that any of them has, and all their medians."""
    tables = []
    for entry in results.info.ordered():
        models = model_order(entry.models)
        found = {key[1:]: median for key, median in results.medians.items() if key[0] == entry.name}
        metrics = [metric for metric in SHOWN if any((model, metric) in found for model in models)]
        tables.append({"entry": entry, "models": models, "metrics": metrics, "medians": found})
    return {"tables": tables}


def claims(results: Results) -> dict[str, Any]:
    """Every statement, and how many there are of each verdict."""
    rows = results.frame(CLAIMS).to_dict("records")
    counts = Counter(row["verdict"] for row in rows)
    if unknown := sorted(counts.keys() - KINDS.keys()):
        raise DkefError(f"claims.csv has the verdict {one_line(repr(unknown[0]))}, which is none; {AGAIN}")
    return {"claims": rows, "counts": {verdict: counts[verdict] for verdict in KINDS}, "kinds": KINDS}


def reference_values(results: Results) -> dict[str, Any]:
    """Reference values beside ours; those without ours at the end."""
    rows = results.frame(REFERENCE_VALUES).to_dict("records")
    return {"rows": sorted(rows, key=lambda row: math.isnan(row["ours"]))}
