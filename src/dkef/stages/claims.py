"""Stage `claims`: each checkable statement of the paper against the tables of one experiment.

One row a statement: its place in the paper, the rule in words, the numbers, and the verdict: held, did not hold, or
not decidable with these runs and why.
"""

import argparse
from collections import Counter
from pathlib import Path

from dkef.core.errors import run_stage
from dkef.core.tables import write_table
from dkef.report.claims import benchmark, choices, synthetic
from dkef.report.claims.evidence import Evidence
from dkef.report.claims.verdict import Statement
from dkef.results.inputs import Request, read_grid, read_metrics, read_summary

STATEMENTS: tuple[Statement, ...] = (*synthetic.STATEMENTS, *benchmark.STATEMENTS, *choices.STATEMENTS)
COLUMNS = ("claim", "place", "statement", "rule", "verdict", "tendency", "numbers", "reason")


def judge_all(evidence: Evidence) -> list[dict[str, str]]:
    """One row of claims.csv for each statement."""
    rows = []
    for statement in STATEMENTS:
        found = statement.check(evidence)
        rows.append(
            {
                "claim": statement.name,
                "place": statement.place,
                "statement": statement.text,
                "rule": statement.rule,
                "verdict": found.verdict,
                "tendency": found.tendency,
                "numbers": found.numbers,
                "reason": found.reason,
            }
        )
    return rows


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m dkef.stages.claims", description=__doc__.splitlines()[0])
    parser.add_argument("--config", required=True, help="canonical JSON: experiment, title, datasets, reduced")
    parser.add_argument("--metrics", type=Path, required=True, help="metrics.csv")
    parser.add_argument("--summary", type=Path, required=True, help="summary.csv")
    parser.add_argument("--grids", type=Path, nargs="*", default=[], help="grid.h5 of each planar cell")
    parser.add_argument("--out", type=Path, required=True, help="CSV file to write")
    args = parser.parse_args()
    grids = dict(read_grid(path) for path in args.grids)
    evidence = Evidence(
        Request.parse(args.config),
        read_metrics(args.metrics),
        read_summary(args.summary),
        {key: grid.facts for key, grid in grids.items()},
    )
    rows = judge_all(evidence)
    write_table(args.out, COLUMNS, rows)
    print(", ".join(f"{count} {verdict}" for verdict, count in sorted(Counter(r["verdict"] for r in rows).items())))


if __name__ == "__main__":
    run_stage(main)
