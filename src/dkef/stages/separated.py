"""How a kernel exponential family weighs two components that its kernel cannot see at once."""

import argparse
import json
import logging
from collections.abc import Sequence
from pathlib import Path

from threadpoolctl import threadpool_limits  # type: ignore[import-untyped]

from dkef.config.typed import typed
from dkef.core.files import write_json
from dkef.core.tables import write_table
from dkef.metrics.separated import Separated, measure, verdict
from dkef.report.figures.catalogue import SEPARATED

log = logging.getLogger("dkef.stages.separated")


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--config", required=True, help="JSON: settings that differ from their defaults")
    parser.add_argument("--out", type=Path, required=True, help="CSV file to write: one row a fit")
    parser.add_argument("--verdict", type=Path, required=True, help="JSON file to write: the error of both formulas")
    args = parser.parse_args(arguments)
    settings = typed(Separated, json.loads(args.config), lambda key: "--config", "separated")
    with threadpool_limits(1, user_api="blas"):  # the table must not know the machine
        table = measure(settings)
    judged = verdict(table)
    log.info("%s", judged["sentence"])
    write_table(args.out, SEPARATED.columns, table.to_dict("records"))
    write_json(args.verdict, judged)
