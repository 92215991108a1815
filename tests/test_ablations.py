"""The ready experiments: each composes, each ablation varies what its name says, each variant trains in smoke size."""

import json
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from dkef.config.plan import Plan
from dkef.config.typed import instantiate
from dkef.core.provenance import canonical
from dkef.core.streams import rng_for
from dkef.models.protocol import FitContext
from dkef.report.figures.catalogue import find

NAMES = sorted(path.stem for path in (Path(__file__).parents[1] / "config" / "experiment").glob("ablation_*.yaml"))
VARIED = {
    "ablation_inducing_points": {"inducing_points"},
    "ablation_kernels": {"components"},
    "ablation_lambda_c": {"use_lambda_c"},
    "ablation_noise": {"noise_std"},
    "ablation_q0": {"train_q0"},
    "ablation_skip": {"skip"},
    "ablation_top_activation": {"top_activation"},
    "ablation_width": {"width"},
}
TINY = ("dataset=wine_recognition", "model.max_iterations=2")


def specs(name: str, overrides: tuple[str, ...] = ()) -> dict[str, object]:
    plan = Plan(name, overrides)
    dataset = plan.datasets()[0]
    return {model: plan.spec(dataset, model) for model in plan.models(dataset)}


def test_the_ablations_of_the_issue_are_all_there() -> None:
    assert set(NAMES) == set(VARIED) | {"ablation_fidelity", "ablation_kernel_form", "ablation_phase2"}


def test_the_phase_2_ablation_ends_the_same_first_phase_in_four_ways() -> None:
    plan = Plan("ablation_phase2")
    for dataset, family in (("redwine", "kef_g"), ("redwine", "dkef"), ("ring", "dkef_g15")):
        names = [f"{family}_{end}" for end in ("phase1", "improving", "converged", "folds")]
        found = [asdict(plan.spec(dataset, model)) for model in names]
        assert {json.loads(plan.train_slice(dataset, model, 0))["of"] for model in names} == {family}
        ends = [(spec["phase2_iterations"], spec["phase2_stopping"]) for spec in found]
        assert ends == [(0, "improving"), (1000, "improving"), (1000, "converged"), (1000, "folds")]
        rest = [{key: value for key, value in spec.items() if not key.startswith("phase2_")} for spec in found]
        assert all(spec == rest[0] for spec in rest)


def test_the_kernel_form_ablation_crosses_its_two_choices_from_the_same_kernels() -> None:
    plan = Plan("ablation_kernel_form")
    for dataset in ("redwine", "ring"):
        found = [plan.spec(dataset, model) for model in plan.models(dataset)]
        forms = {(spec.width_parametrisation, spec.top_activation) for spec in found}
        assert forms == {(width, top) for width in ("plain", "squared") for top in ("softplus", "linear")}
        for spec in found:
            power = 2 if spec.width_parametrisation == "squared" else 1
            np.testing.assert_allclose(np.array(spec.kernel_scales) ** power, found[0].kernel_scales, rtol=5e-3)


@pytest.mark.parametrize("name", NAMES)
def test_an_ablation_composes_and_renders_a_figure_of_its_own(name: str) -> None:
    plan = Plan(name)
    plan.check()
    assert plan.experiment.figures == [name]
    assert find(name).module == "dkef.report.figures.benchmarks"


@pytest.mark.parametrize("name", VARIED)
def test_variants_differ_in_what_the_ablation_names_and_in_nothing_else(name: str) -> None:
    found = {model: asdict(spec) for model, spec in specs(name).items()}  # type: ignore[call-overload]
    base = found.pop("dkef")
    for model, spec in found.items():
        assert {key for key in base if spec[key] != base[key]} == VARIED[name], model


def test_the_fidelity_ablation_prepares_the_data_both_ways() -> None:
    plan = Plan("ablation_fidelity")
    text, code = (plan.any_cell(name).dataset.preprocessing for name in ("redwine", "redwine_code"))
    assert (text.whiten_on, code.whiten_on) == ("train", "all")
    assert (text.dequantise_gaps, code.dequantise_gaps) == (1.0, 2.0)


def distinct_models() -> list[dict[str, Any]]:
    """The model sections of all ablations, each once: most ablations share the model they start from."""
    plans = [Plan(name, TINY) for name in NAMES]
    cells = {(plan.name, *cell[:2]): plan.cell(*cell[:2]) for plan in plans for cell in plan.cells}
    sections = {canonical(cell.model): cell.model for cell in cells.values()}
    return [sections[text] for text in sorted(sections)]


@pytest.mark.slow
@pytest.mark.parametrize("half", [0, 1])  # two, for two workers
def test_every_variant_trains_in_smoke_size(half: int) -> None:
    rows = rng_for("smoke ablation").normal(size=(260, 4))
    for section in distinct_models()[half::2]:
        small = {"inducing_points": 20, "phase2_iterations": 2} if "inducing_points" in section else {}
        fit = instantiate(dict(section) | small).fit(rows[:220], rows[220:], FitContext())
        assert np.isfinite(fit.model.log_density(rows[220:])).all(), section


def test_the_quick_synthetic_experiment_has_every_set_and_model_of_figure_2() -> None:
    quick, paper = Plan("synthetic_quick"), Plan("paper")
    for dataset in ("funnel", "banana", "ring", "square", "cosine", "mog", "mor"):
        assert set(quick.models(dataset)) == set(paper.models(dataset)), dataset
    assert quick.experiment.reduced


def test_the_laptop_experiment_has_the_complete_small_sets_and_the_parts_of_the_large_ones() -> None:
    plan = Plan("laptop")
    assert plan.datasets() == ["redwine", "whitewine", "parkinsons", "hepmass_part", "miniboone_part"]
    assert plan.seeds("redwine") == [0, 1, 2]
    assert set(plan.models("redwine")) == set(Plan("paper").models("redwine"))
    assert plan.any_cell("hepmass_part").dataset.subset_of
    assert plan.cell("redwine", "dkef").normaliser.tolerance == 0.01
