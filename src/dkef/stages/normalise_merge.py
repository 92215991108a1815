"""log Z of one unnormalised model and its bias bound, from finished chunks."""

import argparse
from collections.abc import Sequence
from pathlib import Path

from dkef.core.provenance import config_digest
from dkef.normaliser.run import Job, write_log_z


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--config", required=True, help="canonical JSON: dataset, model, seed, normaliser")
    parser.add_argument("--model", type=Path, required=True, help="model file, from the train stage")
    parser.add_argument("--pilot", type=Path, required=True, help="pilot.json")
    parser.add_argument("--proposal", type=Path, required=True, help="from the pilot")
    parser.add_argument("--variance", type=Path, nargs="+", required=True, help="chunks for the variance of the bound")
    parser.add_argument("--bound-z", type=Path, nargs="+", required=True, help="chunks for the Z of the bound")
    parser.add_argument("--z", type=Path, nargs="+", required=True, help="chunks for the log Z that is reported")
    parser.add_argument("--out", type=Path, required=True, help="log_z.json to write")
    args = parser.parse_args(arguments)
    run = Job(args.config, args.model, threads=1).chunks(args.proposal)
    record = run.merge(args.pilot, {"variance": args.variance, "bound_z": args.bound_z, "z": args.z})
    write_log_z(args.out, record | {"config_digest": config_digest(args.config)})
