"""Which models and datasets of an experiment vary others of it."""

from collections.abc import Iterable

from dkef.config.experiment import Experiment

Pairs = Iterable[tuple[str, str]]  # dataset and model of each cell


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
