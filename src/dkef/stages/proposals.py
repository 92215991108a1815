"""log Z of one trained model by every proposal, over a range of sample counts, as a table."""

import argparse
from collections.abc import Sequence
from pathlib import Path

from threadpoolctl import threadpool_limits  # type: ignore[import-untyped]

from dkef.config.schema.metrics import Proposals
from dkef.config.schema.normaliser import Normaliser
from dkef.config.typed import typed
from dkef.core.job import parse_job
from dkef.core.provenance import code_version, config_digest
from dkef.core.tables import write_table
from dkef.data.splits import read_splits
from dkef.models.storage import load_own_model
from dkef.normaliser.proposals.compare import estimates, status_among
from dkef.results.tables import PROPOSALS


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--config", required=True, help="canonical JSON: dataset, model, seed, normaliser, proposals")
    parser.add_argument("--model", type=Path, required=True, help="model file, from the train stage")
    parser.add_argument("--data", type=Path, required=True, help="splits, from the preprocess stage")
    parser.add_argument("--folder", type=Path, required=True, help="where finished parts are kept")
    parser.add_argument("--threads", type=int, default=1, help="changes the time, never the result")
    parser.add_argument("--out", type=Path, required=True, help="CSV file to write")
    args, config = parse_job(parser, arguments)
    cell = {key: config[key] for key in ("dataset", "model", "seed")}
    model = load_own_model(args.model)
    settings = typed(Normaliser, config["normaliser"], lambda _: "--config", "normaliser")
    grid = typed(Proposals, config["proposals"], lambda _: "--config", "proposals")
    splits = read_splits(args.data)
    provenance = {"config_digest": config_digest(args.config), "code_version": code_version()}
    with threadpool_limits(1, user_api="blas"):
        rows = list(estimates(model, splits, grid, settings, tuple(cell.values()), args.folder, args.threads))
    complete = [cell | row | {"status": status_among(row, rows)} | provenance for row in rows]
    write_table(args.out, PROPOSALS.columns, [{key: row[key] for key in PROPOSALS.columns} for row in complete])
