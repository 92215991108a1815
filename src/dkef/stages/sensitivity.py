"""FSSD and KSD of all models of a (dataset, seed), over bandwidths and numbers of locations."""

import argparse
import logging
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from threadpoolctl import threadpool_limits  # type: ignore[import-untyped]

from dkef.config.schema.metrics import Comparison, Sensitivity
from dkef.config.typed import typed
from dkef.core.errors import ConfigError
from dkef.core.job import parse_job
from dkef.core.provenance import code_version, digest_behind
from dkef.core.tables import write_table
from dkef.data.splits import read_splits
from dkef.metrics.sensitivity import Sweep, measure
from dkef.models.evaluation import read_evaluation
from dkef.results.tables import SENSITIVITY

log = logging.getLogger("dkef.stages.sensitivity")


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "--config", required=True, help="canonical JSON: dataset, seed, models, comparison, sensitivity"
    )
    parser.add_argument("--evaluations", type=Path, nargs="+", required=True, help="one for each of the models")
    parser.add_argument("--data", type=Path, required=True, help="splits, from the preprocess stage")
    parser.add_argument("--threads", type=int, default=1, help="changes the time, not the numbers")
    parser.add_argument("--out", type=Path, required=True, help="CSV file to write")
    args, config = parse_job(parser, arguments)
    dataset, seed, models = config["dataset"], int(config["seed"]), config["models"]
    if len(models) != len(args.evaluations):
        raise ConfigError(f"--config names {len(models)} models for {len(args.evaluations)} files in --evaluations")
    settings = typed(Comparison, config["comparison"], lambda key: "--config", "comparison")
    sweep = Sweep.around(settings, typed(Sensitivity, config["sensitivity"], lambda key: "--config", "sensitivity"))
    x = read_splits(args.data).test
    setup = sweep.setup(x, dataset, seed, settings)
    table: list[dict[str, Any]] = []
    for name, path in zip(models, args.evaluations, strict=True):
        model = read_evaluation(path, x.shape)
        with threadpool_limits(1, user_api="blas"):
            rows = list(measure(model, setup, sweep, args.threads))
        log.info("%s, %s, seed %d: %s", dataset, name, seed, rows[0]["status"])
        cell = {"dataset": dataset, "model": name, "seed": seed}
        origin = {"config_digest": digest_behind(config, model.record), "code_version": code_version()}
        table += [cell | row | origin for row in rows]
    write_table(args.out, SENSITIVITY.columns, table)
