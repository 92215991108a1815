"""Unnormalised models through the stages: the one that config/README.md prints, energy_net, and what is refused."""

import csv
import json
import re
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest
import yaml  # type: ignore[import-untyped]

import dkef
from dkef.config.compose import compose_cell
from dkef.config.experiment import load_experiment
from dkef.config.plan import Plan
from dkef.config.typed import instantiate
from dkef.core.errors import ConfigError
from dkef.core.hdf5 import read_hdf5, write_hdf5
from dkef.models.storage import load_model
from dkef.stages import compare, evaluate, grid, normalise, normalise_target, preprocess, train

PAGE = (Path(__file__).parents[2] / "config" / "README.md").read_text(encoding="utf-8")
BLOCKS = re.findall(r"^```python\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)
(PRINTED,) = [text for text in BLOCKS if text.startswith("# my_energy.py")]
SMALL = [
    "protocol=synthetic", "normaliser=target", "normaliser.samples=400_000", "normaliser.bound_samples=400_000",
    "normaliser.pilot_samples=20_000", "normaliser.chunk_samples=20_000",
    "normaliser.defensive_mixture.adapt_draws=500", "normaliser.defensive_mixture.adapt_rounds=2",
    "normaliser.defensive_mixture.renewals=1", "normaliser.annealing.temperatures=20",
]  # fmt: skip
# What a user might write beside it, and get wrong.
REFUSED = """
from dataclasses import dataclass
from typing import ClassVar

@dataclass(frozen=True)
class Jumping:
    normalised: ClassVar[bool] = False
    no_log_z: ClassVar[str] = "it is 0 outside a box, where chains cannot go"
"""
TWICE = """
from dkef.models.protocol import DensityModel

class Twice(DensityModel):
    normalised = False
    def score(self, x): return x
"""
NO_SCORE = """
from dkef.models.protocol import DensityModel

class NoScore(DensityModel):
    def log_density(self, x): return x[:, 0]
"""


@pytest.fixture
def mine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A folder outside the repository with the printed model; in the working folder, so that files stay apart."""
    folder = tmp_path / "mine"
    (folder / "model").mkdir(parents=True)
    (folder / "experiment").mkdir()
    (folder / "my_energy.py").write_text(PRINTED)
    (folder / "my_refused.py").write_text(REFUSED)
    (folder / "my_twice.py").write_text(TWICE)
    (folder / "my_no_score.py").write_text(NO_SCORE)
    for name, target in (
        ("energy", "my_energy.Energy"), ("jumping", "my_refused.Jumping"), ("twice", "my_twice.Twice"),
        ("no_score", "my_no_score.NoScore"),
    ):  # fmt: skip
        (folder / "model" / f"{name}.yaml").write_text(f"_target_: {target}\n")
    monkeypatch.setenv("DKEF_CONFIG_PATH", str(folder))
    monkeypatch.syspath_prepend(str(folder))
    monkeypatch.chdir(tmp_path)
    compose_cell.cache_clear()
    load_experiment.cache_clear()
    yield folder
    compose_cell.cache_clear()


def planned(folder: Path, models: list[str], *overrides: str) -> Plan:
    """An experiment with 800 rows of a ring."""
    suites = {"all": {"datasets": ["few"], "models": models, "seeds": 1, "overrides": [*SMALL, *overrides]}}
    few = {"few": {"of": "ring", "overrides": ["dataset.source.rows=800"]}}
    text = yaml.safe_dump({"title": "", "figures": [], "datasets": few, "suites": suites})
    (folder / "experiment" / "of_mine.yaml").write_text(text)
    return Plan("of_mine")


def call(stage: ModuleType, *words: object) -> None:
    stage.main([str(word) for word in words])


def through_the_stages(plan: Plan, model: str) -> dict[str, dict[str, str]]:
    """Rows of metrics.csv by metric, made by the jobs that the workflow would run."""
    plan.check()
    assert not plan.normalised("few", model)
    name = ("few", model, 0)
    call(preprocess, "--config", plan.preprocess_slice("few", 0), "--out", "rows.h5")
    call(train, "--config", plan.train_slice(*name), "--data", "rows.h5", "--out", "model.h5", "--trace", "trace.csv")
    given = ("--model", "model.h5", "--data", "rows.h5")
    call(
        normalise_target,
        "--config",
        plan.normalise_slice(*name),
        *given,
        "--folder",
        "normalise",
        "--out",
        "log_z.json",
    )
    call(evaluate, "--config", plan.evaluate_slice(*name), *given, "--out", "evaluation.h5")
    call(
        grid, "--config", plan.grid_slice(*name), *given, "--log-z", "log_z.json", "--out", "grid.h5",
        "--quadrature", "quadrature.json",
    )  # fmt: skip
    call(
        compare, "--config", plan.compare_slice(*name), "--evaluation", "evaluation.h5", "--data", "rows.h5",
        "--log-z", "log_z.json", "--quadrature", "quadrature.json", "--out", "metrics.csv",
    )  # fmt: skip
    with Path("metrics.csv").open() as file:
        return {row["metric"]: row for row in csv.DictReader(file)}


def test_the_printed_model_gets_log_z_and_it_is_that_of_quadrature(mine: Path) -> None:
    found = through_the_stages(planned(mine, ["energy"], "energy: model.ridge=1e-4"), "energy")
    sampled, exact = found["log_z"], found["log_z_quadrature"]
    assert (sampled["status"], exact["status"]) == ("ok", "ok")
    assert abs(float(sampled["value"]) - float(exact["value"])) < 3 * float(sampled["stderr"]) < 0.1
    assert found["log_likelihood"]["status"] == "ok"
    assert "EnergyModel states no q0" in found["log_z_bias_bound"]["status"]
    record = json.loads(Path("log_z.json").read_text())
    assert record["proposal"] in ("mixture", "annealed")
    # By hand, with the file that the workflow left.
    by_hand = ("--proposal", "mixture", "--samples", "2e4", "--chunk-samples", "1e4")
    call(normalise, "--model", "model.h5", "--data", "rows.h5", *by_hand, "--out", "by_hand.json")
    other = json.loads(Path("by_hand.json").read_text())
    assert abs(other["log_z"] - float(exact["value"])) < 3 * other["log_z_stderr"] < 0.1
    model = load_model("model.h5", trusted=("my_energy",))
    assert model.normalised is False
    assert model.log_z == record["log_z"]


def test_energy_net_gets_log_z_with_a_bound_and_it_is_that_of_quadrature(mine: Path) -> None:
    few = ("model.max_iterations=150", "model.width=10", "model.learning_rate=0.01")
    found = through_the_stages(planned(mine, ["energy_net"], *few), "energy_net")
    sampled, exact, bound = (found[name] for name in ("log_z", "log_z_quadrature", "log_z_bias_bound"))
    assert [row["status"] for row in (sampled, exact, bound)] == ["ok", "ok", "ok"]
    assert abs(float(sampled["value"]) - float(exact["value"])) < 3 * float(sampled["stderr"]) < 0.1
    assert 0 < float(bound["value"]) < 0.05


def test_in_the_library_the_printed_model_needs_no_more_than_its_class(mine: Path) -> None:
    spec = instantiate({"_target_": "my_energy.Energy", "units": 50})
    x = np.random.default_rng(0).normal(size=(400, 3)) * [1.0, 20.0, 0.1]
    fit = dkef.fit(x, spec, log_z_samples=100_000)
    assert fit.log_z.status == "ok"
    assert fit.log_z.stderr is not None
    assert 0 < fit.log_z.stderr < 0.05
    # The truth is a normal: its entropy is what a good fit comes near, in the units of x.
    entropy = -1.5 * (1 + np.log(2 * np.pi)) - np.log(20.0 * 0.1)
    assert float(fit.log_prob(x).mean()) == pytest.approx(entropy, abs=0.3)
    fit.save("fit.h5")
    np.testing.assert_array_equal(dkef.load("fit.h5", trusted=("my_energy",)).log_prob(x), fit.log_prob(x))


@pytest.mark.parametrize(("model", "overrides", "sentence"), [
    ("jumping", (), "of_mine.yaml: model jumping is not normalised, and its log Z cannot be estimated: it is 0 outside "
     "a box, where chains cannot go"),
    ("energy", ("normaliser=fast",), "of_mine.yaml: model energy is not normalised and has no q0 to draw from, but "
     "normaliser.proposal is q0; allowed are mixture, annealed and cheapest: choose normaliser=target"),
    ("mixture", ("model@model.component=jumping",), "model.component is a Jumping, which is not normalised and has no "
     "log Z: it is 0 outside a box, where chains cannot go"),
    ("mixture_dkef_g15", ("model.log_z=null",), "model.log_z is null, but the component KernelExponentialFamily is not "
     "normalised; name a class that estimates log Z"),
    ("twice", (), "Twice states `normalised`, which belongs to its specification: write it there, once"),
    ("no_score", (), "NoScore has no score: define `score(x)` or `evaluate(x, batch)`"),
])  # fmt: skip
def test_what_cannot_be_normalised_is_refused_when_planning(
    mine: Path, model: str, overrides: tuple[str, ...], sentence: str
) -> None:
    with pytest.raises(ConfigError) as refused:
        planned(mine, [model], *overrides).check()
    assert sentence in str(refused.value)
    assert "\n" not in str(refused.value)


def test_a_file_from_before_the_flag_was_kept_follows_its_class(mine: Path) -> None:
    few = ("model.max_iterations=1", "model.width=2")
    through = planned(mine, ["energy_net"], *few)
    call(preprocess, "--config", through.preprocess_slice("few", 0), "--out", "rows.h5")
    name = ("few", "energy_net", 0)
    words = ("--data", "rows.h5", "--out", "model.h5", "--trace", "t.csv")
    call(train, "--config", through.train_slice(*name), *words)
    contents = read_hdf5(Path("model.h5"), "a model file", "train again")
    record = {key: value for key, value in contents.record.items() if key not in ("normalised", "sha256")}
    write_hdf5(Path("older.h5"), dict(contents.arrays), record)
    assert contents.record["normalised"] is False
    assert load_model("older.h5").normalised is False
