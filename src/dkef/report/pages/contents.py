"""What each page shows, as values for its template: one function a page, under the page's name."""

import json
import math
from collections import Counter
from typing import Any

from dkef.core.errors import DkefError, one_line
from dkef.core.files import AGAIN
from dkef.core.provenance import canonical
from dkef.data.card import card
from dkef.metrics.registry import METRICS
from dkef.models.storage import read_training
from dkef.report.claims.verdict import FAILED, HELD, OPEN
from dkef.results.lookup import Results
from dkef.results.names import model_order
from dkef.results.tables import CLAIMS, DEVIATIONS, FIDELITY, MODELS, REFERENCE_VALUES, TRAINING_COSTS

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


def cards(results: Results) -> dict[str, Any]:
    """A card for each dataset, of its first seed."""
    return {"cards": [card(splits) for splits in results.splits.values()]}


def deviations(results: Results) -> dict[str, Any]:
    """The rows, and for each key of `fidelity` its value under each choice, the paper's first."""
    choices = dict(sorted(results.by_cell(FIDELITY).items(), key=lambda choice: choice[0] != "paper"))
    rows = results.frame(DEVIATIONS).to_dict("records")
    for row in rows:
        group, _, key = row["key"].partition(".")
        named = choices if group == "fidelity" else {}
        row["values"] = [f"{name}: {of_choice[key]}" for name, of_choice in named.items() if key in of_choice]
    return {"rows": rows}


def provenance(results: Results) -> dict[str, Any]:
    """All training runs, the sets of library versions with their counts, and each model's configurations."""
    costs = results.by_cell(TRAINING_COSTS)
    runs = []
    versions: Counter[str] = Counter()
    specs: dict[tuple[str, str], list[str]] = {}  # datasets on which a model was run with a configuration
    for path in results.tables.get(MODELS.name, []):
        trained = read_training(path)
        cell = trained.provenance.config
        versions[", ".join(f"{name} {version}" for name, version in sorted(trained.provenance.libraries.items()))] += 1
        specs.setdefault((cell.model, canonical(cell.spec)), []).append(cell.dataset)
        runs.append({"trained": trained, "cell": cell, "cost": costs.get((cell.dataset, cell.model, cell.seed), {})})
    configurations = [
        {"model": model, "datasets": list(dict.fromkeys(datasets)), "spec": json.loads(spec)}
        for (model, spec), datasets in specs.items()
    ]
    return {"runs": runs, "versions": versions, "configurations": configurations}
