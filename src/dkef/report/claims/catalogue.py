"""All statements, and one row of claims.csv for each.

A row has the statement's place in the paper, the rule in words, the numbers, and the verdict: held, did not hold, or
not decidable with these runs and why.
"""

from dkef.report.claims import benchmark, choices, synthetic
from dkef.report.claims.verdict import Statement
from dkef.results.lookup import Results

STATEMENTS: tuple[Statement, ...] = (*synthetic.STATEMENTS, *benchmark.STATEMENTS, *choices.STATEMENTS)


def judge_all(results: Results) -> list[dict[str, str]]:
    """One row of claims.csv for each statement."""
    return [
        {"claim": claim.name, "place": claim.place, "statement": claim.text, "rule": claim.rule}
        | vars(claim.check(results))
        for claim in STATEMENTS
    ]
