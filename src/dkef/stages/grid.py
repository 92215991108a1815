"""One trained model of a one- or two-dimensional set on a regular grid, for the figures to draw."""

import argparse
import logging
from collections.abc import Sequence
from pathlib import Path

from dkef.config.typed import instantiate
from dkef.core.errors import DkefError
from dkef.core.job import parse_job
from dkef.core.provenance import code_version
from dkef.data.splits import read_splits
from dkef.metrics.grid import LAYOUTS, describe, write_grid
from dkef.metrics.integrals import measure, write_integrals
from dkef.models.storage import load_own_model, read_log_z, read_record

log = logging.getLogger("dkef.stages.grid")


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--config", required=True, help="canonical JSON: dataset, model, seed, source, threads")
    parser.add_argument("--model", type=Path, required=True, help="model file, from the train stage")
    parser.add_argument("--data", type=Path, required=True, help="splits, from the preprocess stage")
    parser.add_argument(
        "--log-z", type=Path, nargs="?", help="log_z.json of the normalise stage, for an unnormalised model"
    )
    parser.add_argument("--out", type=Path, required=True, help="HDF5 file to write")
    parser.add_argument("--quadrature", type=Path, required=True, help="JSON record of integrals to write")
    args, config = parse_job(parser, arguments)
    record, model = read_record(args.model), load_own_model(args.model)
    if model.dimension not in LAYOUTS:
        raise DkefError(f"{args.model}: a grid needs 1 or 2 dimensions, this model has {model.dimension}")
    log_z = read_log_z(args.log_z) if args.log_z else None
    truth = instantiate(config["source"]).true_density()
    integrals = measure(model, truth)
    arrays, facts = describe(model, truth, log_z, read_splits(args.data), integrals)
    facts |= {key: config[key] for key in ("dataset", "model", "seed")}
    facts |= {"status": record["status"], "code_version": code_version()}
    log.info("%s", {key: facts[key] for key in ("log_z", "log_z_from", "grid_log_mass", "masses")})
    write_grid(args.out, arrays, facts)
    write_integrals(args.quadrature, integrals)
