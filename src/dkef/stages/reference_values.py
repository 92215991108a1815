"""Every recoverable number of the paper's authors and of others, beside ours."""

import argparse
from collections.abc import Sequence
from pathlib import Path

from dkef.core.tables import write_table
from dkef.report.reference_values import beside_ours
from dkef.results.lookup import Results
from dkef.results.tables import BEHIND_REFERENCE_VALUES, REFERENCE_VALUES


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    Results.add_arguments(parser)
    parser.add_argument("--out", type=Path, required=True, help="CSV file to write")
    args = parser.parse_args(arguments)
    results = Results.read(args.config, args.table, BEHIND_REFERENCE_VALUES)
    write_table(args.out, REFERENCE_VALUES.columns, beside_ours(results))
