"""Gather the finished cells of an experiment into a bundle that git keeps, beside those it already has."""

import argparse
from collections.abc import Sequence
from pathlib import Path

from dkef.config.plan import Plan
from dkef.results.bundle import merge, read_bundle, write_bundle
from dkef.results.publish import collect


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--experiment", required=True, help="a file of config/experiment")
    parser.add_argument("--root", type=Path, default=Path(), help="folder that holds the run's results")
    parser.add_argument("--others", type=Path, nargs="*", default=[], help="bundles of other machines to merge in")
    parser.add_argument("--out", type=Path, help="folder of the bundle; results/published/<experiment> by default")
    parser.add_argument("--replace", action="store_true", help="cells found here take the place of older ones")
    args = parser.parse_args(arguments)
    plan = Plan(args.experiment)
    out = args.out or Path("results/published", args.experiment)
    known = [read_bundle(folder) for folder in [*([out] if (out / "bundle.json").is_file() else []), *args.others]]
    found = collect(args.experiment, plan.cells, args.root)
    if args.replace:
        known = [bundle.part(set(bundle.keys) - set(found.keys)) for bundle in known]
    bundle = merge([*known, found]).without_panels(plan.undrawn())
    write_bundle(out, bundle)
    print(f"{out}: {len(bundle.cells)} of {len(plan.cells)} cells, {len(found.cells)} of them found here")
