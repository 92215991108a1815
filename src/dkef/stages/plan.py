"""Show what is left of an experiment and what it will cost; nothing is run.

Jobs and core-hours by stage and dataset, from the rates in results/published/resources.
"""

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from dkef.config.jobs import Wanted, pending_jobs
from dkef.config.plan import Plan
from dkef.core.errors import ConfigError
from dkef.report.figures.catalogue import find
from dkef.report.pages.catalogue import PAGES
from dkef.results.cost import CostModel, memory_requests, read_rates, read_sizes
from dkef.results.schedule import Schedule

RATES = Path("results/published/resources")


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--experiment", default="paper", help="a file of config/experiment")
    parser.add_argument("--overrides", nargs="*", default=[], help="as for snakemake --config overrides=")
    parser.add_argument("--cores", type=int, default=1, help="for the projected wall time")
    parser.add_argument("--root", type=Path, default=Path(), help="folder that holds data, results and figures")
    args = parser.parse_args(arguments)
    if args.cores < 1:
        raise ConfigError(f"--cores is {args.cores}; allowed is >= 1")
    plan = Plan(args.experiment, tuple(args.overrides))
    plan.check()
    tables = {name: find(name).tables for name in plan.experiment.figures}
    names = {figure: [table.name for table in read] for figure, read in tables.items()}
    stages = dict.fromkeys(table.stage for read in tables.values() for table in read if table.stage)
    jobs = pending_jobs(plan, Wanted(names, tuple(PAGES), tuple(stages)), args.root)
    costs = CostModel(plan, read_rates(RATES), read_sizes(RATES))
    sys.stdout.write(Schedule.of(jobs, costs).table(plan.name, args.cores, memory_requests(Path("workflow/rules"))))
