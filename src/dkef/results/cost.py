"""What the jobs of an experiment will cost, from what jobs have cost.

Training and log Z of the paper's models have the means of the published reproduction, results/published/reproduction;
all else stands in results/published/resources/rates.csv. A job costs what the same stage took with the same model on
the same dataset. Where that was never run, it is scaled from the closest run: the cheapest job of a stage is taken for
start-up, and the rest grows with rows and dimension by the powers below. Jobs that draw samples cost in proportion to
them. Training ends at the model's time budget.
"""

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from dkef.config.jobs import Job
from dkef.config.plan import Plan
from dkef.core.tables import read_table
from dkef.results.tables import CELLS

COLUMNS = ("stage", "dataset", "model", "samples", "cpu_seconds", "source")
SIZES = ("dataset", "rows", "dimension")
# Powers of rows and dimension. Training takes minibatches of a fixed size; their number grows with the rows only where
# it is counted in epochs. Sampling log Z hardly depends on either, and comparisons look at a limited number of rows.
POWERS = {"preprocess": (1, 1), "train": (0, 1), "evaluate": (1, 1), "normalise_target": (0, 1), "proposals": (0, 1)}
IN_EPOCHS = (1, 1)
NOISE = 0.5  # seconds by which start-up differs from job to job; they do not grow


@dataclass(frozen=True)
class Rate:
    """What one job took, or several of the same kind on average."""

    stage: str
    dataset: str
    model: str
    samples: float  # 0 where the job draws none
    cpu_seconds: float


@dataclass(frozen=True)
class Estimate:
    """Core-seconds of a job and how they are known: measured | scaled | unknown."""

    seconds: float
    known: str


def read_rates(folder: Path) -> list[Rate]:
    """rates.csv of a folder, and the means of the bundle beside it, which go before."""
    table = read_table(folder / "rates.csv", COLUMNS, numbers=("samples", "cpu_seconds"))
    listed = [Rate(*row) for row in table[list(COLUMNS[:-1])].itertuples(index=False, name=None)]
    published = published_rates(folder.with_name("reproduction") / "cells.csv")
    known = {(rate.stage, rate.dataset, rate.model) for rate in published}
    return published + [rate for rate in listed if (rate.stage, rate.dataset, rate.model) not in known]


def published_rates(cells: Path) -> list[Rate]:
    """Mean seconds of training and of log Z to a tolerance, by dataset and model; none where there is no such file."""
    if not cells.is_file():
        return []
    seconds = {"train": "train_seconds", "normalise_target": "normalise_seconds"}
    table = read_table(cells, CELLS, numbers=tuple(seconds.values()))
    means = table.groupby(["dataset", "model"], as_index=False)[list(seconds.values())].mean()
    return [
        Rate(stage, dataset, model, 0.0, found)
        for stage, column in seconds.items()
        for dataset, model, found in means[["dataset", "model", column]].dropna().itertuples(index=False, name=None)
    ]


def read_sizes(folder: Path) -> dict[str, tuple[float, float]]:
    """Rows and dimension of datasets, from datasets.csv of a folder."""
    table = read_table(folder / "datasets.csv", SIZES, numbers=SIZES[1:])
    return {name: (rows, dimension) for name, rows, dimension in table.itertuples(index=False, name=None)}


def memory_requests(rules: Path) -> dict[str, int]:
    """Megabytes that each rule of the workflow asks for at first, from the rules' own text."""
    text = "\n".join(path.read_text() for path in sorted(rules.glob("*.smk")))
    parts = re.split(r"^rule (\w+):$", text, flags=re.MULTILINE)[1:]
    found = {
        rule: re.search(r"mem_mb=growing\((\d+)\)", body) for rule, body in zip(parts[::2], parts[1::2], strict=True)
    }
    return {rule: int(match[1]) for rule, match in found.items() if match}


class CostModel:
    """Estimates of the jobs of one experiment."""

    def __init__(self, plan: Plan, rates: Sequence[Rate], sizes: Mapping[str, tuple[float, float]]) -> None:
        self.plan = plan
        self.rates = rates
        self.sizes = sizes
        self._done: dict[tuple[str, str, str, int], Estimate] = {}

    def estimate(self, job: Job) -> Estimate:
        """Jobs that differ only in their seed or chunk cost the same."""
        key = (job.stage, job.dataset, job.model, job.samples)
        if key not in self._done:
            self._done[key] = self._estimate(job)
        return self._done[key]

    def _estimate(self, job: Job) -> Estimate:
        of_stage = [rate for rate in self.rates if rate.stage == job.stage]
        if not of_stage:
            return Estimate(0.0, "unknown")
        same = [rate for rate in of_stage if (rate.dataset, rate.model) == (job.dataset, job.model)]
        closest = same or self._closest(of_stage, job)
        least = min(rate.cpu_seconds for rate in of_stage)
        seconds = sum(self._scaled(rate, job, least) for rate in closest) / len(closest)
        if job.stage == "train":
            budget = getattr(self.plan.spec(job.dataset, job.model), "time_budget_hours", None) or math.inf
            seconds = min(seconds, 3600 * budget * self.plan.cell(job.dataset, job.model).compute.threads)
        return Estimate(seconds, "measured" if same else "scaled")

    def _closest(self, rates: Sequence[Rate], job: Job) -> list[Rate]:
        """Of the same model, else of its family, else of any: the rates on the dataset nearest in size."""
        variant = self.plan.experiment.models.get(job.model)
        model = variant.of if variant else job.model
        for alike in (lambda name: name == model, lambda name: family(name) == family(model), lambda name: True):
            found = [rate for rate in rates if alike(rate.model)]
            if found:
                nearest = min(self._distance(rate, job) for rate in found)
                return [rate for rate in found if self._distance(rate, job) == nearest]
        raise AssertionError("any rate will do for the last comparison")

    def _scaled(self, rate: Rate, job: Job, least: float) -> float:
        """Core-seconds of a job by a rate; `least` is the start-up of its stage."""
        if job.samples and rate.samples:
            return rate.cpu_seconds * job.samples / rate.samples
        powers = POWERS.get(job.stage, (0, 0))
        if job.stage == "train" and getattr(self.plan.spec(job.dataset, job.model), "patience_unit", "") == "epochs":
            powers = IN_EPOCHS
        mine, theirs = self._size(job.dataset), self.sizes.get(rate.dataset)
        if mine is None or theirs is None:
            return rate.cpu_seconds
        growth = math.prod((a / b) ** power for a, b, power in zip(mine, theirs, powers, strict=True))
        fixed = min(rate.cpu_seconds, least + NOISE)
        return fixed + (rate.cpu_seconds - fixed) * growth

    def _distance(self, rate: Rate, job: Job) -> float:
        mine, theirs = self._size(job.dataset), self.sizes.get(rate.dataset)
        if mine is None or theirs is None:
            return math.inf
        return sum(abs(math.log(a / b)) for a, b in zip(mine, theirs, strict=True))

    def _size(self, dataset: str) -> tuple[float, float] | None:
        """Rows and dimension of a dataset of the experiment, where they are known before it is prepared."""
        if not dataset:
            return None
        density = self.plan.source(dataset).true_density()
        if density is not None:
            return float(self.plan.source(dataset).rows), float(density.dimension)
        variant = self.plan.experiment.datasets.get(dataset)
        return self.sizes.get(variant.of if variant else dataset)


def family(model: str) -> str:
    """dkef of dkef_g15, maf of mixture_maf_mog: names of models begin with what they vary."""
    return model.removeprefix("mixture_").partition("_")[0]
