"""What is left of an experiment and what it will cost, as a table; nothing is run.

`python -m dkef.stages.plan [--experiment NAME] [--overrides KEY=VALUE ...] [--cores N]`
"""

import argparse
import sys
from pathlib import Path

from dkef.config.jobs import Wanted, pending_jobs
from dkef.config.plan import Plan
from dkef.core.errors import run_stage
from dkef.report.figures.catalogue import find
from dkef.results.cost import CostModel, memory_requests, read_rates, read_sizes
from dkef.results.schedule import Schedule
from dkef.stages.pages import PAGES

RATES = Path("results/published/resources")


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m dkef.stages.plan", description=__doc__.splitlines()[0])
    parser.add_argument("--experiment", default="paper", help="a file of config/experiment")
    parser.add_argument("--overrides", nargs="*", default=[], help="as for snakemake --config overrides=")
    parser.add_argument("--cores", type=int, default=1, help="for the projected wall time")
    parser.add_argument("--root", type=Path, default=Path(), help="folder that holds data, results and figures")
    args = parser.parse_args()
    if args.cores < 1:
        parser.error(f"--cores is {args.cores}; allowed is >= 1")
    plan = Plan(args.experiment, tuple(args.overrides))
    plan.check()
    figures = {name: () if name == "mixtures" else find(name).needs for name in plan.experiment.figures}
    jobs = pending_jobs(plan, Wanted(figures, tuple(PAGES)), args.root)
    costs = CostModel(plan, read_rates(RATES), read_sizes(RATES))
    sys.stdout.write(Schedule.of(jobs, costs).table(plan.name, args.cores, memory_requests(Path("workflow/rules"))))


if __name__ == "__main__":
    run_stage(main)
