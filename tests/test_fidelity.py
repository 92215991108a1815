"""config/fidelity against the paper's text: a key that leaves it needs a row of the deviations table."""

import csv
from pathlib import Path
from typing import Any

import pytest
import yaml

from dkef.config.compose import choices, compose_cell
from dkef.config.plan import Plan
from dkef.config.typed import plain

ROOT = Path(__file__).parents[1]
PREFIX = "fidelity."


def composed(choice: str) -> dict[str, Any]:
    return plain(compose_cell((f"fidelity={choice}",)).fidelity)


def table() -> dict[str, dict[str, str]]:
    """Rows of the deviations table about keys of `fidelity`, by key."""
    with open(ROOT / "workflow" / "report" / "deviations.csv", encoding="utf-8") as file:
        rows = [row for row in csv.DictReader(file) if row["key"].startswith(PREFIX)]
    found = {row["key"].removeprefix(PREFIX): row for row in rows}
    assert len(found) == len(rows)
    return found


def test_every_key_has_a_row_and_every_row_a_key() -> None:
    assert set(table()) == set(composed("paper"))


def test_fidelity_paper_is_the_text_wherever_it_speaks() -> None:
    values = composed("paper")
    spoken = {key: yaml.safe_load(row["text"]) for key, row in table().items() if row["text"]}
    assert {key: values[key] for key in spoken} == spoken
    assert len(spoken) >= 12
    # where the table says that the paper is silent, it must not claim a value of the text
    for key, row in table().items():
        assert bool(row["text"]) != row["paper"].startswith("not "), key


# The sentences of the paper behind the values, read again here so that table and file cannot drift together.
SENTENCES = {
    "dequantise_gaps": 1.0,  # "uniform noise with support equal to the median distances between two adjacent values"
    "width_parametrisation": "squared",  # eq. (5)
    "benchmark_kernel_scales": [1.0, 3.3, 10.0],  # "length scales sigma_r were initialized to 1.0, 3.3 and 10.0"
    "validation_fit_rows": 0,  # "while J(alpha(lambda, k_w, z, D1), D2) still improving": all of D1
    "phase2_stopping": "improving",
    "phase2_parameters": "lambda",  # "Take SGD steps in J for lambda only"
    "phase2_batch_rows": 100,  # |Dt| = |Dv| = 100
    "made_learning_rate": 1e-3,  # "Learning rate was 10^-3"
    "flow_learning_rate": 1e-3,
    "baseline_patience_unit": "minibatches",  # "did not improve for 200 minibatches"
    "hepmass_features": "maf",  # "we removed ill-conditioned dimensions as did" MAF
    "hepmass_split": "source",  # "we used the same splitting as done in" MAF
    "top_activation": "softplus",  # "A softplus nonlinearity"
    "kernel_weight_decay": 0.0,  # no such term in Algorithm 1
}


def test_the_table_states_what_the_paper_says() -> None:
    assert {key: yaml.safe_load(row["text"]) for key, row in table().items() if row["text"]} == SENTENCES


def test_the_paper_experiment_leaves_the_text_only_where_the_table_says_so() -> None:
    plan, rows, text = Plan("paper"), table(), composed("paper")
    departures = {key: yaml.safe_load(row["departure"]) for key, row in rows.items() if row["departure"]}
    assert departures == {"validation_fit_rows": 1000}  # the one exception that cost forces
    for dataset, model in {(dataset, model) for dataset, model, _ in plan.cells}:
        expected = text | departures
        if model.endswith("_recommended"):
            expected = composed("recommended_synthetic")
        assert plain(plan.cell(dataset, model).fidelity) == expected, (dataset, model)
    assert all(rows[key]["why"] for key in departures)


@pytest.mark.parametrize("choice", ["recommended", "recommended_synthetic"])
def test_recommended_departs_from_the_text_only_with_a_reason(choice: str) -> None:
    paper, ours, rows = composed("paper"), composed(choice), table()
    departs = {key for key in paper if ours[key] != paper[key]}
    assert departs == {key for key, row in rows.items() if row["recommended"]} - (
        {"phase2_stopping"} if choice == "recommended" else set()
    )


def test_the_reason_for_folds_says_what_speaks_against_them() -> None:
    reason = table()["phase2_stopping"]["recommended"]
    for known in (
        "test Fisher divergence of two seeds",
        "another learning rate",
        "Square and Cosine",
        "Funnel and MoR",
    ):
        assert known in reason


def test_no_document_says_that_the_paper_fidelity_leaves_the_text() -> None:
    wrong = (
        "One default leaves the text",
        "the one place where `fidelity=paper` leaves the text",
        "our default on synthetic sets",
        "kef_phase2_stopping",
        "HepMass follows the authors' code",
    )
    folders = [ROOT / name for name in ("config", "data", "workflow", "results", "src")]
    files = [
        ROOT / "README.md",
        *(p for f in folders for s in ("md", "yaml", "csv", "rst", "py") for p in f.rglob(f"*.{s}")),
    ]
    found = [(str(p), text) for p in files for text in wrong if text in p.read_text(encoding="utf-8")]
    assert found == []


def test_the_choices_are_these() -> None:
    assert set(choices("fidelity")) == {"paper", "code", "recommended", "recommended_synthetic"}
