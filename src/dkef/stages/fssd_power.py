"""How often FSSD's test tells a density with two modes in every coordinate from the normal with its moments."""

import argparse
import json
from collections.abc import Sequence
from pathlib import Path

from threadpoolctl import threadpool_limits  # type: ignore[import-untyped]

from dkef.config.typed import typed
from dkef.core.tables import write_table
from dkef.metrics.fssd_power import FssdPower, measure


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--config", default="{}", help="JSON: settings that differ from their defaults")
    parser.add_argument("--out", type=Path, required=True, help="CSV file to write: one row a dimension and bandwidth")
    args = parser.parse_args(arguments)
    settings = typed(FssdPower, json.loads(args.config), lambda key: "--config", "fssd_power")
    with threadpool_limits(1, user_api="blas"):  # the table must not know the machine
        table = measure(settings)
    write_table(args.out, list(table[0]), table)
