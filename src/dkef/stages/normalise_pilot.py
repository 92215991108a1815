"""The proposal for one unnormalised model, and s and rho of the bias bound from two samples of their own."""

import argparse
from collections.abc import Sequence
from pathlib import Path

from dkef.normaliser.run import Job


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--config", required=True, help="canonical JSON: dataset, model, seed, normaliser")
    parser.add_argument("--model", type=Path, required=True, help="model file, from the train stage")
    parser.add_argument("--data", type=Path, nargs="?", help="splits; all proposals but q0 need the training rows")
    parser.add_argument("--threads", type=int, default=1, help="changes the time, never the result (default: 1)")
    parser.add_argument("--proposal", type=Path, required=True, help="HDF5 file to write: what chunks are drawn from")
    parser.add_argument("--out", type=Path, required=True, help="JSON file to write")
    args = parser.parse_args(arguments)
    job = Job(args.config, args.model, args.threads)
    job.fit_proposal(args.proposal, args.data)
    job.chunks(args.proposal).keep_pilot(args.out)
