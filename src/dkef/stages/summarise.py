"""All metrics in one table, medians over seeds, and paired tests against the reference model."""

import argparse
import json
from collections.abc import Sequence
from pathlib import Path

from dkef.core.tables import write_table
from dkef.metrics.summary import paired_rows, summary_rows
from dkef.results.gather import gather_metrics
from dkef.results.tables import METRICS, PAIRED_TESTS, SUMMARY


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--config", required=True, help="canonical JSON: references, a model for each dataset")
    parser.add_argument("--metrics", type=Path, nargs="+", required=True, help="tables of the compare stage")
    parser.add_argument("--out", type=Path, required=True, help="CSV file to write: all rows")
    parser.add_argument("--summary", type=Path, required=True, help="CSV file to write: medians over seeds")
    parser.add_argument("--tests", type=Path, required=True, help="CSV file to write: paired tests over seeds")
    args = parser.parse_args(arguments)
    table = gather_metrics(args.metrics)
    write_table(args.out, METRICS.columns, table.to_dict("records"))
    write_table(args.summary, SUMMARY.columns, summary_rows(table))
    write_table(args.tests, PAIRED_TESTS.columns, paired_rows(table, json.loads(args.config)["references"]))
