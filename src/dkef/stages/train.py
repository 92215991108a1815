"""Fit one model to one dataset under one seed.

Reads data/processed/<dataset>/seed<k>.h5; writes model.h5 and trace.csv. Killed and started again, it continues from
its last checkpoint and ends with the same numbers.
"""

import argparse
import logging
import math
import time
from collections.abc import Sequence
from pathlib import Path

from dkef.config.typed import instantiate
from dkef.core.files import remove_abandoned
from dkef.core.job import parse_job
from dkef.core.provenance import config_digest
from dkef.core.tables import write_table
from dkef.data.splits import read_splits
from dkef.models.protocol import FitContext, fit_model
from dkef.models.storage import write_model
from dkef.training.checkpoint import checkpoint_identity

log = logging.getLogger("dkef.stages.train")


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "--config", required=True, help="canonical JSON: dataset, model, of (the model it varies), seed, spec, threads"
    )
    parser.add_argument("--data", type=Path, required=True, help="splits, from the preprocess stage")
    parser.add_argument("--out", type=Path, required=True, help="model file to write")
    parser.add_argument("--trace", type=Path, required=True, help="CSV to write, one row an iteration")
    args, config = parse_job(parser, arguments)
    splits = read_splits(args.data)
    digest = config_digest(args.config)
    spec, cell = instantiate(config["spec"]), (config["dataset"], config["of"], config["seed"])
    # The digest keeps a checkpoint of another configuration, other data or other code from being continued.
    identity = config_digest(checkpoint_identity(spec, cell, splits.train, splits.valid))
    checkpoint = args.out.with_name(f"checkpoint-{identity}.h5")
    for other in sorted(set(args.out.parent.glob("checkpoint-*")) - set(args.out.parent.glob(f"{checkpoint.stem}*"))):
        log.info("%s is of other settings, data or code and is not continued", other)
    log.info("%s on %s, seed %d: %d rows of %d columns", config["model"], *cell[::2], *splits.train.shape)
    # A variant draws what the model it varies draws, so that an ablation compares runs and not their luck.
    context = FitContext(*cell, checkpoint, config["threads"], log)
    start = time.monotonic()
    fit = fit_model(spec, splits.train, splits.valid, context)
    log.info("%s after %.1f s: status %s, %s", fit.stopped, time.monotonic() - start, fit.status, fit.notes)
    known = ({key: None if math.isnan(value) else value for key, value in record.items()} for record in fit.trace)
    write_table(args.trace, list(fit.trace[0]) if fit.trace else [], known)
    write_model(args.out, fit, {"config": config, "config_digest": digest, "data_digest": splits.digest})
    for stale in args.out.parent.glob("checkpoint-*"):
        stale.unlink()
    remove_abandoned(args.out.parent, "checkpoint-*")
