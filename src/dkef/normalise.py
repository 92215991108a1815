"""Stage `normalise`: log Z of one unnormalised model by importance sampling from q0, with its bias bounded.

The workflow calls pilot, chunk and merge (one job each) or target (one job). A person calls run:

    python -m dkef.normalise run --model results/.../model.h5 --samples 1e9 --threads 2

Finished chunks are kept beside the model; a run that was stopped goes on where it was and ends with the same numbers.
"""

import argparse
import json
import logging
from pathlib import Path
from typing import Any

from dkef.errors import DkefError, run_stage
from dkef.files import write_json
from dkef.models.kef_parameters import KefParameters
from dkef.models.storage import load_model, read_record
from dkef.normaliser.chunks import ChunkRun, parameters_digest
from dkef.normaliser.settings import Normaliser
from dkef.normaliser.weights import LONG_STAGES
from dkef.provenance import config_digest
from dkef.typed import typed

log = logging.getLogger("dkef.normalise")


def read_parameters(path: Path, trusted: tuple[str, ...] = ()) -> KefParameters:
    """The parameters of an unnormalised model; one sentence for any other file."""
    model = load_model(path, trusted)
    parameters = getattr(model, "parameters", None)
    if model.normalised or not isinstance(parameters, KefParameters):
        raise DkefError(f"{path} holds a {type(model).__name__}, which needs no log Z from this stage")
    return parameters


def workflow_run(args: argparse.Namespace) -> ChunkRun:
    """The run of a workflow's job, from its canonical configuration."""
    config = json.loads(args.config)
    settings = typed(Normaliser, config["normaliser"], lambda _: "--config", "normaliser")
    # Trained by this same workflow from a configuration its user chose, so the package of its class is trusted.
    package = str(read_record(args.model)["class"]).partition(".")[0]
    name = (config["dataset"], config["model"], config["seed"])
    return ChunkRun(read_parameters(args.model, (package,)), settings, name, args.threads, log)


def pilot(args: argparse.Namespace) -> None:
    write_json(args.out, workflow_run(args).pilot())


def chunk(args: argparse.Namespace) -> None:
    write_json(args.out, workflow_run(args).chunk(args.stage, args.chunk))


def merge(args: argparse.Namespace) -> None:
    files = {"variance": args.variance, "bound_z": args.bound_z, "z": args.z}
    conclude(args.out, workflow_run(args).merge(args.pilot, files) | digest_of(args))


def target(args: argparse.Namespace) -> None:
    conclude(args.out, workflow_run(args).in_folder(args.folder) | digest_of(args))


def digest_of(args: argparse.Namespace) -> dict[str, str]:
    """What ties log_z.json, and every likelihood that rests on it, to its configuration."""
    return {"config_digest": config_digest(args.config)}


def run(args: argparse.Namespace) -> None:
    settings = Normaliser(
        samples=args.samples, bound_samples=args.bound_samples or max(args.samples // 10, 1),
        pilot_samples=args.pilot_samples or min(args.samples, 10_000_000),
        chunk_samples=min(args.chunk_samples, args.samples), tolerance=args.tolerance,
    )  # fmt: skip
    parameters = read_parameters(args.model)
    estimate = ChunkRun(parameters, settings, ("file", parameters_digest(parameters)), args.threads, log)
    folder = args.folder or args.model.with_name("normalise")
    try:
        record = estimate.in_folder(folder)
    except KeyboardInterrupt:
        raise DkefError(f"stopped; what is finished is in {folder}, and the same command goes on from there") from None
    conclude(args.out or args.model.with_name("log_z.json"), record)


def conclude(path: Path, record: dict[str, Any]) -> None:
    """Write log_z.json, and say what is in it."""
    write_json(path, record)
    bias = record["log_z_bias_bound"]
    log.info(
        "log Z = %.6f, standard error %.2g, bias %s, effective sample size %.4g of %.4g; %s",
        record["log_z"], record["log_z_stderr"],
        f"at most {bias:.2g}" if bias is not None else f"not bounded ({record['bound_condition']})",
        record["effective_sample_size"], record["samples"], record["status"],
    )  # fmt: skip
    log.info("written to %s", path)


def whole_number(text: str) -> int:
    """A count, written as 1000000 or 1e6."""
    number = float(text)
    if number < 1 or number != int(number):
        raise argparse.ArgumentTypeError(f"{text} is not a whole number of at least 1")
    return int(number)


def parser() -> argparse.ArgumentParser:
    lines = (__doc__ or "").splitlines()
    top = argparse.ArgumentParser(
        prog="python -m dkef.normalise", description=lines[0], epilog="\n".join(lines[2:]),
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )  # fmt: skip
    commands = top.add_subparsers(required=True, metavar="COMMAND")

    def command(action: Any, summary: str, from_workflow: bool = True) -> argparse.ArgumentParser:
        sub = commands.add_parser(action.__name__, help=summary, description=f"{summary}.")
        sub.set_defaults(action=action)
        sub.add_argument("--model", type=Path, required=True, help="model file, from the train stage")
        sub.add_argument(
            "--threads", type=whole_number, default=1, help="changes the time, never the result (default: 1)"
        )
        if from_workflow:
            sub.add_argument("--config", required=True, help="canonical JSON: dataset, model, seed, normaliser")
            sub.add_argument("--out", type=Path, required=True, help="JSON file to write")
        return sub

    command(pilot, "s and rho of the bias bound, from two samples of their own")
    sub = command(chunk, "moments of the importance weights over one numbered chunk")
    sub.add_argument("--stage", choices=LONG_STAGES, required=True, help="which of the disjoint streams")
    sub.add_argument("--chunk", type=int, required=True, help="number of the chunk, from 0")
    sub = command(merge, "log Z and its bias bound from finished chunks")
    sub.add_argument("--pilot", type=Path, required=True, help="pilot.json")
    for stage in LONG_STAGES:
        option = "--" + stage.replace("_", "-")
        sub.add_argument(option, type=Path, nargs="+", required=True, help=f"chunk files of stage {stage}")
    sub = command(target, "all of it in one job that stops once the bound is below normaliser.tolerance")
    sub.add_argument("--folder", type=Path, required=True, help="where chunk files are kept")
    _add_run_options(command(run, "all of it for one model file, resumable", from_workflow=False))
    return top


def _add_run_options(sub: argparse.ArgumentParser) -> None:
    sub.add_argument("--samples", type=whole_number, default=10**9, help="behind the reported log Z (default: 1e9)")
    sub.add_argument(
        "--bound-samples",
        type=whole_number,
        help="for each of the variance and the Z of the bound (default: samples / 10)",
    )
    sub.add_argument(
        "--pilot-samples", type=whole_number, help="for each of the 40th percentile and its check (default: 1e7)"
    )
    sub.add_argument(
        "--chunk-samples", type=whole_number, default=5 * 10**7, help="a chunk is what a kill can lose (default: 5e7)"
    )
    sub.add_argument("--tolerance", type=float, help="stop as soon as the bias bound is below so many nats")
    sub.add_argument("--folder", type=Path, help="where chunk files are kept (default: normalise/ beside the model)")
    sub.add_argument("--out", type=Path, help="JSON file to write (default: log_z.json beside the model)")


def main() -> None:
    args = parser().parse_args()
    args.action(args)


if __name__ == "__main__":
    run_stage(main)
