"""The experiment on objectives: what its models differ in, and what its figure reads."""

import json
from dataclasses import asdict
from pathlib import Path
from typing import get_args

import numpy as np
import pandas as pd
import pytest

from dkef.config.plan import Plan
from dkef.core.provenance import canonical
from dkef.models.kef.spec import Objective
from dkef.models.protocol import FitContext
from dkef.models.storage import write_model
from dkef.report.bundled import with_own_tables
from dkef.results.experiment import ExperimentInfo
from dkef.results.lookup import Results
from dkef.results.tables import OBJECTIVE_COSTS
from dkef.stages import objective_costs
from tests.training.small_runs import TINY, rows

SCALING = Path(__file__).parents[1] / "results/published/objectives/scaling.json"


@pytest.mark.parametrize(("dataset", "exact"), [("ring", "dkef_g15"), ("redwine", "dkef"), ("parkinsons", "dkef")])
def test_models_differ_in_the_objective_and_at_most_in_iterations(dataset: str, exact: str) -> None:
    plan = Plan("objectives")
    of_exact = asdict(plan.spec(dataset, exact))
    equal_iterations = []
    for model in plan.models(dataset):
        spec = asdict(plan.spec(dataset, model))
        differing = {key for key in spec if spec[key] != of_exact[key]}
        assert differing <= ({"objective", "max_iterations"} if model.endswith("_cpu") else {"objective"})
        assert json.loads(plan.train_slice(dataset, model, 0))["of"] == exact  # the same start and minibatches
        assert model.removesuffix("_cpu") == (exact if spec["objective"] == "exact" else f"{exact}_{spec['objective']}")
        equal_iterations += [] if model.endswith("_cpu") else [spec["objective"]]
    assert sorted(equal_iterations) == sorted(get_args(Objective))


@pytest.mark.parametrize(("dataset", "measured"), [("ring", "ring"), ("redwine", "wine"), ("parkinsons", "parkinsons")])
def test_equal_processor_time_follows_the_published_ratios_of_step_times(dataset: str, measured: str) -> None:
    plan = Plan("objectives")
    ratios = json.loads(SCALING.read_text())
    exact = plan.spec(dataset, "dkef_g15" if dataset == "ring" else "dkef")
    for model in plan.models(dataset):
        if model.endswith("_cpu"):
            spec = plan.spec(dataset, model)
            budget = exact.max_iterations / ratios[f"objectives_{spec.objective}_over_exact_{measured}"]
            assert abs(spec.max_iterations - budget) <= 5  # budgets are rounded to tens


def test_costs_of_runs_come_from_their_model_files(tmp_path: Path) -> None:
    fit = TINY.fit(rows("costs", 60), rows("costs, validation", 25), FitContext())
    cell = {"dataset": "ring", "model": "dkef_g15", "of": "dkef_g15", "seed": 2, "spec": asdict(TINY), "threads": 1}
    write_model(tmp_path / "model.h5", fit, {"config": cell, "config_digest": "0" * 12, "data_digest": canonical(0)})
    objective_costs.main(["--models", str(tmp_path / "model.h5"), "--out", str(tmp_path / "objective_costs.csv")])
    results = with_own_tables(Results(ExperimentInfo("mine", "", ())), ["objectives"], tmp_path)
    found = results.frame(OBJECTIVE_COSTS)
    assert found[["dataset", "model", "seed", "objective", "iterations"]].to_numpy().tolist() == [
        ["ring", "dkef_g15", 2, "exact", 6]
    ]
    assert found["cpu_seconds_per_step"][0] == fit.notes["cpu_seconds_per_step"]
    assert np.isfinite(found["cpu_seconds_per_validation"][0])
    assert isinstance(found, pd.DataFrame)
