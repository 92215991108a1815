"""Mistakes in the configuration stop at the door, with one sentence each."""

import os
import shutil
from pathlib import Path

import pytest

from dkef.config.compose import compose_cell
from dkef.config.experiment import load_experiment
from dkef.config.files import config_folder
from dkef.config.plan import KEEP_MEMORY, Plan, share_with_jobs
from dkef.core.errors import ConfigError

ROOT = Path(__file__).parents[1]


@pytest.fixture
def project(tmp_path, monkeypatch):
    """A copy of config/ in a working folder of its own, free to be spoilt."""
    shutil.copytree(ROOT / "config", tmp_path / "config")
    monkeypatch.chdir(tmp_path)
    for memo in (compose_cell, load_experiment):
        memo.cache_clear()
    yield tmp_path / "config"
    for memo in (compose_cell, load_experiment):
        memo.cache_clear()


def replace(path, old, new):
    text = path.read_text()
    assert old in text
    path.write_text(text.replace(old, new))


def test_the_working_folder_comes_before_the_checkout(project):
    assert config_folder() == project


@pytest.mark.parametrize(("protocol", "fidelity"), [("synthetic", "paper"), ("benchmark", "code")])
def test_every_dataset_and_model_composes(protocol, fidelity):
    for group in ("dataset", "model"):
        for path in (config_folder() / group).glob("*.yaml"):
            compose_cell((f"{group}={path.stem}", f"protocol={protocol}", f"fidelity={fidelity}"))


SPOILT = {  # what a file says, what it should not say, and the sentence
    "an unknown key": (
        "protocol/synthetic", "inducing_points", "inducing_pionts",
        "protocol.inducing_pionts is an unknown key; did you mean inducing_p",
    ),
    "an unknown key of a model": (
        "model/gaussian", "spec.Gaussian", "spec.Gaussian\nwidht: 3", "model.widht is an unknown key",
    ),
    "another type": (
        "protocol/synthetic", "inducing_points: 200", "inducing_points: many",
        "protocol.inducing_points is 'many'; allowed is a whole number",
    ),
    "out of range": (
        "protocol/synthetic", "inducing_points: 200", "inducing_points: 0",
        "protocol.inducing_points is 0; allowed is >= 1",
    ),
    "a word outside its list": (
        "fidelity/paper", "top_activation: softplus", "top_activation: relu",
        "fidelity.top_activation is 'relu'; allowed is one of softplus, linear",
    ),
    "no class": (
        "model/gaussian", "dkef.models.gaussian.spec", "dkef.specs.gauss",
        "model._target_ 'dkef.specs.gauss.Gaussian' cannot be imported",
    ),
}  # fmt: skip


@pytest.mark.parametrize("mistake", SPOILT)
def test_a_mistake_is_named_with_its_file_and_what_is_allowed(project, mistake):
    file, old, new, sentence = SPOILT[mistake]
    replace(project / f"{file}.yaml", old, new)
    with pytest.raises(ConfigError) as caught:
        compose_cell(())
    assert str(caught.value).startswith(f"config/{file}.yaml: {sentence}")


def test_an_override_of_an_unknown_key_is_named():
    sentence = (
        r"^override 'protocol\.inducing_pionts=3': protocol\.inducing_pionts is an unknown key; "
        r"did you mean inducing_points\? allowed are kernel_components, inducing_points, "
    )
    with pytest.raises(ConfigError, match=sentence):
        compose_cell(("protocol.inducing_pionts=3",))


def test_an_unknown_experiment_dataset_or_model_is_named_with_the_known_ones(project):
    with pytest.raises(ConfigError, match=r"experiment 'smok' is unknown; did you mean smoke\? known are .*paper"):
        Plan("smok")
    replace(project / "experiment" / "smoke.yaml", "datasets: [ring_tiny]", "datasets: [rring]")
    with pytest.raises(
        ConfigError, match=r"smoke\.yaml, suite synthetic: dataset 'rring' is unknown; did you mean ring\?"
    ):
        Plan("smoke")


def test_a_misspelt_key_of_an_experiment_is_named(project):
    replace(project / "experiment" / "smoke.yaml", "title:", "titel:")
    with pytest.raises(
        ConfigError, match=r"config/experiment/smoke\.yaml: titel is an unknown key; did you mean title"
    ):
        Plan("smoke")


def test_an_experiment_that_hydra_cannot_read_is_one_sentence(project):
    replace(project / "experiment" / "smoke.yaml", "title:", "title: ${ #")
    with pytest.raises(ConfigError, match=r"config/experiment/smoke\.yaml: no viable alternative at input") as caught:
        Plan("smoke")
    assert "\\n" not in str(caught.value)  # a line break shows as its escape


def test_a_comment_changes_no_slice_and_a_value_changes_only_the_slices_that_read_it(project):
    before = Plan("smoke")
    slices = ("preprocess_slice", "train_slice", "evaluate_slice", "compare_slice")

    def read(plan):
        cell = ("ring_tiny", "gaussian", 0)
        return {
            name: getattr(plan, name)(*(cell if name != "preprocess_slice" else (cell[0], cell[2]))) for name in slices
        }

    first = read(before)
    replace(project / "config.yaml", "defaults:", "# a remark\ndefaults:")
    compose_cell.cache_clear()
    assert read(Plan("smoke")) == first
    (project / "config.yaml").write_text((project / "config.yaml").read_text() + "comparison: {fssd_locations: 50}\n")
    compose_cell.cache_clear()
    changed = {name for name, text in read(Plan("smoke")).items() if text != first[name]}
    assert changed == {"compare_slice"}


def test_models_and_datasets_can_live_outside_the_repository(tmp_path, monkeypatch):
    (tmp_path / "model").mkdir()
    (tmp_path / "model" / "mine.yaml").write_text("_target_: dkef.models.gaussian.spec.Gaussian\n")
    monkeypatch.setenv("DKEF_CONFIG_PATH", str(tmp_path))
    assert compose_cell(("model=mine",)).model == {"_target_": "dkef.models.gaussian.spec.Gaussian"}


def test_an_override_with_a_name_concerns_only_that_dataset_or_model():
    plan = Plan("smoke", ("ring_tiny: comparison.fssd_locations=7",))
    assert plan.cell("ring_tiny", "gaussian").comparison.fssd_locations == 7
    assert plan.cell("wine_recognition", "gaussian").comparison.fssd_locations == 100


def test_jobs_keep_the_memory_they_free_unless_the_user_says_otherwise(monkeypatch):
    for name in ("PATH", "PYTHONPATH", "DKEF_CODE_VERSION", *KEEP_MEMORY):
        monkeypatch.setenv(name, "user's")  # so that all are as before after the test
    monkeypatch.delenv("MALLOC_TRIM_THRESHOLD_")
    share_with_jobs()
    assert os.environ["MALLOC_MMAP_THRESHOLD_"] == "user's"
    assert int(os.environ["MALLOC_TRIM_THRESHOLD_"]) == 2**29


def test_the_confirmation_draws_what_the_reproduction_has_not_seen():
    fresh, seen = (
        {(dataset, seed) for dataset, _, seed in Plan(name).cells} for name in ("confirmation", "reproduction")
    )
    assert len({seed for _, seed in fresh}) == 12
    assert not fresh & seen
