"""What reruns when something changes: exactly what reads it."""

import json
import subprocess
import sys

import pandas as pd
import pytest

from tests.workflow.demands import measured, overdrawn
from tests.workflow.outcome import differences, results_of
from tests.workflow.project import Project
from tests.workflow.sentences import KINDS, edit_all

pytestmark = [pytest.mark.slow, pytest.mark.xdist_group("contract")]

# What follows any changed metric: tables, the pages that show them, the figure and the report.
END = {"summarise": 1, "claims": 1, "reference_values": 1, "page": 3, "render": 1, "report": 1}
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
    for name in ("src/dkef/stages/train.py", "src/dkef/stages/compare.py", "config/config.yaml"):
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
    project.edit("config/config.yaml", "defaults:", "comparison: {fssd_locations: 50}\ndefaults:")
    assert project.planned() == {"compare": 4} | END


def test_an_evaluation_setting_reruns_evaluation_and_what_follows(project):
    project.edit("config/config.yaml", "defaults:", "evaluation: {batch_rows: 500}\ndefaults:")
    assert project.planned() == {"evaluate": 4, "compare": 4} | END


# Digests of the code behind every rule, every kind of model and source of rows, whether or not the experiment runs it.
DIGESTS = """
import json
from pathlib import Path
from dkef.config.code import sources_digest
rules = {path.stem: path.read_text() for path in Path("workflow/rules").glob("*.smk")}
stages = [f"dkef.stages.{rule}" for rule, text in rules.items() if f"dkef.stages.{rule}" in text]
names = [f"dkef.models.{family}.spec" for family in ("flows", "gaussian", "kcef", "kef", "mixture")]
names += ["dkef.data.tables", "dkef.data.particles", "dkef.data.synthetic.source", "dkef.normaliser.chunks"]
found = {name: sources_digest(name) for name in stages + names}
print(json.dumps(found | {"all": sources_digest(*names)}))
"""


def digests(project):
    command = [sys.executable, "-c", DIGESTS]
    here = {"cwd": project.folder, "env": project.environment()}
    done = subprocess.run(command, check=True, capture_output=True, text=True, **here)
    return json.loads(done.stdout)


@pytest.mark.parametrize("kind", KINDS)
def test_an_edit_of_every_sentence_in_every_module_reruns_nothing(project, kind):
    before = digests(project)
    assert edit_all(project.folder / "src" / "dkef", kind) > 25
    edit_all(project.folder / "mine", kind)
    assert digests(project) == before
    assert project.planned() == {}


def test_an_edit_of_a_metric_s_formula_reruns_the_comparison_only(project):
    project.edit("src/dkef/metrics/stein.py", "np.exp(", "1.0 * np.exp(")
    assert project.planned() == {"compare": 4} | END


def test_an_edit_of_a_model_s_formula_retrains_that_model_only(project):
    project.edit("mine/my_model.py", "(1 - self.weight)", "(1.0 - self.weight)")
    assert project.planned() == {"train": 2, "evaluate": 2, "compare": 2, "grid": 1} | RETRAINED


def test_an_edit_of_a_default_value_in_a_signature_is_an_edit_of_a_formula(project):
    before = digests(project)
    project.edit("src/dkef/models/protocol.py", "batch: int = 1000", "batch: int = 500")
    changed = {name for name, digest in digests(project).items() if digest != before[name]}
    assert {"dkef.stages.evaluate", "dkef.models.kef.spec"} <= changed
    assert "dkef.stages.preprocess" not in changed


def test_a_formula_of_a_model_that_nobody_runs_reruns_nothing(project):
    project.edit("src/dkef/models/kcef/density.py", "log_sum_exp(", "0.0 + log_sum_exp(")
    project.edit("src/dkef/normaliser/bias_bound.py", "math.log(", "0.0 + math.log(")
    assert project.planned() == {}


def test_a_formula_of_a_synthetic_distribution_concerns_synthetic_sets_only(project):
    project.edit("src/dkef/data/synthetic/planar.py", "np.cos(", "1.0 * np.cos(")
    # One of two datasets, with two models.
    jobs = {"preprocess": 1, "train": 2, "evaluate": 2, "grid": 2, "compare": 2}
    assert project.planned() == jobs | RETRAINED | {"page": 5}


def test_a_setting_of_the_normaliser_concerns_no_figure(project):
    project.edit("src/dkef/config/schema/normaliser.py", "renewals: Whole = 2", "renewals: Whole = 3")
    assert project.planned() == {}


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
    # Every rule but `fetch` and those of chunks, sensitivity and `separated` runs in this experiment.
    assert {job["rule_name"] for job in measured(finished.folder)} >= {"preprocess", "evaluate", "grid"} | END.keys()
    assert overdrawn(finished.folder) == []
