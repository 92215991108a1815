"""Each checkable statement of the paper against the tables of one experiment."""

import argparse
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

from dkef.core.tables import write_table
from dkef.report.claims.catalogue import judge_all
from dkef.results.lookup import Results
from dkef.results.tables import BEHIND_CLAIMS, CLAIMS, OBJECTIVE_COSTS


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    Results.add_arguments(parser)
    parser.add_argument("--out", type=Path, required=True, help="CSV file to write")
    args = parser.parse_args(arguments)
    rows = judge_all(Results.read(args.config, args.table, (*BEHIND_CLAIMS, OBJECTIVE_COSTS)))
    write_table(args.out, CLAIMS.columns, rows)
    print(", ".join(f"{count} {verdict}" for verdict, count in sorted(Counter(r["verdict"] for r in rows).items())))
