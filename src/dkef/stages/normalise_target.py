"""log Z of one unnormalised model in one job that samples until its bias bound is below normaliser.tolerance."""

import argparse
from collections.abc import Sequence
from pathlib import Path

from dkef.core.provenance import config_digest
from dkef.normaliser.run import Job, write_log_z


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--config", required=True, help="canonical JSON: dataset, model, seed, normaliser")
    parser.add_argument("--model", type=Path, required=True, help="model file, from the train stage")
    parser.add_argument("--data", type=Path, nargs="?", help="splits; all proposals but q0 need the training rows")
    parser.add_argument("--folder", type=Path, required=True, help="where finished parts are kept and found again")
    parser.add_argument("--threads", type=int, default=1, help="changes the time, never the result (default: 1)")
    parser.add_argument("--out", type=Path, required=True, help="log_z.json to write")
    args = parser.parse_args(arguments)
    record = Job(args.config, args.model, args.threads).in_folder(args.folder, args.data)
    write_log_z(args.out, record | {"config_digest": config_digest(args.config)})
