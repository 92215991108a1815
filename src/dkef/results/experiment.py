"""What a report knows of an experiment: its datasets, models and seeds, from a job's slice of the configuration."""

import json
from dataclasses import dataclass, field

from dkef.config.typed import typed
from dkef.results.names import ALIASES, dataset_order, paper_set


@dataclass(frozen=True)
class DatasetEntry:
    """A dataset of the experiment."""

    name: str
    title: str
    models: tuple[str, ...]
    seeds: tuple[int, ...]
    synthetic: bool = False
    subset_of: str | None = None
    reference: str | None = None  # the model with which fssd_p_value compares the others
    by_q0: tuple[str, ...] = ()  # models whose log Z rests on a given number of samples from q0, as the paper's
    runs: dict[str, int] = field(default_factory=dict)  # planned for each model, where they differ or are not finished
    beside: tuple[str, ...] = ()  # variants that only some of their models' datasets have: in tables, not in figures
    variant_of: str | None = None  # the dataset of the same experiment that this one varies

    def planned(self, model: str) -> int:
        """Runs that the experiment has of a model, finished or not."""
        return self.runs.get(model, len(self.seeds))

    def run_of(self, model: str) -> str | None:
        """The name that the experiment gives to one of the paper's models; None where it was not run here."""
        return {ALIASES.get(name, name): name for name in self.models}.get(model)


@dataclass(frozen=True)
class ExperimentInfo:
    """The experiment that a figure, a page or a claim is about."""

    experiment: str
    title: str
    datasets: tuple[DatasetEntry, ...]
    reduced: str | None = None  # how this run is smaller than the paper's; printed in the figure
    paper_budgets: bool = False  # `reduced` concerns sets and seeds only: a claim on whole sets can be decided
    claims: tuple[str, ...] = ()  # that the experiment was planned to decide; none named: all

    @classmethod
    def parse(cls, text: str) -> "ExperimentInfo":
        """From a job's JSON slice."""
        return typed(cls, json.loads(text), lambda key: "--config")

    def ordered(self, synthetic: bool | None = None) -> list[DatasetEntry]:
        """Datasets in the paper's order; only the synthetic or only the other ones where asked."""
        by_name = {entry.name: entry for entry in self.datasets}
        entries = [by_name[name] for name in dataset_order(list(by_name))]
        return [entry for entry in entries if synthetic is None or entry.synthetic == synthetic]

    def of_paper(self, *names: str) -> list[DatasetEntry]:
        """Datasets that are, or are parts of, the paper's sets of these names."""
        return [entry for entry in self.ordered() if paper_set(entry.name) in names]
