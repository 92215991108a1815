"""config/experiment/<name>.yaml: which cells an experiment has, and under which overrides."""

import functools
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Annotated, Any

from hydra.errors import HydraException
from omegaconf import OmegaConf
from omegaconf.errors import OmegaConfBaseException
from pydantic import Field

from dkef.config.compose import NOT_YAML, compose_section, first_line
from dkef.config.files import broken_file, check_choice, file_of, shown
from dkef.config.sentences import suggestion
from dkef.config.typed import Count, Whole, section, typed
from dkef.core.errors import ConfigError

Name = Annotated[str, Field(pattern="^[A-Za-z0-9_]+$", description="letters, digits and _")]  # becomes part of paths
Pairs = Iterable[tuple[str, str]]  # dataset and model of each cell


@section
@dataclass(frozen=True)
class CommandLine:
    """What `snakemake --config` takes."""

    experiment: Name = "paper"
    overrides: str | list[str] = field(default_factory=list)  # one or several, for all cells or with a name in front


@section
@dataclass(frozen=True)
class Variant:
    """Another name for a dataset or model, under overrides of its own: one line of an ablation."""

    of: str
    overrides: list[str] = field(default_factory=list)


@section
@dataclass(frozen=True)
class Suite:
    """A block of the grid: every dataset with every model under every seed, and what they share."""

    datasets: list[Name]
    models: list[Name]
    seeds: Count  # how many
    overrides: list[str] = field(default_factory=list)
    first_seed: Whole = 0  # above those of another experiment: draws that it has not seen


@section
@dataclass(frozen=True)
class Experiment:
    """What `snakemake --config experiment=NAME` runs."""

    title: str
    suites: dict[str, Suite]
    figures: list[str]
    reduced: str | None = None  # how the run is smaller than the paper's; stands in every figure
    paper_budgets: bool = False  # it is so in sets and seeds only: each run is the paper's, and claims can be decided
    claims: list[str] = field(default_factory=list)  # those that it was planned to decide; none named: all
    datasets: dict[str, Variant] = field(default_factory=dict)  # variants of datasets, by their new name
    models: dict[str, Variant] = field(default_factory=dict)  # variants of models, by their new name
    stages: dict[str, dict[str, Any]] = field(default_factory=dict)  # settings of stages that belong to no cell


@functools.cache
def load_experiment(name: str) -> Experiment:
    """The experiment of a name, checked."""
    check_choice("experiment", name, "--config experiment")
    where = experiment_file(name)
    try:
        composed = compose_section(f"experiment/{name}").get("experiment")
        values: Any = OmegaConf.to_container(composed, resolve=True) if composed is not None else {}
    except (HydraException, OmegaConfBaseException, *NOT_YAML) as error:
        broken = broken_file({"experiment": name})
        raise ConfigError(broken or f"{where}: {first_line(error)}") from None
    return typed(Experiment, values, lambda key: where)


def experiment_file(name: str) -> str:
    return shown(file_of("experiment", name))


def split_name(override: str) -> tuple[str | None, str]:
    """The dataset or model that "name: key=value" concerns, and the override itself; one without a name is for all."""
    if ":" not in override.partition("=")[0]:
        return None, override
    name, _, rest = override.partition(":")
    return name.strip(), rest.strip()


def check_names(overrides: Iterable[str], known: Iterable[str], where: str) -> None:
    """Stop at an override for a dataset or model that is not there: it would do nothing."""
    known = list(dict.fromkeys(known))
    for override in overrides:
        name, _ = split_name(override)
        if name is not None and name not in known:
            raise ConfigError(
                f"{where}: override {override!r} is for {name!r}, which is no dataset or model here; "
                f"{suggestion(name, known)}known are {', '.join(known)}"
            )


def models_beside(experiment: Experiment, pairs: Pairs) -> set[str]:
    """Variants that were asked for on only some of the datasets of the model that they vary: for a claim, say."""
    datasets: dict[str, set[str]] = {}
    for dataset, model in pairs:
        datasets.setdefault(model, set()).add(dataset)
    variants = {name: variant.of for name, variant in experiment.models.items() if name in datasets}
    return {name for name, of in variants.items() if not datasets[name] >= datasets.get(of, set())}


def varied_sets(experiment: Experiment, pairs: Pairs) -> dict[str, str]:
    """Variants of datasets, and the dataset of the same experiment that each varies."""
    present = {dataset for dataset, _ in pairs}
    variants = {name: variant.of for name, variant in experiment.datasets.items() if name in present}
    return {name: of for name, of in variants.items() if of in present - {name}}
