"""Verdicts, and how single findings make one: held, did not hold, or not decidable with these runs."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from dkef.report.claims.order import AHEAD, BEHIND, CLOSE, Order
from dkef.results.lookup import Results

HELD, FAILED, OPEN = "held", "did not hold", "not decidable"


@dataclass(frozen=True)
class Verdict:
    """The outcome of one rule."""

    verdict: str  # HELD | FAILED | OPEN
    numbers: str = ""
    reason: str = ""  # why nothing can be decided
    tendency: str = ""  # what the numbers of a reduced run point to


@dataclass(frozen=True)
class Statement:
    """One checkable statement of the paper."""

    name: str
    place: str
    text: str  # in our words
    rule: str
    judge: Callable[[Results], Verdict]

    def check(self, results: Results) -> Verdict:
        """The rule's verdict; a run with reduced budgets can only show a tendency."""
        found = self.judge(results)
        reduced = results.info.reduced
        if reduced is None or found.verdict == OPEN:
            return found
        return replace(found, verdict=OPEN, tendency=found.verdict, reason=f"budgets are not the paper's: {reduced}")


def undecided(reason: str, numbers: str = "") -> Verdict:
    return Verdict(OPEN, numbers, reason)


def most(orders: Sequence[Order], numbers: str, least: int, of_what: str) -> Verdict:
    """Held if more than half of the findings are "ahead" for sure, did not hold if they cannot be."""
    known = [order for order in orders if order is not None]
    if len(known) < least:
        return undecided(f"{len(known)} of the {of_what} have results, the rule needs {least}", numbers)
    sure, possible = known.count(AHEAD), len(known) - known.count(BEHIND)
    if 2 * sure > len(known):
        return Verdict(HELD, numbers)
    if 2 * possible <= len(known):
        return Verdict(FAILED, numbers)
    return undecided(f"too close: {sure} for sure, {possible} possibly, of {len(known)} {of_what}", numbers)


def every(orders: Sequence[Order], numbers: str, least: int, of_what: str) -> Verdict:
    """Held if all findings are "ahead", did not hold as soon as one is "behind"."""
    known = [order for order in orders if order is not None]
    if BEHIND in known:
        return Verdict(FAILED, numbers)
    if len(known) < least:
        return undecided(f"{len(known)} of the {of_what} have results, the rule needs {least}", numbers)
    if CLOSE in known:
        return undecided(f"too close on {known.count(CLOSE)} of {len(known)} {of_what}", numbers)
    return Verdict(HELD, numbers)


def finding(holds: bool) -> Order:
    """A finding that has no third outcome."""
    return AHEAD if holds else BEHIND
