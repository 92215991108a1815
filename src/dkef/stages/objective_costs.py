"""What a training step and a validation of each run cost in processor time, from the notes in its model file."""

import argparse
from collections.abc import Sequence
from pathlib import Path

from dkef.core.tables import write_table
from dkef.models.storage import read_record, read_training
from dkef.results.tables import OBJECTIVE_COSTS


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--models", type=Path, nargs="*", required=True, help="model files, from the train stage")
    parser.add_argument("--out", type=Path, required=True, help="CSV file to write: one row a run")
    args = parser.parse_args(arguments)
    rows = []
    for path in args.models:
        cell, notes = read_training(path).provenance.config, read_record(path).get("notes", {})
        named = {"dataset": cell.dataset, "model": cell.model, "seed": cell.seed}
        measured = {key: notes.get(key) for key in OBJECTIVE_COSTS.columns if key not in (*named, "objective")}
        rows.append(named | {"objective": cell.spec.get("objective", "")} | measured)
    write_table(args.out, OBJECTIVE_COSTS.columns, rows)
