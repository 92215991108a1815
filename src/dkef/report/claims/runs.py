"""From results to leaves of evidence: in how many runs of a set does a model have a property?"""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from statistics import median

from dkef.report.claims.evidence import Evidence, Runs, all_sets, most
from dkef.results.experiment import DatasetEntry
from dkef.results.lookup import Results, Run
from dkef.results.names import TITLES, label_of, paper_set

LIKELY, LOSS, FSSD, P_VALUE, FISHER = "log_likelihood", "score_loss", "fssd2", "fssd_p_value", "fisher_divergence"
LIKELIHOOD = ("made", "made_mog", "maf", "maf_mog", "real_nvp")
BySeed = Mapping[int, Run]


@dataclass(frozen=True)
class PaperSet:
    """One of the paper's sets as it was run, with all results."""

    results: Results
    entry: DatasetEntry

    @property
    def title(self) -> str:
        """Its name in the numbers of a verdict; a subset says so."""
        name = TITLES.get(paper_set(self.entry.name) or "", self.entry.title)
        return f"{name} (subset)" if self.entry.subset_of else name

    @property
    def main_model(self) -> str:
        """The paper's own model of this set, whose name those of its variants begin with."""
        return "dkef_g15" if self.entry.synthetic else "dkef"

    def values(self, model: str, metric: str) -> BySeed:
        """A metric of a model by seed, under the name that the experiment gives to the model."""
        own = self.entry.run_of(model)
        return self.results.runs(self.entry.name, own, metric) if own else {}

    def each(self, models: Sequence[str], metric: str) -> list[BySeed]:
        """The same for some models."""
        return [self.values(model, metric) for model in models]

    def median_rival(self, metric: str) -> BySeed:
        """A metric of the median likelihood model, seed by seed."""
        return combined(self.each(LIKELIHOOD, metric))

    def masses(self, model: str, region: str) -> BySeed:
        """The share of a model's mass in a region of the plane, by seed."""
        own = self.entry.run_of(model)
        return {
            seed: Run(float(grid.facts["masses"][region]), math.nan)
            for (dataset, name, seed), grid in sorted(self.results.grids.items())
            if (dataset, name) == (self.entry.name, own) and grid.facts.get("status", "ok") == "ok"
            and region in grid.facts.get("masses", {})
        }  # fmt: skip

    def per_run(
        self, sources: Sequence[BySeed], gain: Callable[..., float], label: str = "", doubts_count: bool = True
    ) -> Runs:
        """Runs in which a function of some values of the same seed is above zero (wins) or below it (losses).

        Seeds at which one of the values is missing are left out, as the paper leaves out invalid runs. A doubtful
        value, or a gain of exactly zero, counts for neither side, but as a run.
        """
        seeds = sorted(set[int]().union(*sources).intersection(*sources)) if sources else []
        gains = {seed: gain(*(source[seed].value for source in sources)) for seed in seeds}
        gains = {seed: value for seed, value in gains.items() if not math.isnan(value)}
        doubtful = {s for s in gains if doubts_count and not all(source[s].trusted for source in sources)}
        sure = [value for seed, value in gains.items() if seed not in doubtful]
        return Runs(
            label or self.title, sum(value > 0 for value in sure), sum(value < 0 for value in sure), len(gains),
            subset=self.entry.subset_of is not None,
            detail=f"median {median(gains.values()):+.2g}" if gains else "not run",
        )  # fmt: skip

    def above(self, first: BySeed, second: BySeed, margin: float = 0.0, label: str = "") -> Runs:
        """Runs in which the first value is above the second, or at most `margin` below it."""
        return self.per_run([first, second], lambda one, two: one - two + margin, label)

    def ahead(self, metric: str, first: str, second: str, label: str = "") -> Runs:
        """Runs in which the first model is better than the second."""
        one, two = self.each((first, second), metric)
        higher, lower = (one, two) if metric == LIKELY else (two, one)
        return self.above(higher, lower, label=label)


def set_of(results: Results, name: str) -> PaperSet | None:
    """The paper's set of this name as it was run: whole if there is such a run, else a part of it."""
    entries = sorted(results.info.of_paper(name), key=lambda entry: entry.subset_of is not None)
    return PaperSet(results, entries[0]) if entries else None


def on_sets(results: Results, names: Sequence[str], rule: Callable[[PaperSet], Evidence]) -> list[Evidence]:
    """Evidence from each of some sets of the paper, in this order."""
    found = [(name, set_of(results, name)) for name in names]
    return [rule(own) if own else Runs(TITLES.get(name, name)) for name, own in found]


def on_all(names: Sequence[str], rule: Callable[[PaperSet], Evidence]) -> Callable[[Results], Evidence]:
    """The statement that a rule is kept on each of some sets."""
    return lambda results: all_sets(on_sets(results, names, rule))


def on_most(names: Sequence[str], rule: Callable[[PaperSet], Evidence]) -> Callable[[Results], Evidence]:
    """The statement that a rule is kept on more than half of some sets."""
    return lambda results: most("", on_sets(results, names, rule))


def derived(value: float, *runs: Run) -> Run:
    """A number computed from some runs; doubtful if one of them is."""
    return Run(value, math.nan, next((run.status for run in runs if not run.trusted), "ok"))


def combined(sources: Sequence[BySeed], how: Callable[[Sequence[float]], float] = median, least: int = 3) -> BySeed:
    """The median, or another summary, over several models, seed by seed, where at least so many have a value."""
    found = {}
    for seed in sorted(set[int]().union(*sources)):
        runs = [source[seed] for source in sources if seed in source]
        if len(runs) >= least:
            found[seed] = derived(how([run.value for run in runs]), *runs)
    return found


def medians(own: PaperSet, metric: str, models: Sequence[str]) -> str:
    """Medians of some models in words: "Ring: DKEF-G-15 0.12, MAF 0.4"; nothing where there are none."""
    found = {m: [run.value for run in own.values(m, metric).values()] for m in models}
    shown = [f"{label_of(m)} {median(numbers):.4g}" for m, numbers in found.items() if numbers]
    return f"{own.title}: {', '.join(shown)}" if shown else ""
