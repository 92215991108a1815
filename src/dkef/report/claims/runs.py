"""From results to leaves of evidence: in how many runs does a model have a property?"""

import math
from collections.abc import Callable, Mapping, Sequence
from statistics import median

from dkef.report.claims.evidence import Evidence, Runs
from dkef.results.experiment import DatasetEntry
from dkef.results.lookup import Results, Run
from dkef.results.names import TITLES, label_of, paper_set

LIKELY, LOSS, FSSD, P_VALUE, FISHER = "log_likelihood", "score_loss", "fssd2", "fssd_p_value", "fisher_divergence"
LIKELIHOOD = ("made", "made_mog", "maf", "maf_mog", "real_nvp")
BySeed = Mapping[int, Run]


def set_of(results: Results, name: str) -> DatasetEntry | None:
    """The paper's set of this name as it was run: whole if there is such a run, else a part of it."""
    entries = sorted(results.info.of_paper(name), key=lambda entry: entry.subset_of is not None)
    return entries[0] if entries else None


def on_sets(
    results: Results, names: Sequence[str], build: Callable[[DatasetEntry], Evidence]
) -> list[Evidence]:  # one part for each set, in this order
    """Evidence from each of some sets of the paper."""
    found = [(name, set_of(results, name)) for name in names]
    return [build(entry) if entry else Runs(TITLES.get(name, name)) for name, entry in found]


def title(entry: DatasetEntry) -> str:
    """A dataset's name in the numbers of a verdict; a subset says so."""
    name = TITLES.get(paper_set(entry.name) or "", entry.title)
    return f"{name} (subset)" if entry.subset_of else name


def per_run(
    label: str,
    entry: DatasetEntry,
    sources: Sequence[BySeed],
    gain: Callable[..., float],
    share: float = 0.5,
    doubts_count: bool = True,
) -> Runs:
    """Runs in which a function of some values of the same seed is above zero (wins) or below it (losses).

    Seeds at which one of the values is missing are left out, as the paper leaves out invalid runs. A doubtful value, or
    a gain of exactly zero, counts for neither side, but as a run.
    """
    seeds = sorted(set[int]().union(*sources).intersection(*sources)) if sources else []
    gains = {seed: gain(*(source[seed].value for source in sources)) for seed in seeds}
    gains = {seed: value for seed, value in gains.items() if not math.isnan(value)}
    doubtful = {s for s in gains if doubts_count and not all(source[s].trusted for source in sources)}
    sure = [value for seed, value in gains.items() if seed not in doubtful]
    return Runs(
        label, sum(value > 0 for value in sure), sum(value < 0 for value in sure), len(gains), share,
        entry.subset_of is not None, f"median {median(gains.values()):+.2g}" if gains else "not run",
    )  # fmt: skip


def values(results: Results, entry: DatasetEntry, model: str, metric: str) -> BySeed:
    """A metric of a model by seed, under the name that the experiment gives to the model."""
    return {seed: run for own in entry.run_of([model]) for seed, run in results.runs(entry.name, own, metric).items()}


def masses(results: Results, entry: DatasetEntry, model: str, region: str) -> BySeed:
    """The share of a model's mass in a region of the plane, by seed."""
    own = entry.run_of([model])
    return {
        seed: Run(float(grid.facts["masses"][region]), math.nan)
        for (dataset, name, seed), grid in sorted(results.grids.items())
        if dataset == entry.name and name in own and grid.facts.get("status", "ok") == "ok"
        and region in grid.facts.get("masses", {})
    }  # fmt: skip


def derived(value: float, *runs: Run) -> Run:
    """A number computed from some runs; doubtful if one of them is."""
    return Run(value, math.nan, next((run.status for run in runs if not run.trusted), "ok"))


def median_of(sources: Sequence[BySeed], least: int = 3) -> BySeed:
    """The median over several models, seed by seed, where at least so many have a value; doubtful if one of them is."""
    found = {}
    for seed in sorted(set[int]().union(*sources)):
        runs = [source[seed] for source in sources if seed in source]
        if len(runs) >= least:
            found[seed] = derived(median(run.value for run in runs), *runs)
    return found


def best_of(results: Results, entry: DatasetEntry, models: Sequence[str], metric: str) -> BySeed:
    """The best value of some models, seed by seed, over those with a valid run; none unless all models were run."""
    sources = [values(results, entry, model, metric) for model in models]
    if not all(sources):
        return {}
    best = max if metric.startswith(LIKELY) else min
    seeds = sorted(set[int]().union(*sources))
    runs = {seed: [source[seed] for source in sources if seed in source] for seed in seeds}
    return {seed: derived(best(run.value for run in found), *found) for seed, found in runs.items()}


def median_rival(results: Results, entry: DatasetEntry, metric: str) -> BySeed:
    """A metric of the median likelihood model, seed by seed."""
    return median_of([values(results, entry, model, metric) for model in LIKELIHOOD])


def ahead(results: Results, entry: DatasetEntry, metric: str, first: str, second: str, label: str = "") -> Runs:
    """Runs in which the first model is better than the second."""
    sign = 1.0 if metric.startswith(LIKELY) else -1.0
    sources = [values(results, entry, model, metric) for model in (first, second)]
    return per_run(label or label_of(second), entry, sources, lambda a, b: sign * (a - b))


def medians(results: Results, entry: DatasetEntry, metric: str, models: Sequence[str]) -> str:
    """Medians of some models in words: "Ring: DKEF-G-15 0.12, MAF 0.4"; nothing where there are none."""
    found = {m: [run.value for run in values(results, entry, m, metric).values()] for m in models}
    shown = [f"{label_of(m)} {median(numbers):.4g}" for m, numbers in found.items() if numbers]
    return f"{title(entry)}: {', '.join(shown)}" if shown else ""
