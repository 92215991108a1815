"""An experiment as a grid of cells, and the slice of the configuration that each job of a cell reads."""

import functools
import os
import sys
from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Self

from dkef.config.compose import OverrideError, compose_cell
from dkef.config.experiment import (
    CommandLine,
    Suite,
    Variant,
    check_names,
    experiment_file,
    load_experiment,
    models_beside,
    split_name,
    varied_sets,
)
from dkef.config.files import ABSENT, check_choice, entry_at
from dkef.config.kept_cells import KeptCells
from dkef.config.schema.cell import Cell
from dkef.config.specification import is_normalised, log_z_obstacle
from dkef.config.typed import instantiate, plain, typed
from dkef.core.errors import ConfigError
from dkef.core.provenance import canonical, code_version

# For glibc, in bytes: arrays of up to 32 MiB come from memory that a job keeps. Otherwise freed memory goes back, and a
# training has the same pages mapped again at every step (DKEF-L-50 on Ring: 237,000 page faults instead of 84,000).
KEEP_MEMORY = {"MALLOC_MMAP_THRESHOLD_": str(32 << 20), "MALLOC_TRIM_THRESHOLD_": str(512 << 20)}


class Plan:
    """The grid of one experiment: which cells there are, and what each stage of a cell is given."""

    def __init__(self, name: str, overrides: tuple[str, ...] = ()) -> None:
        self.name = name
        self.experiment = load_experiment(name)
        self.file = experiment_file(name)
        self.overrides = overrides
        self._kept = KeptCells(name)
        self._suite_of: dict[tuple[str, str], str] = {}
        self.cells: list[tuple[str, str, int]] = []
        for label, suite in self.experiment.suites.items():
            self._add(label, suite)
        self._check_names()

    @classmethod
    def of_command_line(cls, config: Mapping[str, Any]) -> Self:
        """The plan that `snakemake --config` asks for."""
        given = typed(CommandLine, config, lambda key: "--config")
        overrides = [given.overrides] if isinstance(given.overrides, str) else given.overrides
        return cls(given.experiment, tuple(overrides))

    def _add(self, label: str, suite: Suite) -> None:
        where = f"{self.file}, suite {label}"
        for group, names, variants in (
            ("dataset", suite.datasets, self.experiment.datasets),
            ("model", suite.models, self.experiment.models),
        ):
            for name in names:
                check_choice(group, variants[name].of if name in variants else name, where)
        seeds = range(suite.first_seed, suite.first_seed + suite.seeds)
        for dataset in suite.datasets:
            for model in suite.models:
                if (dataset, model) in self._suite_of:
                    raise ConfigError(
                        f"{where}: {dataset} x {model} stands in an earlier suite; give one a variant's name"
                    )
                self._suite_of[dataset, model] = label
                self.cells += [(dataset, model, seed) for seed in seeds]

    def _check_names(self) -> None:
        everything = [name for cell in self._suite_of for name in cell]
        check_names(self.overrides, everything, "--config overrides")
        for label, suite in self.experiment.suites.items():
            check_names(suite.overrides, suite.datasets + suite.models, f"{self.file}, suite {label}")
        for key, variants in (("datasets", self.experiment.datasets), ("models", self.experiment.models)):
            for name, variant in variants.items():
                check_names(variant.overrides, everything, f"{self.file}, {key}.{name}")

    def check(self) -> None:
        """Compose every cell, so that a mistake stops the run before any job starts."""
        prepared: dict[str, str] = {}
        for dataset, model in self._suite_of:
            text = canonical(plain(self.cell(dataset, model).dataset))
            if prepared.setdefault(dataset, text) != text:
                raise ConfigError(
                    f"{self.file}: dataset {dataset} is prepared in two ways; "
                    "give one of them a variant's name under `datasets`"
                )
            if obstacle := log_z_obstacle(self.spec(dataset, model), self.cell(dataset, model).normaliser):
                raise ConfigError(f"{self.file}: model {model} {obstacle}")
        self._kept.write()

    @functools.cache  # noqa: B019 - a plan lives as long as the process
    def cell(self, dataset: str, model: str) -> Cell:
        """The whole configuration of a (dataset, model) of this experiment."""
        given = list(self._overrides(dataset, model))
        try:
            return compose_cell((*self._choices(dataset, model), *(override for _, override in given)), self._kept)
        except OverrideError as error:
            where = next((place for place, override in reversed(given) if override == error.override), self.file)
            raise ConfigError(f"{where}, {error}{self._others_with(error, dataset, model)}") from None

    def _choices(self, dataset: str, model: str) -> tuple[str, str]:
        of = self.experiment.datasets.get(dataset, Variant(dataset)).of
        return f"dataset={of}", f"model={self._variant(model).of}"

    def _overrides(self, dataset: str, model: str) -> Iterator[tuple[str, str]]:
        """What changes the defaults of a cell, later ones winning, each with the place where it was given."""
        label = self._suite_of.get((dataset, model))
        if label is None:
            raise ConfigError(f"experiment {self.name} has no cell {dataset} x {model}")
        for where, overrides in (
            (f"{self.file}, suite {label}", self.experiment.suites[label].overrides),
            (f"{self.file}, datasets.{dataset}", self.experiment.datasets.get(dataset, Variant(dataset)).overrides),
            (f"{self.file}, models.{model}", self._variant(model).overrides),
            ("--config overrides", self.overrides),
        ):
            for name, override in map(split_name, overrides):
                if name in (None, dataset, model):
                    yield where, override

    def _others_with(self, error: OverrideError, dataset: str, model: str) -> str:
        """Which models or datasets of the experiment have a key that this cell has not; nothing if none has."""
        group, *steps = (error.unknown_key or "").split(".")
        if group not in ("model", "dataset"):
            return ""
        place = ("dataset", "model").index(group)
        having = []
        for other in dict.fromkeys(self._suite_of):
            known = plain(compose_cell(self._choices(*other)))[group]
            if entry_at(known, steps) is not ABSENT and other[place] not in having:
                having.append(other[place])
        if not having:
            return ""
        return (
            f"; {group} {(dataset, model)[place]} has no such key, of this experiment {', '.join(having)} "
            f"{'have' if len(having) > 1 else 'has'} it: "
            f'name one in front, as in "{having[0]}: {error.override}"'
        )

    def _variant(self, model: str) -> Variant:
        return self.experiment.models.get(model, Variant(model))

    def datasets(self) -> list[str]:
        """Names of all datasets, in the experiment's order."""
        return list(dict.fromkeys(dataset for dataset, _, _ in self.cells))

    @functools.cache  # noqa: B019
    def models(self, dataset: str) -> list[str]:
        """Names of all models run on a dataset, in the experiment's order."""
        return list(dict.fromkeys(model for name, model, _ in self.cells if name == dataset))

    def seeds(self, dataset: str) -> list[int]:
        return sorted({seed for name, _, seed in self.cells if name == dataset})

    def any_cell(self, dataset: str) -> Cell:
        """The configuration of a dataset, under any of its models: `check` has made sure they agree."""
        return self.cell(dataset, self.models(dataset)[0])

    def synthetic(self, dataset: str) -> bool:
        """Whether the distribution of the data is known; its space is then one- or two-dimensional and can be drawn."""
        return self.source(dataset).true_density() is not None

    @functools.cache  # noqa: B019
    def source(self, dataset: str) -> Any:
        return instantiate(self.any_cell(dataset).dataset.source)

    def spec(self, dataset: str, model: str) -> Any:
        return instantiate(self.cell(dataset, model).model)

    @functools.cache  # noqa: B019
    def normalised(self, dataset: str, model: str) -> bool:
        """Whether the model knows its own log Z; the other ones need the normalise stage."""
        return is_normalised(self.spec(dataset, model))

    def reference(self, dataset: str, model: str, key: str = "reference_model") -> str | None:
        """The model that a p-value compares with, by its key in `comparison`, where it is run on this dataset."""
        reference: str | None = getattr(self.cell(dataset, model).comparison, key)
        return reference if reference in self.models(dataset) else None

    # One canonical text per job: equal exactly when nothing that the job reads has changed.

    def preprocess_slice(self, dataset: str, seed: int) -> str:
        return canonical({"name": dataset, "seed": seed, "dataset": plain(self.any_cell(dataset).dataset)})

    def train_slice(self, dataset: str, model: str, seed: int) -> str:
        cell = self.cell(dataset, model)
        reads = {"of": self._variant(model).of, "spec": cell.model, "threads": cell.compute.threads}
        return canonical(_name(dataset, model, seed) | reads)

    def evaluate_slice(self, dataset: str, model: str, seed: int) -> str:
        cell = self.cell(dataset, model)
        reads = {"batch_rows": cell.evaluation.batch_rows, "threads": cell.compute.threads}
        return canonical(_name(dataset, model, seed) | reads | {"source": cell.dataset.source})

    def grid_slice(self, dataset: str, model: str, seed: int) -> str:
        cell = self.cell(dataset, model)
        reads = {"source": cell.dataset.source, "threads": cell.compute.threads}
        return canonical(_name(dataset, model, seed) | reads)

    def normalise_slice(self, dataset: str, model: str, seed: int) -> str:
        return canonical(_name(dataset, model, seed) | {"normaliser": self._normaliser(dataset, model)})

    def chunk_slice(self, dataset: str, model: str, seed: int) -> str:
        """As `normalise_slice`, less the number of samples: raising it leaves the finished chunks valid."""
        settings = self._normaliser(dataset, model)
        reads = {key: value for key, value in settings.items() if key not in ("samples", "bound_samples", "tolerance")}
        return canonical(_name(dataset, model, seed) | {"normaliser": reads})

    def _normaliser(self, dataset: str, model: str) -> dict[str, Any]:
        """The settings that the chosen proposal reads."""
        settings = self.cell(dataset, model).normaliser
        unread = {"q0": {"defensive_mixture", "annealing"}, "mixture": {"annealing"}}.get(settings.proposal, set())
        return {key: value for key, value in plain(settings).items() if key not in unread}

    def proposals_slice(self, dataset: str, model: str, seed: int) -> str:
        cell = self.cell(dataset, model)
        reads = {key: plain(cell.normaliser)[key] for key in ("percentile", "defensive_mixture", "annealing")}
        return canonical(_name(dataset, model, seed) | {"normaliser": reads, "proposals": plain(cell.proposals)})

    def compare_slice(self, dataset: str, model: str, seed: int) -> str:
        return canonical(_name(dataset, model, seed) | {"comparison": plain(self.cell(dataset, model).comparison)})

    def sensitivity_slice(self, dataset: str, seed: int) -> str:
        cell = self.any_cell(dataset)
        reads = {"comparison": plain(cell.comparison), "sensitivity": plain(cell.sensitivity)}
        return canonical({"dataset": dataset, "seed": seed, "models": self.models(dataset)} | reads)

    def agreement_slice(self) -> str:
        """The settings that other settings are compared with: those of the first dataset."""
        datasets = self.datasets()
        return canonical({"comparison": plain(self.any_cell(datasets[0]).comparison)} if datasets else {})

    def summarise_slice(self) -> str:
        references = {dataset: self.reference(dataset, self.models(dataset)[0]) for dataset in self.datasets()}
        return canonical({"experiment": self.name, "references": references})

    def stage_slice(self, stage: str) -> str:
        """Settings of a stage that belongs to no cell, as far as the experiment changes them."""
        return canonical(self.experiment.stages.get(stage, {}))

    def experiment_slice(self) -> str:
        """Names, titles, models, reference and seeds of all datasets: what figures, claims and pages are given."""
        undrawn, of = self.undrawn(), varied_sets(self.experiment, self._suite_of)
        entries = [
            {
                "name": dataset,
                "title": self.any_cell(dataset).dataset.title,
                "subset_of": self.any_cell(dataset).dataset.subset_of,
                "synthetic": self.synthetic(dataset),
                "models": self.models(dataset),
                "reference": self.reference(dataset, self.models(dataset)[0]),
                "seeds": self.seeds(dataset),
                "by_q0": [model for model in self.models(dataset) if self.by_q0(dataset, model)],
                "runs": dict(Counter(model for name, model, _ in self.cells if name == dataset)),
                "beside": [model for model in self.models(dataset) if (dataset, model) in undrawn],
                "variant_of": of.get(dataset),
            }
            for dataset in self.datasets()
        ]
        read = {key: getattr(self.experiment, key) for key in ("title", "reduced", "paper_budgets", "claims")}
        return canonical({"experiment": self.name} | read | {"datasets": entries})

    def undrawn(self) -> set[tuple[str, str]]:
        """Datasets with those of their models that stand in tables, not in figures."""
        on_some = models_beside(self.experiment, self._suite_of)
        return {(dataset, model) for dataset, model in self._suite_of if model in on_some}

    def by_q0(self, dataset: str, model: str) -> bool:
        """Whether log Z rests on samples from q0 alone, as many as were asked for."""
        settings = self.cell(dataset, model).normaliser
        unnormalised = not self.normalised(dataset, model)
        return unnormalised and settings.proposal == "q0" and settings.tolerance is None


def _name(dataset: str, model: str, seed: int) -> dict[str, Any]:
    return {"dataset": dataset, "model": model, "seed": seed}


def share_with_jobs() -> None:
    """Let the jobs of a workflow run this interpreter and name the code version that the workflow started with.

    So a run is right whether or not its environment is activated or has this package installed (conda's has not),
    and all its rows name the same code even if somebody commits meanwhile.
    """
    os.environ["PATH"] = os.pathsep.join([str(Path(sys.executable).parent), os.environ.get("PATH", "")])
    os.environ["PYTHONPATH"] = os.pathsep.join([str(Path(__file__).parents[2]), os.environ.get("PYTHONPATH", "")])
    os.environ["DKEF_CODE_VERSION"] = code_version()
    for name, size in KEEP_MEMORY.items():
        os.environ.setdefault(name, size)
