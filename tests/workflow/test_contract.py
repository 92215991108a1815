"""What reruns when something changes: exactly what reads it."""

import pandas as pd
import pytest

from tests.workflow.demands import measured, overdrawn
from tests.workflow.outcome import differences, results_of
from tests.workflow.project import Project

pytestmark = [pytest.mark.slow, pytest.mark.xdist_group("contract")]

# What follows any changed metric: tables, the pages that show them, the figure and the report.
END = {"summarise": 1, "claims": 1, "published": 1, "page": 3, "render": 1, "report": 1}
RETRAINED = END | {"page": 4}  # and the page of what produced each model


@pytest.fixture
def project(finished, tmp_path):
    return finished.copy(tmp_path / "project")


def test_a_finished_run_has_nothing_to_do(finished):
    assert finished.planned() == {}


def test_the_finished_run_left_figures_tables_and_a_report(finished):
    for name in ("figures/contract/toys.png", "figures/contract/toys.pdf", "results/contract/report.html"):
        assert (finished.folder / name).stat().st_size > 1000, name
    metrics = pd.read_csv(finished.folder / "results/contract/metrics.csv")
    columns = ["dataset", "model", "seed", "metric", "value", "stderr", "status", "config_digest", "code_version"]
    assert list(metrics.columns) == columns
    assert set(metrics["model"]) == {"gaussian", "shrunk"}
    assert not [*finished.folder.rglob("*.partial"), *finished.folder.rglob("checkpoint-*")]


def test_a_comment_in_yaml_reruns_nothing(project):
    project.edit("mine/model/shrunk.yaml", "weight", "# a remark\nweight")
    assert project.planned() == {}


def test_a_touched_file_reruns_nothing(project):
    for name in ("src/dkef/train.py", "src/dkef/compare.py", "config/config.yaml"):
        (project.folder / name).touch()
    assert project.planned() == {}


def test_an_edit_of_the_conda_environment_reruns_nothing_where_conda_is_not_used(project):
    project.edit("environment.yml", "name: dkef", "name: other")
    assert project.planned() == {}


def test_a_value_of_a_model_retrains_that_model_only(project):
    project.edit("mine/model/shrunk.yaml", "weight: 0.5", "weight: 0.25")
    # Two datasets; one of them can be drawn.
    assert project.planned() == {"train": 2, "evaluate": 2, "compare": 2, "grid": 1} | RETRAINED


def test_a_metric_setting_reruns_the_comparison_only(project):
    project.edit("config/config.yaml", "fssd_locations: 100", "fssd_locations: 50")
    assert project.planned() == {"compare": 4} | END


def test_an_evaluation_setting_reruns_evaluation_and_what_follows(project):
    project.edit("config/config.yaml", "batch_rows: 1000", "batch_rows: 500")
    assert project.planned() == {"evaluate": 4, "compare": 4} | END


def test_an_edit_of_a_stage_s_module_reruns_that_stage_and_what_follows(project):
    project.edit("src/dkef/compare.py", '"""', '"""Edited. ')
    assert project.planned() == {"compare": 4} | END


def test_an_edit_of_a_model_s_module_retrains_that_model_only(project):
    project.edit("mine/my_model.py", "class ShrunkModel", "# edited\nclass ShrunkModel")
    assert project.planned() == {"train": 2, "evaluate": 2, "compare": 2, "grid": 1} | RETRAINED


def test_an_added_dataset_adds_its_own_cells(project):
    project.edit("config/experiment/contract.yaml", "wine_recognition]", "wine_recognition, breast_cancer]")
    assert project.planned() == {"preprocess": 1, "train": 2, "evaluate": 2, "compare": 2} | END | {"page": 6}


def test_one_core_and_two_cores_give_the_same_results(finished, tmp_path):
    single = Project.make(tmp_path / "single")
    done = single.run(cores=1)
    assert done.returncode == 0, done.stderr
    assert {path.suffix for path in results_of(finished.folder)} >= {".csv", ".h5"}
    assert differences(finished.folder, single.folder) == []


def test_no_job_takes_more_than_its_rule_asks_for(finished):
    # Every rule but `fetch` and those of chunks, sensitivity and mixtures runs in this experiment.
    assert {job["rule_name"] for job in measured(finished.folder)} >= {"preprocess", "evaluate", "grid"} | END.keys()
    assert overdrawn(finished.folder) == []
