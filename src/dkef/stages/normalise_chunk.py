"""Moments of the importance weights of one unnormalised model over one numbered chunk of samples."""

import argparse
from collections.abc import Sequence
from pathlib import Path

from dkef.normaliser.run import Job
from dkef.normaliser.weights import LONG_STAGES


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--config", required=True, help="canonical JSON: dataset, model, seed, normaliser")
    parser.add_argument("--model", type=Path, required=True, help="model file, from the train stage")
    parser.add_argument("--proposal", type=Path, required=True, help="from the pilot")
    parser.add_argument("--stage", choices=LONG_STAGES, required=True, help="which of the disjoint streams")
    parser.add_argument("--chunk", type=int, required=True, help="number of the chunk, from 0")
    parser.add_argument("--threads", type=int, default=1, help="changes the time, never the result (default: 1)")
    parser.add_argument("--out", type=Path, required=True, help="JSON file to write")
    args = parser.parse_args(arguments)
    run = Job(args.config, args.model, args.threads).chunks(args.proposal)
    run.keep_chunk(args.out, args.stage, args.chunk)
