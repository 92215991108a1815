"""All sensitivity tables in one, and rank correlations of FSSD and KSD over their settings."""

import argparse
import json
from collections.abc import Sequence
from pathlib import Path

from dkef.config.schema.metrics import Comparison
from dkef.config.typed import typed
from dkef.core.tables import write_table
from dkef.metrics.agreement import agreement_rows
from dkef.results.gather import gather_sensitivity
from dkef.results.tables import AGREEMENT, SENSITIVITY


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--config", required=True, help="canonical JSON: comparison")
    parser.add_argument("--tables", type=Path, nargs="+", required=True, help="from the sensitivity stage")
    parser.add_argument("--out", type=Path, required=True, help="CSV file to write: all tables in one")
    parser.add_argument("--agreement", type=Path, required=True, help="CSV file to write: rank correlations")
    args = parser.parse_args(arguments)
    settings = typed(Comparison, json.loads(args.config)["comparison"], lambda key: "--config", "comparison")
    table = gather_sensitivity(args.tables)
    write_table(args.out, SENSITIVITY.columns, table.to_dict("records"))
    write_table(args.agreement, AGREEMENT.columns, agreement_rows(table, settings))
