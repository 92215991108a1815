"""Show which cells of an experiment are done, running, failed or left, and the core-hours spent and left."""

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from dkef.config.plan import Plan
from dkef.results.cost import CostModel, read_rates, read_sizes
from dkef.results.status import status_of

PUBLISHED = Path("results/published")


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--experiment", default="paper", help="a file of config/experiment")
    parser.add_argument("--bundle", type=Path, help="results/published/<experiment> by default")
    parser.add_argument("--root", type=Path, default=Path(), help="folder that holds results")
    args = parser.parse_args(arguments)
    plan = Plan(args.experiment)
    rates = PUBLISHED / "resources"
    costs = CostModel(plan, read_rates(rates), read_sizes(rates))
    sys.stdout.write(status_of(plan, costs, args.root, args.bundle or PUBLISHED / plan.name).table())
