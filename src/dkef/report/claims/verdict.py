"""A statement of the paper with its rule, and the verdict on it: held, did not hold, or not decidable."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from dkef.report.claims.evidence import LEVEL, Evidence, Known, Runs, Scenario, power
from dkef.results.lookup import Results

HELD, FAILED, OPEN = "held", "did not hold", "not decidable"
NO_TEST, NO_CHANCE = "none", "no chance is involved"  # what stands for a test where no run speaks, or none is needed
IN_PART = "sets were run in part only"


@dataclass(frozen=True)
class Verdict:
    """The outcome of one rule."""

    verdict: str  # HELD | FAILED | OPEN
    numbers: str = ""
    reason: str = ""  # why nothing can be decided
    tendency: str = ""  # what runs point to that cannot decide: reduced ones, or those on a part of a set
    test: str = ""  # what was tested, and how large the p-values are
    level: str = f"{LEVEL:g}"
    power: str = ""
    p_value: str = ""  # the smaller of the two; none where no run speaks or no chance is involved
    adjusted_p: str = ""  # the same for all claims that were tested together


@dataclass(frozen=True)
class Statement:
    """One checkable statement of the paper."""

    name: str
    place: str
    text: str  # the paper's words
    rule: str
    evidence: Callable[[Results], Evidence]

    def check(self, results: Results) -> Verdict:
        """The rule's verdict. Runs on parts of sets, or with reduced budgets, can only show a tendency."""
        evidence = self.evidence(results)
        found = judge(evidence, subsets=False)
        if any(leaf.subset for leaf in evidence.leaves()) and found.verdict == OPEN:
            seen = judge(evidence, subsets=True)
            if seen.verdict != OPEN:
                reason = found.reason if found.reason.startswith(IN_PART) else f"{IN_PART}; {found.reason}"
                found = replace(found, tendency=seen.verdict, reason=reason)
        info = results.info
        if info.reduced is None or info.paper_budgets or found.verdict == OPEN or is_certain(evidence):
            return found
        reason = f"budgets are not the paper's: {info.reduced}"
        return replace(found, verdict=OPEN, tendency=found.verdict, reason=reason)


def judge(evidence: Evidence, subsets: bool) -> Verdict:
    """The verdict on a tree of evidence; with `subsets`, runs on parts of sets count as well."""
    p_for, p_against = (float(p[0]) for p in evidence.p_values(Scenario(subsets=subsets)))
    numbers = str(evidence)
    if p_for != p_for:
        return Verdict(OPEN, numbers, why_untested(evidence), test=NO_TEST, power="0")
    if is_certain(evidence):
        return Verdict(HELD if p_for <= LEVEL else FAILED, numbers, test=NO_CHANCE, level="none", power="1")
    chance = power(evidence, subsets)
    found = Verdict(
        OPEN, numbers, test=f"{method(evidence, subsets)}; p = {p_for:.2g} for it, {p_against:.2g} against",
        power=f"{chance:.2f}", p_value=f"{min(p_for, p_against):.6g}",
    )  # fmt: skip
    if p_against <= LEVEL:
        return replace(found, verdict=FAILED)
    if p_for <= LEVEL:
        return replace(found, verdict=HELD)
    return replace(found, reason=why_open(evidence, subsets, p_for, p_against))


def together(verdicts: Sequence[Verdict]) -> list[Verdict]:
    """The same with p-values for all claims at once, after Bonferroni.

    At most one of a claim's two null hypotheses, "it is false" and "it is true", is true. So m claims have at most m
    that are, and among the verdicts with p <= alpha / m there is a false one with a probability of at most alpha.
    """
    m = sum(found.p_value != "" for found in verdicts)
    return [
        replace(found, adjusted_p=f"{min(1.0, m * float(found.p_value)):.6g}") if found.p_value else found
        for found in verdicts
    ]


def why_untested(evidence: Evidence) -> str:
    """What is lacking where no run counts: all of them, or whole sets."""
    in_part = any(leaf.subset and not _empty(leaf) for leaf in evidence.leaves())
    return "; ".join(filter(None, [IN_PART if in_part else "", lacking(evidence)])) or "no run to judge"


def why_open(evidence: Evidence, subsets: bool, p_for: float, p_against: float) -> str:
    """What is lacking: runs, or a clear enough outcome."""
    best = float(evidence.p_values(Scenario("all for", subsets))[0][0])
    worst = float(evidence.p_values(Scenario("all against", subsets))[1][0])
    gaps = lacking(evidence)
    if best > LEVEL and worst > LEVEL:
        text = f"too few runs: if all agreed, p would be {min(best, worst):.2g}"
    elif best > LEVEL:
        text = f"with these runs it can only be refuted, and they do not refute it (p = {p_against:.2g})"
    else:
        text = f"the runs do not agree well enough: p = {p_for:.2g} for it, {p_against:.2g} against"
    return f"{text}; {gaps}" if gaps else text


def lacking(evidence: Evidence) -> str:
    """Parts without a run."""
    empty = [leaf for leaf in evidence.leaves() if _empty(leaf)]
    named = list(dict.fromkeys(str(leaf) for leaf in empty))
    more = f" and {len(named) - 4} more" if len(named) > 4 else ""
    return f"lacking: {', '.join(named[:4])}{more}" if named else ""


def is_certain(evidence: Evidence) -> bool:
    """Whether it rests on mathematics alone."""
    return all(isinstance(leaf, Known) and leaf.certain for leaf in evidence.leaves())


def _empty(leaf: Runs | Known) -> bool:
    return leaf.runs == 0 if isinstance(leaf, Runs) else leaf.p_for is None


def method(evidence: Evidence, subsets: bool) -> str:
    """The test in words, with the numbers of runs behind it."""
    leaves = [leaf for leaf in evidence.leaves() if not _empty(leaf) and (subsets or not leaf.subset)]
    counts = [leaf.runs for leaf in leaves if isinstance(leaf, Runs)]
    if not counts:
        return "as the rule says"
    runs = f"{counts[0]}" if len(set(counts)) == 1 else f"{min(counts)} to {max(counts)}"
    kind = "sign" if all(leaf.share == 0.5 for leaf in leaves if isinstance(leaf, Runs)) else "binomial"
    parts = f", {len(leaves)} parts" if len(leaves) > 1 else ""
    return f"exact {kind} test, one-sided, {runs} runs{parts}"
