"""An experiment as a grid of cells, and the slice of the configuration that each job of a cell reads."""

import functools
import json
import os
import re
import sys
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from hydra.errors import HydraException
from omegaconf import OmegaConf
from omegaconf.errors import OmegaConfBaseException

from dkef.config.compose import check_choice, compose_cell, compose_section, first_line
from dkef.config.settings import Cell
from dkef.config.typed import instantiate, plain, require, typed
from dkef.core.errors import ConfigError
from dkef.core.provenance import canonical, code_version
from dkef.data.catalogue import read_catalogue


@dataclass(frozen=True)
class Variant:
    """Another name for a dataset or model, under overrides of its own: one line of an ablation."""

    of: str
    overrides: list[str] = field(default_factory=list)


@dataclass(frozen=True)
class Suite:
    """A block of the grid: every dataset with every model under every seed, and what they share."""

    datasets: list[str]
    models: list[str]
    seeds: int  # seeds 0 .. seeds - 1
    overrides: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        require(self.seeds >= 1, "suites.seeds", self.seeds, ">= 1")


@dataclass(frozen=True)
class Experiment:
    """What `snakemake --config experiment=NAME` runs."""

    title: str
    suites: dict[str, Suite]
    figures: list[str]
    reduced: str | None = None  # how the run is smaller than the paper's; stands in every figure
    datasets: dict[str, Variant] = field(default_factory=dict)  # variants of datasets, by their new name
    models: dict[str, Variant] = field(default_factory=dict)  # variants of models, by their new name


@functools.cache
def load_experiment(name: str) -> Experiment:
    """config/experiment/<name>.yaml, checked."""
    where = f"config/experiment/{name}.yaml"
    check_choice("experiment", name, "--config experiment")
    try:
        section = compose_section(f"experiment/{name}").get("experiment")
        values = OmegaConf.to_container(section, resolve=True) if section is not None else {}
    except (HydraException, OmegaConfBaseException) as error:
        raise ConfigError(f"{where}: {first_line(error)}") from None
    return typed(Experiment, values, lambda key: where)  # type: ignore[arg-type]


class Plan:
    """The grid of one experiment: which cells there are, and what each stage of a cell is told."""

    def __init__(self, name: str, overrides: tuple[str, ...] = ()) -> None:
        self.name = name
        self.experiment = load_experiment(name)
        self.overrides = overrides
        self._suite_of: dict[tuple[str, str], Suite] = {}
        self.cells: list[tuple[str, str, int]] = []
        for label, suite in self.experiment.suites.items():
            self._add(label, suite)

    def _add(self, label: str, suite: Suite) -> None:
        where = f"config/experiment/{self.name}.yaml, suite {label}"
        for group, names, variants in (
            ("dataset", suite.datasets, self.experiment.datasets),
            ("model", suite.models, self.experiment.models),
        ):
            for name in names:
                # Names become folders, which must lie below results/ and data/.
                require(bool(re.fullmatch("[A-Za-z0-9_]+", name)), f"{where}: {group}", name, "letters, digits and _")
                check_choice(group, variants[name].of if name in variants else name, where)
        for dataset in suite.datasets:
            for model in suite.models:
                if (dataset, model) in self._suite_of:
                    raise ConfigError(
                        f"{where}: {dataset} x {model} stands in an earlier suite; give one a variant's name"
                    )
                self._suite_of[dataset, model] = suite
                self.cells += [(dataset, model, seed) for seed in range(suite.seeds)]

    def check(self) -> None:
        """Compose every cell, so that a mistake stops the run before any job starts."""
        prepared: dict[str, str] = {}
        for dataset, model in self._suite_of:
            text = canonical(plain(self.cell(dataset, model).dataset))
            if prepared.setdefault(dataset, text) != text:
                raise ConfigError(
                    f"config/experiment/{self.name}.yaml: dataset {dataset} is prepared in two ways; "
                    "give one of them a variant's name under `datasets`"
                )

    @functools.cache  # noqa: B019 - a plan lives as long as the process
    def cell(self, dataset: str, model: str) -> Cell:
        """The whole configuration of a (dataset, model) of this experiment."""
        experiment = self.experiment
        dataset_variant = experiment.datasets.get(dataset, Variant(dataset))
        model_variant = self._variant(model)
        suite = self._suite_of.get((dataset, model))
        if suite is None:
            raise ConfigError(f"experiment {self.name} has no cell {dataset} x {model}")
        return compose_cell(
            (
                f"dataset={dataset_variant.of}",
                f"model={model_variant.of}",
                *suite.overrides,
                *dataset_variant.overrides,
                *model_variant.overrides,
                *(o for o in map(self._for_cell(dataset, model), self.overrides) if o),
            )
        )

    def _variant(self, model: str) -> Variant:
        return self.experiment.models.get(model, Variant(model))

    def _for_cell(self, dataset: str, model: str) -> Any:
        """An override "name: key=value" concerns one dataset or model only; one without a name concerns all."""

        def select(override: str) -> str | None:
            left, _, right = override.partition("=")
            name, colon, key = left.partition(":")
            if not colon:
                return override
            return f"{key.strip()}={right}" if name.strip() in (dataset, model) else None

        return select

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
        """Whether the law of the data is known; its space is then one- or two-dimensional and can be drawn."""
        return self.source(dataset).true_density() is not None

    @functools.cache  # noqa: B019
    def source(self, dataset: str) -> Any:
        return instantiate(self.any_cell(dataset).dataset.source)

    def spec(self, dataset: str, model: str) -> Any:
        return instantiate(self.cell(dataset, model).model)

    @functools.cache  # noqa: B019
    def normalised(self, dataset: str, model: str) -> bool:
        """Whether the model knows its own log Z; the other ones need the normalise stage."""
        return bool(getattr(self.spec(dataset, model), "normalised", True))

    def reference(self, dataset: str, model: str) -> str | None:
        """The model that fssd_p_value compares with, where the experiment runs it on this dataset."""
        reference = self.cell(dataset, model).comparison.reference_model
        return reference if reference in self.models(dataset) else None

    def command_line(self) -> list[str]:
        """What `snakemake --config` is given to plan this same experiment again."""
        return [f"experiment={self.name}", f"overrides={json.dumps(list(self.overrides))}"]

    # One canonical text per job: equal exactly when nothing that the job reads has changed.

    def fetch_slice(self, file: str) -> str:
        """What makes a raw file the right one; its addresses may change without asking for it anew."""
        catalogue = read_catalogue(Path("data/sources.csv"))
        if file not in catalogue:
            raise ConfigError(f"data/sources.csv has no row for {file}; add one, or name the file under `paths`")
        return canonical({"file": file, "bytes": catalogue[file].bytes, "sha256": catalogue[file].sha256})

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
        unread = {"q0": {"cover", "annealing"}, "mixture": {"annealing"}}.get(settings.proposal, set())
        return {key: value for key, value in plain(settings).items() if key not in unread}

    def proposals_slice(self, dataset: str, model: str, seed: int) -> str:
        cell = self.cell(dataset, model)
        reads = {key: plain(cell.normaliser)[key] for key in ("percentile", "cover", "annealing")}
        return canonical(_name(dataset, model, seed) | {"normaliser": reads, "proposals": plain(cell.proposals)})

    def compare_slice(self, dataset: str, model: str, seed: int) -> str:
        reads = {
            "comparison": plain(self.cell(dataset, model).comparison),
            "normalised": self.normalised(dataset, model),
        }
        return canonical(_name(dataset, model, seed) | reads)

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

    def experiment_slice(self, datasets: Iterable[str] | None = None) -> str:
        """Names, titles, models and seeds of all or some datasets: what figures, claims and the report are told."""
        entries = [
            {
                "name": dataset,
                "title": self.any_cell(dataset).dataset.title,
                "subset_of": self.any_cell(dataset).dataset.subset_of,
                "synthetic": self.synthetic(dataset),
                "models": self.models(dataset),
                "seeds": self.seeds(dataset),
            }
            for dataset in (self.datasets() if datasets is None else datasets)
        ]
        about = {"experiment": self.name, "title": self.experiment.title, "reduced": self.experiment.reduced}
        return canonical(about | {"datasets": entries})


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
