"""Every figure, table and claim of an experiment from its bundle, without training, network or Snakemake."""

import argparse
import logging
from collections.abc import Sequence
from pathlib import Path

from dkef.config.plan import Plan
from dkef.core.tables import read_table
from dkef.report.bundled import with_own_tables, write_all
from dkef.results.bundle import read_bundle
from dkef.results.publish import results_of
from dkef.results.tables import CLAIMS


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--experiment", required=True, help="a file of config/experiment")
    parser.add_argument("--bundle", type=Path, help="results/published/<experiment> by default")
    parser.add_argument(
        "--tables", type=Path, help="folder for tables and report.html; results/<experiment> by default"
    )
    parser.add_argument("--figures", type=Path, help="folder for figures; figures/<experiment> by default")
    args = parser.parse_args(arguments)
    logging.getLogger("fontTools").setLevel(logging.WARNING)  # it reports on every glyph of a PDF
    plan = Plan(args.experiment)
    bundle = args.bundle or Path("results/published", plan.name)
    results = results_of(read_bundle(bundle), plan.experiment_slice())
    results = with_own_tables(results, plan.experiment.figures, bundle)
    tables, figures = args.tables or Path("results", plan.name), args.figures or Path("figures", plan.name)
    for path in write_all(results, plan.experiment.figures, tables, figures):
        print(path)
    verdicts = read_table(tables / f"{CLAIMS.name}.csv", CLAIMS.columns)["verdict"].value_counts()
    print(f"{verdicts.sum()} claims: " + ", ".join(f"{count} {verdict}" for verdict, count in verdicts.items()))
    if results.info.reduced:
        print(f"reduced run: {results.info.reduced}")
