"""Log density, score and curvature of one trained model at the clean test points.

Where the data's own distribution is known, its log density and score stand beside the model's.
"""

import argparse
import logging
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from dkef.config.typed import instantiate
from dkef.core.job import parse_job
from dkef.core.provenance import code_version
from dkef.data.splits import read_splits
from dkef.models.evaluation import write_evaluation
from dkef.models.storage import load_own_model, read_training

log = logging.getLogger("dkef.stages.evaluate")


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "--config", required=True, help="canonical JSON: dataset, model, seed, batch_rows, threads, source"
    )
    parser.add_argument("--model", type=Path, required=True, help="model file, from the train stage")
    parser.add_argument("--data", type=Path, required=True, help="splits, from the preprocess stage")
    parser.add_argument("--out", type=Path, required=True, help="HDF5 file to write")
    args, config = parse_job(parser, arguments)
    trained, model = read_training(args.model), load_own_model(args.model)
    splits = read_splits(args.data)
    x = splits.test
    at_test = model.evaluate(x, config["batch_rows"])
    arrays = {"log_density": at_test.log_density, "score": at_test.score, "curvature": at_test.curvature}
    truth = instantiate(config["source"]).true_density()
    if truth is not None:
        truth = truth.image(splits.whitening.mean, splits.whitening.W)  # that of the rows as the model saw them
        arrays |= {"true_log_density": truth.log_density(x), "true_score": truth.score(x)}
    for name, array in arrays.items():
        if bad := int(np.size(array) - np.isfinite(array).sum()):
            log.warning("%s: %d of %d values are not finite", name, bad, np.size(array))
    record = {
        "status": trained.status,
        "stopped": trained.stopped,
        "normalised": model.normalised,
        "log_z_status": model.log_z_status,
        "config_digest": trained.provenance.config_digest,
        "code_version": code_version(),
    }
    write_evaluation(args.out, arrays, record)
