"""Stage `normalise`: log Z of one unnormalised model by importance sampling, with its bias bounded.

The workflow calls pilot, chunk and merge (one job each) or target (one job). A person calls run:

    python -m dkef.stages.normalise run --model results/.../model.h5 --samples 1e9 --threads 2
    python -m dkef.stages.normalise run --model results/.../model.h5 --data data/processed/.../seed0.h5 \\
        --proposal mixture --samples 1e6 --threads 2

Finished chunks are kept beside the model; a run that was stopped goes on where it was and ends with the same numbers.
"""

import argparse
import json
import logging
from pathlib import Path
from typing import Any

from threadpoolctl import threadpool_limits  # type: ignore[import-untyped]

from dkef.config.normaliser import Normaliser
from dkef.config.typed import typed
from dkef.core.arrays import Array
from dkef.core.errors import DkefError, run_stage
from dkef.core.files import write_json
from dkef.core.provenance import config_digest
from dkef.data.splits import read_splits
from dkef.models.kef.parameters import KefParameters
from dkef.models.protocol import DensityModel
from dkef.models.storage import load_model, load_own_model
from dkef.normaliser.chunks import ChunkRun
from dkef.normaliser.proposals.choice import CheapestRun
from dkef.normaliser.proposals.store import Name, kept_proposal, parameters_digest, read_proposal
from dkef.normaliser.weights import LONG_STAGES

log = logging.getLogger("dkef.stages.normalise")


def read_parameters(model: DensityModel, path: Path) -> KefParameters:
    """The parameters of an unnormalised model; one sentence for any other file."""
    parameters = getattr(model, "parameters", None)
    if model.normalised or not isinstance(parameters, KefParameters):
        raise DkefError(f"{path} holds a {type(model).__name__}, which needs no log Z from this stage")
    return parameters


def settings_of(config: dict[str, Any]) -> Normaliser:
    return typed(Normaliser, config["normaliser"], lambda _: "--config", "normaliser")


def name_of(config: dict[str, Any]) -> Name:
    return config["dataset"], config["model"], config["seed"]


def workflow_run(args: argparse.Namespace) -> ChunkRun:
    """The run of a workflow's job, from its canonical configuration and the proposal that the pilot left."""
    config = json.loads(args.config)
    parameters = read_parameters(load_own_model(args.model), args.model)
    proposal = read_proposal(args.proposal, parameters)
    return ChunkRun(parameters, settings_of(config), name_of(config), args.threads, log, proposal)


def training_rows(path: Path | None) -> Array | None:
    return None if path is None else read_splits(path).train


def pilot(args: argparse.Namespace) -> None:
    config = json.loads(args.config)
    settings, name = settings_of(config), name_of(config)
    parameters = read_parameters(load_own_model(args.model), args.model)
    rows = training_rows(args.data)
    with threadpool_limits(1, user_api="blas"):
        proposal = kept_proposal(args.proposal, settings.proposal, parameters, rows, settings, name, log.info)
    write_json(args.out, ChunkRun(parameters, settings, name, args.threads, log, proposal).pilot())


def chunk(args: argparse.Namespace) -> None:
    write_json(args.out, workflow_run(args).chunk(args.stage, args.chunk))


def merge(args: argparse.Namespace) -> None:
    files = {"variance": args.variance, "bound_z": args.bound_z, "z": args.z}
    conclude(args.out, workflow_run(args).merge(args.pilot, files) | digest_of(args))


def target(args: argparse.Namespace) -> None:
    config = json.loads(args.config)
    parameters = read_parameters(load_own_model(args.model), args.model)
    record = estimate_in(
        args.folder, parameters, training_rows(args.data), settings_of(config), name_of(config), args.threads
    )  # fmt: skip
    conclude(args.out, record | digest_of(args))


def estimate_in(
    folder: Path, parameters: KefParameters, rows: Array | None, settings: Normaliser, name: Name, threads: int
) -> dict[str, Any]:
    """The whole estimate with its files in a folder; what is finished there is not done again."""
    with threadpool_limits(1, user_api="blas"):
        if settings.proposal == "cheapest":
            return CheapestRun(parameters, rows, settings, name, threads, log).in_folder(folder)
        file = folder / "proposal.h5"
        proposal = kept_proposal(file, settings.proposal, parameters, rows, settings, name, log.info)
        return ChunkRun(parameters, settings, name, threads, log, proposal).in_folder(folder)


def digest_of(args: argparse.Namespace) -> dict[str, str]:
    """What ties log_z.json, and every likelihood that rests on it, to its configuration."""
    return {"config_digest": config_digest(args.config)}


def run(args: argparse.Namespace) -> None:
    settings = Normaliser(
        proposal=args.proposal, samples=args.samples, bound_samples=args.bound_samples or max(args.samples // 10, 1),
        pilot_samples=args.pilot_samples or min(args.samples, 10_000_000),
        chunk_samples=min(args.chunk_samples, args.samples), tolerance=args.tolerance, percentile=args.percentile,
    )  # fmt: skip
    parameters = read_parameters(load_model(args.model), args.model)
    folder = args.folder or args.model.with_name("normalise")
    name = ("file", parameters_digest(parameters))
    try:
        record = estimate_in(folder, parameters, training_rows(args.data), settings, name, args.threads)
    except KeyboardInterrupt:
        raise DkefError(f"stopped; what is finished is in {folder}, and the same command goes on from there") from None
    conclude(args.out or args.model.with_name("log_z.json"), record)


def conclude(path: Path, record: dict[str, Any]) -> None:
    """Write log_z.json, and say what is in it."""
    write_json(path, record)
    bias = record["log_z_bias_bound"]
    log.info(
        "log Z = %.6f from %s, standard error %.2g, bias %s, effective sample size %.4g of %.4g; %s",
        record["log_z"], record["proposal"], record["log_z_stderr"],
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
        prog="python -m dkef.stages.normalise", description=lines[0], epilog="\n".join(lines[2:]),
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

    sub = command(pilot, "the proposal; s and rho of the bias bound, from two samples of their own")
    _add_data_option(sub)
    sub.add_argument("--proposal", type=Path, required=True, help="HDF5 file to write: what chunk jobs sample from")
    sub = command(chunk, "moments of the importance weights over one numbered chunk")
    sub.add_argument("--proposal", type=Path, required=True, help="from the pilot")
    sub.add_argument("--stage", choices=LONG_STAGES, required=True, help="which of the disjoint streams")
    sub.add_argument("--chunk", type=int, required=True, help="number of the chunk, from 0")
    sub = command(merge, "log Z and its bias bound from finished chunks")
    sub.add_argument("--pilot", type=Path, required=True, help="pilot.json")
    sub.add_argument("--proposal", type=Path, required=True, help="from the pilot")
    for stage in LONG_STAGES:
        option = "--" + stage.replace("_", "-")
        sub.add_argument(option, type=Path, nargs="+", required=True, help=f"chunk files of stage {stage}")
    sub = command(target, "all of it in one job that stops once the bound is below normaliser.tolerance")
    sub.add_argument("--folder", type=Path, required=True, help="where chunk files are kept")
    _add_data_option(sub)
    _add_run_options(command(run, "all of it for one model file, resumable", from_workflow=False))
    return top


def _add_data_option(sub: argparse.ArgumentParser) -> None:
    sub.add_argument(
        "--data", type=Path, help="splits, from the preprocess stage; all proposals but q0 need the training rows"
    )


def _add_run_options(sub: argparse.ArgumentParser) -> None:
    _add_data_option(sub)
    sub.add_argument(
        "--proposal", choices=("q0", "mixture", "annealed", "cheapest"), default="q0",
        help="what to sample from; cheapest needs a tolerance (default: q0)",
    )  # fmt: skip
    sub.add_argument("--percentile", type=float, default=40.0, help="of the weights, for s of the bound (default: 40)")
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
