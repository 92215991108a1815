"""log Z of one unnormalised model file by hand, with its bias bounded.

    python -m dkef normalise --model results/.../model.h5 --samples 1e9 --threads 2
    python -m dkef normalise --model results/.../model.h5 --data data/processed/.../seed0.h5 \\
        --proposal mixture --samples 1e6 --threads 2

Finished parts are kept beside the model; a run that was stopped goes on where it was and ends with the same numbers.
"""

import argparse
from collections.abc import Sequence
from pathlib import Path

from dkef.config.schema.normaliser import Normaliser
from dkef.core.errors import DkefError
from dkef.models.storage import load_own_model
from dkef.normaliser.integrand import integrand_of
from dkef.normaliser.run import estimate_in, training_rows, write_log_z


def count(text: str) -> int:
    """A whole number, written as 1000000 or 1e6."""
    number = float(text)
    if number < 1 or number != int(number):
        raise argparse.ArgumentTypeError(f"{text} is not a whole number of at least 1")
    return int(number)


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model", type=Path, required=True, help="model file, from the train stage")
    parser.add_argument("--data", type=Path, help="splits; all proposals but q0 need the training rows")
    kinds = ("q0", "mixture", "annealed", "cheapest")
    parser.add_argument("--proposal", choices=kinds, default="q0", help="(default: q0); cheapest needs a tolerance")
    parser.add_argument("--percentile", type=float, default=40.0, help="of the weights, for s of the bound")
    parser.add_argument("--samples", type=count, default=10**9, help="behind the reported log Z (default: 1e9)")
    parser.add_argument("--bound-samples", type=count, help="twice as many behind the bound (default: samples / 10)")
    parser.add_argument("--pilot-samples", type=count, help="for each of the percentile and its check (default: 1e7)")
    parser.add_argument("--chunk-samples", type=count, default=5 * 10**7, help="what a kill can lose (default: 5e7)")
    parser.add_argument("--tolerance", type=float, help="stop as soon as the bias bound is below so many nats")
    parser.add_argument("--threads", type=count, default=1, help="changes the time, never the result (default: 1)")
    parser.add_argument("--folder", type=Path, help="of the parts (default: normalise_by_hand/ beside the model)")
    parser.add_argument("--out", type=Path, help="JSON file to write (default: log_z.json beside the model)")
    args = parser.parse_args(arguments)
    settings = Normaliser(
        proposal=args.proposal, samples=args.samples, bound_samples=args.bound_samples or max(args.samples // 10, 1),
        pilot_samples=args.pilot_samples or min(args.samples, 10_000_000),
        chunk_samples=min(args.chunk_samples, args.samples), tolerance=args.tolerance, percentile=args.percentile,
    )  # fmt: skip
    integrand, rows = integrand_of(load_own_model(args.model), args.model), training_rows(args.data)
    folder = args.folder or args.model.with_name("normalise_by_hand")  # normalise/ is the workflow's
    try:
        name = ("file", integrand.digest)
        record = estimate_in(folder, integrand, rows, settings, name, args.threads)
    except KeyboardInterrupt:
        raise DkefError(f"stopped; what is finished is in {folder}, and the same command goes on from there") from None
    write_log_z(args.out or args.model.with_name("log_z.json"), record)
