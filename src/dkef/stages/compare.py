"""Stage `compare`: metrics of one evaluated model, one row each, for all models by the same locations and kernels."""

import argparse
import json
import logging
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from threadpoolctl import threadpool_limits  # type: ignore[import-untyped]

from dkef.config.schema.metrics import Comparison
from dkef.config.typed import typed
from dkef.core.errors import run_stage
from dkef.core.provenance import canonical, code_version, config_digest
from dkef.core.tables import write_table
from dkef.data.splits import read_splits
from dkef.metrics.judge import Judge, Yardstick, read_normaliser
from dkef.metrics.pointwise import COLUMNS
from dkef.models.evaluation import read_evaluation

log = logging.getLogger("dkef.stages.compare")


def digest_behind(config: dict[str, Any], *records: Mapping[str, Any]) -> str:
    """Digest of this stage's configuration and of those behind its input files: any change upstream shows."""
    return config_digest(canonical([config, *(record.get("config_digest") for record in records)]))


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m dkef.stages.compare", description=__doc__.splitlines()[0])
    parser.add_argument("--config", required=True, help="canonical JSON: dataset, model, seed, comparison")
    parser.add_argument("--evaluation", type=Path, required=True, help="from the evaluate stage")
    parser.add_argument("--data", type=Path, required=True, help="splits, from the preprocess stage")
    parser.add_argument("--reference", type=Path, nargs="?", help="evaluation of the reference model")
    parser.add_argument("--log-z", type=Path, nargs="?", help="log_z.json, for an unnormalised model")
    parser.add_argument("--threads", type=int, default=1, help="changes the time, not the numbers")
    parser.add_argument("--out", type=Path, required=True, help="CSV file to write")
    return parser.parse_args()


def main() -> None:
    args = arguments()
    config = json.loads(args.config)
    dataset, name, seed = str(config["dataset"]), str(config["model"]), int(config["seed"])
    settings = typed(Comparison, config["comparison"], lambda key: "--config", "comparison")
    splits = read_splits(args.data)
    x, log_det = splits.test, splits.whitening.log_det
    model = read_evaluation(args.evaluation, x.shape)
    reference = read_evaluation(args.reference, x.shape) if args.reference else None
    normaliser = read_normaliser(args.log_z) if args.log_z else None
    # Products round differently on other numbers of threads; the table must not know the machine.
    with threadpool_limits(1, user_api="blas"):
        yardstick = Yardstick.draw(x, dataset, seed, settings)
        judge = Judge(name, model, reference, yardstick, settings, log_det, normaliser, args.threads)
        outcomes = judge.outcomes()
    for outcome in outcomes:
        if outcome.status != "ok":
            log.warning("%s, %s, seed %d: %s %s", dataset, name, seed, outcome.metric, outcome.status)
    inputs = [model.record, reference.record if reference else {}, vars(normaliser) if normaliser else {}]
    cell = {"dataset": dataset, "model": name, "seed": seed}
    origin = {"config_digest": digest_behind(config, *inputs), "code_version": code_version()}
    write_table(args.out, COLUMNS, (cell | vars(outcome) | origin for outcome in outcomes))


if __name__ == "__main__":
    run_stage(main)
