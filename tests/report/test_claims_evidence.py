"""The tests behind verdicts: p-values against enumeration and simulation, rates of false verdicts, power."""

import itertools
import math

import numpy as np
import pytest
from scipy.stats import binomtest, combine_pvalues, kstest

from dkef.report.claims.evidence import (
    AtLeast,
    Evidence,
    Known,
    Runs,
    Scenario,
    all_sets,
    every,
    most,
    partial_conjunction,
    power,
)
from dkef.report.claims.verdict import FAILED, HELD, OPEN, judge

DRAWS = 20_000
LEVEL = 0.05
ERROR = 4 * math.sqrt(LEVEL * (1 - LEVEL) / DRAWS)  # four standard errors of a rate at the level


@pytest.mark.parametrize(("wins", "losses", "runs", "share"), [(5, 0, 5, 0.5), (11, 3, 15, 0.5), (9, 1, 10, 0.8)])
def test_p_values_of_a_count_are_those_of_the_binomial_test(wins: int, losses: int, runs: int, share: float) -> None:
    p_for, p_against = Runs("", wins, losses, runs, share).p_values(Scenario())
    assert p_for[0] == pytest.approx(binomtest(wins, runs, share, "greater").pvalue)
    assert p_against[0] == pytest.approx(binomtest(losses, runs, 1 - share, "greater").pvalue)


@pytest.mark.parametrize(("runs", "verdict"), [(4, OPEN), (5, HELD)])
def test_five_runs_that_agree_are_the_fewest_to_decide(runs: int, verdict: str) -> None:
    """0.5^4 = 0.0625, 0.5^5 = 0.03125."""
    assert judge(Runs("", runs, 0, runs), subsets=True).verdict == verdict
    found = judge(Runs("", 0, runs, runs), subsets=True)
    assert found.verdict == (FAILED if verdict == HELD else OPEN)
    assert ("too few runs" in found.reason) == (verdict == OPEN)


def test_doubtful_runs_speak_for_neither_side() -> None:
    assert judge(Runs("", 5, 0, 5), subsets=True).verdict == HELD
    assert judge(Runs("", 5, 0, 8), subsets=True).verdict == OPEN
    assert judge(Runs("", 0, 5, 8), subsets=True).verdict == OPEN


def test_two_sided_rules_need_six_runs() -> None:
    """Two one-sided tests for "alike"; either may refute, so that Holm doubles the smaller p-value."""
    for runs, verdict in ((5, OPEN), (6, FAILED)):
        pair = [Runs("not above", 0, runs, runs), Runs("not below", runs, 0, runs)]
        assert judge(every("", pair), subsets=True).verdict == verdict


def test_partial_conjunction_is_that_of_benjamini_and_heller() -> None:
    p = np.array([[0.01], [0.2], [0.03], [0.6]])
    assert partial_conjunction(p, 1, False)[0] == pytest.approx(4 * 0.01)  # Bonferroni
    for independent in (False, True):
        assert partial_conjunction(p, 4, independent)[0] == pytest.approx(0.6)
    assert partial_conjunction(p, 3, False)[0] == pytest.approx(2 * 0.2)
    fisher = combine_pvalues([0.2, 0.03, 0.6], method="fisher").pvalue
    assert partial_conjunction(p, 2, True)[0] == pytest.approx(fisher)
    assert partial_conjunction(p, 5, True)[0] == 1


def test_no_part_is_no_evidence() -> None:
    for evidence in (every("", []), most("", []), every("", [Runs("a"), Known("b")])):
        found = judge(evidence, subsets=True)
        assert found.verdict == OPEN
        assert found.reason


def test_missing_parts_may_be_either() -> None:
    """Three of five sets were run: all three must agree for "most", and one that disagrees refutes "all"."""
    good, bad, none = Runs("good", 15, 0, 15), Runs("bad", 0, 15, 15), Runs("none")
    assert judge(most("", [good, good, good, none, none]), subsets=True).verdict == HELD
    assert judge(most("", [good, good, bad, none, none]), subsets=True).verdict == OPEN
    assert judge(every("", [good, good, good, none, none]), subsets=True).verdict == OPEN
    assert judge(every("", [good, good, bad, none, none]), subsets=True).verdict == FAILED


def tree(kind: str, parts: list[Evidence]) -> AtLeast:
    kinds = {"every": every("", parts), "sets": all_sets(parts), "most": most("", parts), "any": AtLeast("", 1, parts)}
    return kinds[kind]


class Truth(Runs):
    """A leaf whose drawn runs have the property with a probability of its own."""

    probability = 0.5
    stream = ""  # leaves of one name are drawn together

    def p_values(self, scenario: Scenario, path: str = "") -> tuple[np.ndarray, np.ndarray]:
        own = Scenario("drawn", True, self.probability, scenario.draws, scenario.seed)
        return super().p_values(own, f"{path}{self.stream}")


def leaf(runs: int, probability: float, stream: object = "") -> Truth:
    found = Truth("", 0, 0, runs)
    object.__setattr__(found, "probability", probability)
    object.__setattr__(found, "stream", str(stream))
    return found


@pytest.mark.parametrize("kind", ["every", "sets", "most", "any"])
@pytest.mark.parametrize("runs", [5, 8, 15])
@pytest.mark.parametrize("true_parts", range(5))
@pytest.mark.parametrize("apart", [True, False])
def test_false_verdicts_are_no_more_frequent_than_the_level(kind: str, runs: int, true_parts: int, apart: bool) -> None:
    """Four parts, so many of them true: as hard as can be (a little above one half, the others one half exactly)."""
    parts: list[Evidence] = [leaf(runs, 0.5 + 1e-9 * (i < true_parts), i * apart) for i in range(4)]
    evidence = tree(kind, parts)
    p_for, p_against = evidence.p_values(Scenario("drawn", draws=DRAWS, seed=1))
    is_true = true_parts >= evidence.needed
    wrong = (p_against if is_true else p_for) <= LEVEL
    assert wrong.mean() <= LEVEL + ERROR


@pytest.mark.parametrize("kind", ["every", "sets", "most", "any"])
def test_false_verdicts_where_true_parts_are_clear(kind: str) -> None:
    """The other extreme: as many clear parts as leave the statement just false, the others at one half."""
    needed = tree(kind, [leaf(9, 0.5)] * 4).needed
    evidence = tree(kind, [leaf(9, 1.0 if i < needed - 1 else 0.5, i) for i in range(4)])
    p_for, _ = evidence.p_values(Scenario("drawn", draws=DRAWS, seed=2))
    assert (p_for <= LEVEL).mean() <= LEVEL + ERROR
    evidence = tree(kind, [leaf(9, 0.5 if i < needed else 0.0, i) for i in range(4)])
    _, p_against = evidence.p_values(Scenario("drawn", draws=DRAWS, seed=3))
    assert (p_against <= LEVEL).mean() <= LEVEL + ERROR


def test_the_rule_of_three_quarters_that_this_replaces_was_wrong_more_often() -> None:
    """With 3 fair runs "three quarters agree" is true in one of four cases; the sign test never decides."""
    outcomes = list(itertools.product((0, 1), repeat=3))
    assert sum(sum(o) / 3 >= 0.75 or sum(o) / 3 <= 0.25 for o in outcomes) / len(outcomes) == 0.25
    assert all(judge(Runs("", sum(o), 3 - sum(o), 3), subsets=True).verdict == OPEN for o in outcomes)


@pytest.mark.parametrize(("runs", "expected"), [(4, 0.0), (5, 0.9**5), (15, 0.94444)])
def test_power_of_a_count_is_that_of_the_sign_test(runs: int, expected: float) -> None:
    """At 0.9: of 15 runs 12 are needed, and P(Bin(15, 0.9) >= 12) = 0.94444."""
    assert power(Runs("", runs, 0, runs)) == pytest.approx(expected, abs=4 * math.sqrt(0.25 / 400))


def test_drawn_p_values_are_super_uniform() -> None:
    p, _ = Runs("", 0, 0, 200).p_values(Scenario("drawn", probability=0.5, draws=2000, seed=5))
    assert kstest(p, "uniform", alternative="greater").pvalue > 1e-4  # the distribution function lies below x
