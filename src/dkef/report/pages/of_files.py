"""What pages of data, settings and models show, as `of_tables`, apart from it: no metric stands behind them."""

import json
from collections import Counter
from typing import Any

from dkef.core.provenance import canonical
from dkef.data.card import card
from dkef.models.storage import read_training
from dkef.results.lookup import Results
from dkef.results.tables import DEVIATIONS, FIDELITY, MODELS, TRAINING_COSTS


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
