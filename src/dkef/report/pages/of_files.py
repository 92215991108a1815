"""What pages of data, settings and models show, as `of_tables`, apart from it: no metric stands behind them."""

import json
from collections import Counter
from typing import Any

import numpy as np
import pandas as pd

from dkef.core.provenance import canonical
from dkef.data.copies import count_copies
from dkef.data.splits import Splits
from dkef.models.storage import read_training
from dkef.results.lookup import Results
from dkef.results.tables import CELLS_TABLE, DEVIATIONS, FIDELITY, MODELS, TRAINING_COSTS

CONDITION_ROWS = 10_000


def cards(results: Results) -> dict[str, Any]:
    """The splits of each dataset, of its first seed, and what else a reader should know of them."""
    return {
        "all_splits": list(results.splits.values()),
        "condition_number": condition_number,
        "count_copies": count_copies,
    }


def condition_number(splits: Splits) -> float:
    """Largest over smallest eigenvalue of the raw covariance, from singular values: it may be beyond 1e16."""
    x = splits.whitening.invert(splits.train[:CONDITION_ROWS])
    s = np.linalg.svd(x - x.mean(axis=0), compute_uv=False)
    return float((s[0] / s[-1]) ** 2)


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
    """All training runs, with what code on which machine, and the sets of library versions with their counts.

    From the models themselves, with each model's configurations; from a bundle, which has no models, by its cells.
    """
    cells = results.frame(CELLS_TABLE)
    return _of_models(results) if cells.empty else _of_bundle(cells)


def _of_models(results: Results) -> dict[str, Any]:
    costs = results.by_cell(TRAINING_COSTS)
    runs = []
    versions: Counter[str] = Counter()
    specs: dict[tuple[str, str], list[str]] = {}  # datasets on which a model was run with a configuration
    for path in results.tables.get(MODELS.name, []):
        trained = read_training(path)
        made, cell = trained.provenance, trained.provenance.config
        versions[", ".join(f"{name} {version}" for name, version in sorted(made.libraries.items()))] += 1
        specs.setdefault((cell.model, canonical(cell.spec)), []).append(cell.dataset)
        cost = costs.get((cell.dataset, cell.model, cell.seed), {})
        runs.append({
            "dataset": cell.dataset, "model": cell.model, "seed": cell.seed, "status": trained.status,
            "ended": trained.stopped, "seconds": cost.get("s"), "memory_MB": cost.get("max_rss"),
            "code": made.code_version, "configuration": made.config_digest,
        })  # fmt: skip
    configurations = [
        {"model": model, "datasets": list(dict.fromkeys(datasets)), "spec": json.loads(spec)}
        for (model, spec), datasets in specs.items()
    ]
    return {"runs": runs, "versions": versions, "configurations": configurations}


def _of_bundle(cells: pd.DataFrame) -> dict[str, Any]:
    named = {"stopped": "ended", "train_seconds": "seconds", "code_version": "code", "config_digest": "configuration"}
    machines = [f"{row.libraries}; {row.processor}" for row in cells.itertuples()]
    return {
        "runs": cells.rename(columns=named).assign(memory_MB=None).to_dict("records"),
        "versions": Counter(machines),
        "configurations": [],
    }
