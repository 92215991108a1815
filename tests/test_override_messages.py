"""What a user reads after a slip in an override, a name or a key of --config: where it stands and what was meant."""

from pathlib import Path

import pytest

from dkef.config.compose import compose_cell
from dkef.config.experiment import load_experiment
from dkef.config.plan import Plan
from dkef.config.targets import check_targets
from dkef.core.errors import ConfigError

EXPERIMENT = """
title: Mine
figures: []
models:
  wide: {{of: made, overrides: {variant}}}
suites:
  first:
    datasets: [ring]
    models: {models}
    seeds: 1
    overrides: {suite}
"""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A config folder of the user's own."""
    monkeypatch.setenv("DKEF_CONFIG_PATH", str(tmp_path))
    compose_cell.cache_clear()
    for group in ("experiment", "model", "dataset"):
        (tmp_path / group).mkdir()
    return tmp_path


def plan(
    folder: Path, *overrides: str, models: str = "[gaussian, made, wide]", suite: str = "[]", variant: str = "[]"
) -> Plan:
    load_experiment.cache_clear()
    text = EXPERIMENT.format(models=models, suite=suite, variant=variant)
    (folder / "experiment" / "mine.yaml").write_text(text)
    return Plan("mine", overrides)


def sentence(folder: Path, *overrides: str, **parts: str) -> str:
    with pytest.raises(ConfigError) as caught:
        plan(folder, *overrides, **parts).check()
    return str(caught.value)


def test_paths_of_this_experiment_and_others_that_snakemake_is_given_pass(folder: Path) -> None:
    given = ["--cores", "1", "data/processed/ring/seed0.h5", "claims", "results/published/reproduction/metrics.csv"]
    own = ["results/mine/ring/made/seed0/metrics.csv", "results/mine/metrics.csv", "results/mine/ring/agreement/0.csv"]
    check_targets(plan(folder), [*given, *own, "figures/mine/toys.png"])


@pytest.mark.parametrize(
    ("target", "told"),
    [
        ("figures/smoke/toys.png",
         "figures/smoke/toys.png is of another experiment than mine; add --config experiment=smoke"),
        ("./results/mien/metrics.csv",
         "./results/mien/metrics.csv: experiment 'mien' is unknown; did you mean mine? known are ablation_"),
        ("results/mine/rng/made/seed0/metrics.csv",
         "results/mine/rng/made/seed0/metrics.csv: experiment mine has no dataset 'rng'; did you mean ring? known are "
         "ring"),
        ("results/mine/ring/mad/seed0/model.h5",
         "results/mine/ring/mad/seed0/model.h5: experiment mine has on ring no model 'mad'; did you mean made? known "
         "are gaussian, made, wide"),
    ],
)  # fmt: skip
def test_a_slip_in_a_path(folder: Path, target: str, told: str) -> None:
    with pytest.raises(ConfigError) as caught:
        check_targets(plan(folder), [target])
    assert str(caught.value).startswith(told)


def test_a_misspelt_name_before_the_colon(folder: Path) -> None:
    assert sentence(folder, "mede: model.width=3") == (
        "--config overrides: override 'mede: model.width=3' is for 'mede', which is no dataset or model here; "
        "did you mean made? known are ring, gaussian, made, wide"
    )
    assert sentence(folder, suite='["mede: model.width=3"]').startswith(
        f"{folder}/experiment/mine.yaml, suite first: override 'mede: model.width=3' is for 'mede'"
    )
    assert sentence(folder, variant='["wid: model.width=3"]').startswith(
        f"{folder}/experiment/mine.yaml, models.wide: override 'wid: model.width=3' is for 'wid'"
    )


def test_a_name_before_the_colon_works_in_suites_and_on_the_command_line(folder: Path) -> None:
    here = plan(folder, "ring: comparison.fssd_locations=7", suite='["made: model.width=3", "wide:model.width=5"]')
    assert (here.cell("ring", "made").model["width"], here.cell("ring", "wide").model["width"]) == (3, 5)
    assert here.cell("ring", "gaussian").comparison.fssd_locations == 7


def test_a_key_that_only_other_models_have(folder: Path) -> None:
    assert sentence(folder, "model.max_iterations=5") == (
        "--config overrides, override 'model.max_iterations=5': model.max_iterations is an unknown key; this section "
        "takes no keys; model gaussian has no such key, of this experiment made, wide have it: name one in front, as "
        'in "made: model.max_iterations=5"'
    )
    one = sentence(folder, "model.width=5", models="[gaussian, made]")
    assert one.endswith(
        'gaussian has no such key, of this experiment made has it: name one in front, as in "made: model.width=5"'
    )
    assert sentence(folder, suite="[model.width=5]").startswith(
        f"{folder}/experiment/mine.yaml, suite first, override 'model.width=5': model.width is an unknown key"
    )


def test_a_misspelt_key_of_an_override(folder: Path) -> None:
    assert sentence(folder, "made: model.widht=5").startswith(
        "--config overrides, override 'model.widht=5': model.widht is an unknown key; did you mean width? "
        "allowed are transform, layers, components"
    )
    assert sentence(folder, variant="[model.widht=5]").startswith(
        f"{folder}/experiment/mine.yaml, models.wide, override 'model.widht=5': model.widht is an unknown key; "
        "did you mean width?"
    )
    assert sentence(folder, "comparsion.fssd_locations=5").startswith(
        "--config overrides, override 'comparsion.fssd_locations=5': comparsion is an unknown key; "
        "did you mean comparison? allowed are dataset, model, protocol"
    )


def test_a_value_out_of_range_in_an_override(folder: Path) -> None:
    assert sentence(folder, "made: model.width=0") == (
        "--config overrides, override 'model.width=0': model.width is 0; allowed is >= 1"
    )
    assert sentence(folder, suite="[comparison.fssd_locations=many]") == (
        f"{folder}/experiment/mine.yaml, suite first, override 'comparison.fssd_locations=many': "
        "comparison.fssd_locations is 'many'; allowed is a whole number >= 2"
    )


def test_an_unknown_choice_in_an_override(folder: Path) -> None:
    assert sentence(folder, "protocol=benchmrak") == (
        "--config overrides, override 'protocol=benchmrak': protocol 'benchmrak' is unknown; did you mean benchmark? "
        "known are benchmark, synthetic"
    )


def test_an_override_that_is_none(folder: Path) -> None:
    told = sentence(folder, "model width 3")
    assert told.startswith("--config overrides, override 'model width 3': ")
    assert told.endswith("; expected is key=value")


@pytest.mark.parametrize(
    ("config", "told"),
    [
        ({"expriment": 1},
         "--config: expriment is an unknown key; did you mean experiment? allowed are experiment, overrides"),
        ({"experiment": 1}, "--config: experiment is 1; allowed is letters, digits and _"),
        ({"experiment": "../x"}, "--config: experiment is '../x'; allowed is letters, digits and _"),
        ({"overrides": 3}, "--config: overrides is 3; allowed is text or a list"),
        ({"overrides": ["a=1", 2]}, "--config: overrides is ['a=1', 2]; allowed is text or a list"),
    ],
)  # fmt: skip
def test_a_slip_in_the_keys_of_the_command_line(config: dict[str, object], told: str) -> None:
    with pytest.raises(ConfigError) as caught:
        Plan.of_command_line(config)
    assert str(caught.value) == told


def test_one_override_needs_no_list() -> None:
    plan = Plan.of_command_line({"experiment": "smoke", "overrides": "fidelity=code"})
    assert plan.overrides == ("fidelity=code",)
    assert plan.cell("ring_tiny", "gaussian").fidelity.baseline_degrees == "random"


def test_a_message_names_the_file_that_the_user_wrote(folder: Path) -> None:
    (folder / "dataset" / "mine.yaml").write_text(
        "title: Mine\nsource: {_target_: dkef.data.tables.Csv, paths: [x.csv], seperator: ','}\n"
    )
    with pytest.raises(ConfigError, match=rf"^{folder}/dataset/mine\.yaml: dataset\.source\.seperator is an unknown"):
        compose_cell(("dataset=mine",))


def test_a_message_names_the_inherited_file_in_which_the_key_stands(folder: Path) -> None:
    (folder / "model" / "base.yaml").write_text("defaults: [made, _self_]\nwidht: 3\n")
    (folder / "model" / "child.yaml").write_text("defaults: [base, _self_]\npatience: 5\n")
    (folder / "model" / "grouped.yaml").write_text("defaults: [mixture, override /model@component: base]\n")
    with pytest.raises(ConfigError, match=rf"^{folder}/model/base\.yaml: model\.widht is an unknown key; did you mean"):
        compose_cell(("model=child",))
    with pytest.raises(ConfigError, match=rf"^{folder}/model/base\.yaml: model\.component\.widht is an unknown key"):
        compose_cell(("model=grouped",))
