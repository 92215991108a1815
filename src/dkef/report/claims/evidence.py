"""What a statement is judged on: tables of results, and comparisons of two models that admit "too close to say"."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from statistics import median
from typing import Any

import pandas as pd

from dkef.metrics.pointwise import METRICS
from dkef.report.figures.look import ALIASES, TITLES, look_of, paper_set
from dkef.results.inputs import OK, DatasetEntry, Key, Request

AGREEMENT = 0.75  # share of seeds that must agree on which of two models is better
FEW_SEEDS = 3  # with fewer, the standard error over test points decides
ERRORS = 2.0  # standard errors that a difference must exceed then

# Which of two models is better: the first, the second, too close to say; None where one of them has no value.
AHEAD, BEHIND, CLOSE = 1, -1, 0
Order = int | None


@dataclass(frozen=True)
class Evidence:
    """All results of one experiment, as the rules see them."""

    request: Request
    metrics: pd.DataFrame
    summary: pd.DataFrame
    grids: Mapping[Key, Mapping[str, Any]] = field(default_factory=dict)  # facts of the grid stage

    def sets(self, *names: str) -> list[DatasetEntry]:
        """Datasets of the experiment that are, or are parts of, the paper's sets of these names."""
        return [entry for entry in self.request.ordered() if paper_set(entry.name) in names]

    def values(self, dataset: str, model: str, metric: str) -> dict[int, tuple[float, float]]:
        """Value and standard error (NaN where there is none) of each valid run, by seed."""
        m = self.metrics
        rows = m[(m["dataset"] == dataset) & (m["model"] == model) & (m["metric"] == metric) & (m["status"] == OK)]
        numbers = zip(rows["seed"], rows["value"], rows["stderr"], strict=True)
        return {int(seed): (float(value), float(error)) for seed, value, error in numbers if math.isfinite(value)}

    def median(self, dataset: str, model: str, metric: str) -> float:
        """The summary's median; NaN where there is none, or where most of the values behind it are not trusted."""
        value, trusted = self.any_median(dataset, model, metric)
        return value if trusted else math.nan

    def any_median(self, dataset: str, model: str, metric: str) -> tuple[float, bool]:
        """The summary's median, and whether at least half of the values behind it are trusted."""
        s = self.summary
        rows = s[(s["dataset"] == dataset) & (s["model"] == model) & (s["metric"] == metric)]
        if rows.empty:
            return math.nan, True
        row = rows.iloc[0]
        return float(row["median"]), bool(row["runs_ok"] >= row["runs_untrusted"])

    def invalid(self, dataset: str, model: str, metric: str) -> tuple[int, int]:
        """Runs without a valid value, and all runs."""
        s = self.summary
        rows = s[(s["dataset"] == dataset) & (s["model"] == model) & (s["metric"] == metric)]
        if rows.empty:
            return 0, 0
        row = rows.iloc[0]
        return int(row["runs_diverged"] + row["runs_invalid"]), int(row["runs"])

    def mass(self, dataset: str, model: str, region: str) -> float:
        """Median over seeds of the share of a model's mass in a region; NaN where no grid has it."""
        shares = self.masses(dataset, model, region)
        return median(shares) if shares else math.nan

    def masses(self, dataset: str, model: str, region: str) -> list[float]:
        """Share of a model's mass in a region, seed by seed."""
        cells = ((key, facts) for key, facts in sorted(self.grids.items()) if key[:2] == (dataset, model))
        return [facts["masses"][region] for _, facts in cells if region in facts.get("masses", {})]

    def true_mass(self, dataset: str, region: str) -> float:
        """The truth's share of mass in a region."""
        for key, facts in self.grids.items():
            if key[0] == dataset and region in facts.get("true_masses", {}):
                return float(facts["true_masses"][region])
        return math.nan

    def ahead(self, dataset: str, metric: str, first: str, second: str) -> Order:
        """Which of two models is better on a set, over the seeds at which both have a value.

        With three seeds or more: three quarters of them must agree. With fewer: every difference must exceed two
        standard errors of the two test means together.
        """
        one, two = self.values(dataset, first, metric), self.values(dataset, second, metric)
        common = sorted(one.keys() & two.keys())
        if not common:
            return None
        sign = 1.0 if METRICS[metric] else -1.0
        gains = [sign * (one[seed][0] - two[seed][0]) for seed in common]
        if len(common) >= FEW_SEEDS:
            share = sum(gain > 0 for gain in gains) / len(gains)
            return AHEAD if share >= AGREEMENT else BEHIND if 1 - share >= AGREEMENT else CLOSE
        errors = [ERRORS * math.hypot(one[seed][1], two[seed][1]) for seed in common]
        if all(gain > error for gain, error in zip(gains, errors, strict=True)):
            return AHEAD
        if all(-gain > error for gain, error in zip(gains, errors, strict=True)):
            return BEHIND
        return CLOSE

    def best(self, dataset: str, metric: str, model: str, rivals: Sequence[str], least: int = 2) -> Order:
        """Whether a model is better than all rivals (ahead), worse than one (behind), or neither for sure."""
        orders = [self.ahead(dataset, metric, model, rival) for rival in rivals]
        known = [order for order in orders if order is not None]
        if len(known) < least:
            return None
        return BEHIND if BEHIND in known else CLOSE if CLOSE in known else AHEAD

    def run_on(self, dataset: str, models: Sequence[str]) -> list[str]:
        """Those of the models that the experiment has on a dataset, by the names it uses."""
        entry = next(entry for entry in self.request.datasets if entry.name == dataset)
        canonical = {ALIASES.get(name, name): name for name in entry.models}
        return [canonical[name] for name in models if name in canonical]


def title(entry: DatasetEntry) -> str:
    """A dataset's name in the numbers of a verdict; a subset says so."""
    name = TITLES.get(paper_set(entry.name) or "", entry.title)
    return f"{name} (subset)" if entry.subset_of else name


def listed(evidence: Evidence, entry: DatasetEntry, metric: str, models: Sequence[str], digits: int = 3) -> str:
    """Medians of some models on a set, in words: "Ring: DKEF-G-15 0.12, MAF 0.4"."""
    medians = [(model, *evidence.any_median(entry.name, model, metric)) for model in models]
    shown = [
        f"{look_of(m).label} {value:.{digits}g}" + ("" if trusted else " (log Z not trusted)")
        for m, value, trusted in medians
        if math.isfinite(value)
    ]
    return f"{title(entry)}: {', '.join(shown) or 'no value'}"
