"""All statements, and one row of claims.csv for each.

A row has the paper's sentence and its place, the rule in words, the test with its level, power and p-values (its own
and one for all claims at once), the numbers, and the verdict: held, did not hold, or not decidable with these runs
and why.
"""

from dkef.config.sentences import unknown
from dkef.core.errors import ConfigError
from dkef.report.claims import benchmark, choices, learning, objectives, synthetic, theory
from dkef.report.claims.verdict import Statement, together
from dkef.results.lookup import Results

STATEMENTS: tuple[Statement, ...] = (
    *synthetic.STATEMENTS, *learning.STATEMENTS, *benchmark.STATEMENTS, *choices.STATEMENTS, *theory.STATEMENTS,
    *objectives.STATEMENTS,
)  # fmt: skip


def judge_all(results: Results) -> list[dict[str, str]]:
    """One row of claims.csv for each statement that the experiment is to decide."""
    known = {claim.name: claim for claim in STATEMENTS}
    for name in results.info.claims:
        if name not in known:
            raise ConfigError(unknown("claim", name, known))
    asked = [claim for claim in STATEMENTS if not results.info.claims or claim.name in results.info.claims]
    return [
        {"claim": claim.name, "place": claim.place, "statement": claim.text, "rule": claim.rule} | vars(found)
        for claim, found in zip(asked, together([claim.check(results) for claim in asked]), strict=True)
    ]
