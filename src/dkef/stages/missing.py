"""Name the results of an experiment that its bundle does not have, as targets for Snakemake."""

import argparse
from collections.abc import Sequence
from pathlib import Path

from dkef.config.plan import Plan
from dkef.results.bundle import read_bundle
from dkef.results.read import cell_folder


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--experiment", required=True, help="a file of config/experiment")
    parser.add_argument("--bundle", type=Path, help="results/published/<experiment> by default")
    args = parser.parse_args(arguments)
    plan = Plan(args.experiment)
    folder = args.bundle or Path("results/published", args.experiment)
    done = set(read_bundle(folder).keys) if (folder / "bundle.json").is_file() else set()
    for key in plan.cells:
        if key not in done:
            cell = cell_folder(plan.name, key)
            print(f"{cell}/metrics.csv", *([f"{cell}/grid.h5"] if plan.synthetic(key[0]) else []))
