"""Metrics of one evaluated model, one row each, for all models by the same locations and kernels."""

import argparse
import logging
from collections.abc import Sequence
from pathlib import Path

from threadpoolctl import threadpool_limits  # type: ignore[import-untyped]

from dkef.config.schema.metrics import Comparison
from dkef.config.typed import typed
from dkef.core.job import parse_job
from dkef.core.provenance import code_version, digest_behind
from dkef.core.tables import write_table
from dkef.data.splits import read_splits
from dkef.metrics.case import Case, read_normaliser
from dkef.metrics.integrals import read_integrals
from dkef.metrics.registry import outcomes
from dkef.metrics.setup import ComparisonSetup
from dkef.models.evaluation import read_evaluation
from dkef.results.tables import METRICS

log = logging.getLogger("dkef.stages.compare")


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--config", required=True, help="canonical JSON: dataset, model, seed, comparison")
    parser.add_argument("--evaluation", type=Path, required=True, help="from the evaluate stage")
    parser.add_argument("--data", type=Path, required=True, help="splits, from the preprocess stage")
    parser.add_argument("--reference", type=Path, nargs="?", help="evaluation of the reference model")
    parser.add_argument("--fixed-q0-reference", type=Path, nargs="?", help="evaluation of the reference of Figure 6")
    parser.add_argument("--log-z", type=Path, nargs="?", help="log_z.json, for an unnormalised model")
    parser.add_argument("--quadrature", type=Path, nargs="?", help="from the grid stage, in one and two dimensions")
    parser.add_argument("--threads", type=int, default=1, help="changes the time, not the numbers")
    parser.add_argument("--out", type=Path, required=True, help="CSV file to write")
    args, config = parse_job(parser, arguments)
    dataset, name, seed = str(config["dataset"]), str(config["model"]), int(config["seed"])
    settings = typed(Comparison, config["comparison"], lambda key: "--config", "comparison")
    splits = read_splits(args.data)
    model = read_evaluation(args.evaluation, splits.test.shape)
    given = (args.reference, args.fixed_q0_reference)
    reference, fixed_q0 = (read_evaluation(path, splits.test.shape) if path else None for path in given)
    normaliser = read_normaliser(args.log_z) if args.log_z else None
    integrals = read_integrals(args.quadrature) if args.quadrature else None
    # Products round differently on other numbers of threads; the table must not know the machine.
    with threadpool_limits(1, user_api="blas"):
        setup = ComparisonSetup.draw(splits.test, dataset, seed, settings)
        found = outcomes(Case(
            name, model, reference, setup, settings, splits.whitening.log_det, normaliser, args.threads,
            fixed_q0_reference=fixed_q0, copies=splits.test_copies, integrals=integrals,
        ))  # fmt: skip
    for doubted in (outcome for outcome in found if outcome.status != "ok"):
        log.warning("%s, %s, seed %d: %s %s", dataset, name, seed, doubted.metric, doubted.status)
    records = (evaluated.record if evaluated else {} for evaluated in (model, reference, fixed_q0))
    cell = {"dataset": dataset, "model": name, "seed": seed}
    digest = digest_behind(config, *records, vars(normaliser) if normaliser else {})
    origin = {"config_digest": digest, "code_version": code_version()}
    write_table(args.out, METRICS.columns, (cell | vars(outcome) | origin for outcome in found))
