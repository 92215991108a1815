"""What the command line of a job says: the files it reads and writes, and its slice of the configuration."""

import argparse
import json
from collections.abc import Sequence
from typing import Any

from dkef.core.threads import pin_threads


def parse_job(
    parser: argparse.ArgumentParser, arguments: Sequence[str] | None
) -> tuple[argparse.Namespace, dict[str, Any]]:
    """The arguments, and --config as values; the process keeps to the number of threads that it names, if any."""
    args = parser.parse_args(arguments)
    config = json.loads(args.config)
    if "threads" in config:
        pin_threads(config["threads"])
    return args, config
