"""Evidence on a statement: counts of runs that have a property, put together into one p-value for it and one against.

A statement is a tree. A leaf says "a run has this property with a probability above `share`" (one half: most runs) and
is tested by an exact binomial test; with one half this is the sign test. Runs may have any distribution. An inner node
says "at least so many of these parts are true". Every p-value is one-sided. So whatever the truth is, a false verdict
has at most the probability of the level: a statement that is false is called true only if p_for <= level, one that is
true is called false only if p_against <= level. Where two models are equal, "better" is false.
"""

import functools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
from scipy.stats import binom, chi2

from dkef.core.arrays import Array
from dkef.core.streams import rng_for

LEVEL = 0.05
CLEAR = 0.2  # power is for a probability of the opposite that is a fifth of what the statement allows
DRAWS = 400
PValues = tuple[Array, Array]  # for and against [draws]; NaN where there is nothing to judge


@dataclass(frozen=True)
class Scenario:
    """Which counts a tree is judged by: those observed, the most extreme ones, or drawn ones."""

    kind: Literal["observed", "all for", "all against", "drawn"] = "observed"
    subsets: bool = True  # whether runs on a part of a set count
    probability: float | None = None  # of the property in a drawn run; None: clearly above `share`
    draws: int = 1
    seed: int = 0

    def same(self, p_for: float, p_against: float) -> PValues:
        """The same p-values in every draw."""
        return np.full(self.draws, p_for), np.full(self.draws, p_against)


@functools.cache
def at_least_so_many(n: int, probability: float) -> Array:
    """P(K >= k) for K binomial, k = 0, ..., n; [n + 1]."""
    tail: Array = binom.sf(np.arange(-1, n), n, probability)
    return tail


@dataclass(frozen=True)
class Runs:
    """Of `runs` runs, `wins` have the property and `losses` do not; the rest is doubtful, and counts for neither."""

    label: str
    wins: int = 0
    losses: int = 0
    runs: int = 0
    share: float = 0.5
    subset: bool = False  # on a part of the paper's set
    detail: str = ""

    def p_values(self, scenario: Scenario, path: str = "") -> PValues:
        if self.runs == 0 or (self.subset and not scenario.subsets):
            return scenario.same(np.nan, np.nan)
        wins, losses = self._counts(scenario, path)
        return at_least_so_many(self.runs, self.share)[wins], at_least_so_many(self.runs, 1 - self.share)[losses]

    def _counts(self, scenario: Scenario, path: str) -> tuple[Array, Array]:
        if scenario.kind == "observed":
            return np.array([self.wins]), np.array([self.losses])
        if scenario.kind == "drawn":
            probability = 1 - CLEAR * (1 - self.share) if scenario.probability is None else scenario.probability
            wins = rng_for("power of a claim", scenario.seed, path).binomial(self.runs, probability, scenario.draws)
        else:
            wins = np.array([self.runs if scenario.kind == "all for" else 0])
        return wins, self.runs - wins

    def leaves(self) -> Iterator["Leaf"]:
        yield self

    def __str__(self) -> str:
        if self.runs == 0:
            return f"{self.label} {self.detail or 'not run'}"
        doubtful = self.runs - self.wins - self.losses
        told = [self.detail] if self.detail else []
        told += [f"{doubtful} doubtful"] if doubtful else []
        return f"{self.label} {self.wins}/{self.runs}" + (f" ({', '.join(told)})" if told else "")


@dataclass(frozen=True)
class Known:
    """A finding whose p-values are not those of a count of runs; None where there is nothing to judge."""

    label: str
    p_for: float | None = None
    p_against: float | None = None
    subset: bool = False
    certain: bool = False  # no chance is involved, and no trained model
    power: float = 1.0  # how often the finding would be made if it were there to be made

    def p_values(self, scenario: Scenario, path: str = "") -> PValues:
        if self.p_for is None or self.p_against is None or (self.subset and not scenario.subsets):
            return scenario.same(np.nan, np.nan)
        own = {"observed": (self.p_for, self.p_against), "all against": (1.0, 0.0)}.get(scenario.kind, (0.0, 1.0))
        return scenario.same(*own)

    def leaves(self) -> Iterator["Leaf"]:
        yield self

    def __str__(self) -> str:
        return self.label


@dataclass(frozen=True)
class AtLeast:
    """At least `needed` of the parts are true.

    Against it: so many are false that fewer than `needed` are left. Parts without runs may be either; a verdict never
    leans on them.
    """

    label: str
    needed: int
    parts: Sequence["Evidence"]
    independent: bool = False  # the parts rest on different data

    def p_values(self, scenario: Scenario, path: str = "") -> PValues:
        # Parts on the same data are drawn together: a run shows all of them or none.
        paths = [f"{path}/{i}" if self.independent else path for i in range(len(self.parts))]
        found = [part.p_values(scenario, own) for part, own in zip(self.parts, paths, strict=True)]
        present = [(p_for, p_against) for p_for, p_against in found if not np.isnan(p_for).any()]
        if not present:
            return scenario.same(np.nan, np.nan)
        p_for, p_against = (np.stack(side) for side in zip(*present, strict=True))
        spare = len(self.parts) - self.needed
        return (
            partial_conjunction(p_for, self.needed, self.independent),
            partial_conjunction(p_against, spare + 1, self.independent),
        )

    def leaves(self) -> Iterator["Leaf"]:
        for part in self.parts:
            yield from part.leaves()

    def __str__(self) -> str:
        nested = any(isinstance(part, AtLeast) for part in self.parts)
        text = ("; " if nested else ", ").join(dict.fromkeys(map(str, self.parts)))
        return f"{self.label}: {text}" if self.label else text


Leaf = Runs | Known
Evidence = Runs | Known | AtLeast


def every(label: str, parts: Sequence[Evidence]) -> AtLeast:
    """All of them: true if the weakest part is shown (an intersection-union test), false by Holm's first step."""
    return AtLeast(label, len(parts), parts)


def all_sets(parts: Sequence[Evidence]) -> AtLeast:
    """All of some parts that rest on different data: false by Fisher's sum, which several weak failures reach too."""
    return AtLeast("", len(parts), parts, independent=True)


def most(label: str, parts: Sequence[Evidence]) -> AtLeast:
    """More than half of parts that rest on different data."""
    return AtLeast(label, len(parts) // 2 + 1, parts, independent=True)


def partial_conjunction(p: Array, needed: int, independent: bool) -> Array:
    """P-value of "at least `needed` of these hypotheses are true" from p-values [parts, draws] of each.

    After Benjamini and Heller (2008): were fewer true, then of the parts with the largest p-values so many as can be
    left over were all false. These are combined by Fisher's sum where the parts are independent, else by Bonferroni.
    """
    if needed > len(p):
        return np.ones(p.shape[1])
    largest = np.sort(p, axis=0)[needed - 1 :]
    if independent:
        with np.errstate(divide="ignore"):
            combined: Array = chi2.sf(-2 * np.log(largest).sum(axis=0), 2 * len(largest))
        return combined
    bounded: Array = np.minimum(1.0, len(largest) * largest[0])
    return bounded


def power(evidence: Evidence, subsets: bool = False, level: float = LEVEL) -> float:
    """How often the statement would be shown if every part of it were clearly true."""
    own = [leaf.power for leaf in evidence.leaves() if isinstance(leaf, Known) and leaf.p_for is not None]
    if own:
        return max(own)
    p_for, _ = evidence.p_values(Scenario("drawn", subsets, draws=DRAWS))
    return float((p_for <= level).mean())
