"""Which of two models is better on a set, with a third answer: too close to say."""

import math
from collections.abc import Sequence
from statistics import median

from dkef.metrics.registry import METRICS
from dkef.results.experiment import DatasetEntry
from dkef.results.lookup import Results
from dkef.results.names import TITLES, label_of, paper_set

AGREEMENT = 0.75  # share of seeds that must agree on which of two models is better
FEW_SEEDS = 3  # with fewer, the standard error over test points decides
ERRORS = 2.0  # standard errors that a difference must exceed then

# Which of two models is better: the first, the second, too close to say; None where one of them has no value.
AHEAD, BEHIND, CLOSE = 1, -1, 0
Order = int | None


def ahead(results: Results, dataset: str, metric: str, first: str, second: str) -> Order:
    """Which of two models is better on a set, over the seeds at which both have a trusted value.

    With three seeds or more: three quarters of them must agree. With fewer: every difference must exceed two
    standard errors of the two test means together.
    """
    one, two = (results.runs(dataset, model, metric) for model in (first, second))
    common = [seed for seed in one if seed in two and one[seed].trusted and two[seed].trusted]
    if not common:
        return None
    sign = 1.0 if METRICS[metric].more_is_better else -1.0
    gains = [sign * (one[seed].value - two[seed].value) for seed in common]
    if len(common) >= FEW_SEEDS:
        share = sum(gain > 0 for gain in gains) / len(gains)
        return AHEAD if share >= AGREEMENT else BEHIND if 1 - share >= AGREEMENT else CLOSE
    errors = [ERRORS * math.hypot(one[seed].stderr, two[seed].stderr) for seed in common]
    if all(gain > error for gain, error in zip(gains, errors, strict=True)):
        return AHEAD
    if all(-gain > error for gain, error in zip(gains, errors, strict=True)):
        return BEHIND
    return CLOSE


def best(results: Results, dataset: str, metric: str, model: str, rivals: Sequence[str], least: int = 2) -> Order:
    """Whether a model is better than all rivals (ahead), worse than one (behind), or neither for sure."""
    orders = [ahead(results, dataset, metric, model, rival) for rival in rivals]
    known = [order for order in orders if order is not None]
    if len(known) < least:
        return None
    return BEHIND if BEHIND in known else CLOSE if CLOSE in known else AHEAD


def median_mass(results: Results, dataset: str, model: str, region: str) -> float:
    """Median over seeds of the share of a model's mass in a region; NaN where no grid has it."""
    shares = results.masses(dataset, model, region)
    return median(shares) if shares else math.nan


def title(entry: DatasetEntry) -> str:
    """A dataset's name in the numbers of a verdict; a subset says so."""
    name = TITLES.get(paper_set(entry.name) or "", entry.title)
    return f"{name} (subset)" if entry.subset_of else name


def listed(results: Results, entry: DatasetEntry, metric: str, models: Sequence[str], digits: int = 3) -> str:
    """Medians of some models on a set, in words: "Ring: DKEF-G-15 0.12, MAF 0.4"."""
    medians = [(model, results.median(entry.name, model, metric)) for model in models]
    shown = [
        f"{label_of(model)} {found.value:.{digits}g}" + ("" if found.trusted else " (log Z not trusted)")
        for model, found in medians
        if math.isfinite(found.value)
    ]
    return f"{title(entry)}: {', '.join(shown) or 'no value'}"
