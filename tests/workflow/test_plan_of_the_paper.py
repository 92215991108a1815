"""The paper's experiment can be planned with neither data nor network, and a mistake stops before any job."""

import json
import math
import subprocess
import sys
from collections import Counter

import pytest

from dkef.config.jobs import Wanted, pending_jobs
from dkef.config.plan import Plan
from dkef.report.figures.catalogue import find
from dkef.report.pages.catalogue import PAGES
from tests.workflow.project import ROOT, Project

pytestmark = [pytest.mark.slow, pytest.mark.xdist_group("paper")]


@pytest.fixture(scope="module")
def bare(tmp_path_factory):
    return Project.make(tmp_path_factory.mktemp("bare") / "project")


# In a process of its own, whose only child is the dry run: the peak would else be that of the tests' largest child.
MEASURED = """
import json, resource, sys
from pathlib import Path
from tests.workflow.project import ROOT, Project
planned = Project(Path(sys.argv[1])).planned(experiment="paper")
used = resource.getrusage(resource.RUSAGE_CHILDREN)
print(json.dumps([planned, used.ru_utime + used.ru_stime, used.ru_maxrss / 1024]))
"""


@pytest.fixture(scope="module")
def dry_run(bare):
    """Jobs of the paper by rule, and what it took to plan them: seconds of processor time, peak of memory in MB."""
    command = [sys.executable, "-c", MEASURED, str(bare.folder)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
    return json.loads(done.stdout.splitlines()[-1])


def test_the_dry_run_of_the_paper_takes_less_than_a_minute_and_a_gigabyte(dry_run):
    _, seconds, megabytes = dry_run
    # Processor time, because the tests share the machine.
    assert seconds < 60
    assert megabytes < 1000


def test_the_dry_run_of_the_paper_plans_every_cell_of_the_grid(dry_run):
    planned, _, _ = dry_run
    plan = Plan("paper")
    unnormalised = [cell for cell in plan.cells if not plan.normalised(*cell[:2])]
    chunks = 0
    for dataset, model, _ in unnormalised:
        settings = plan.cell(dataset, model).normaliser
        chunks += math.ceil(settings.samples / settings.chunk_samples)
        chunks += 2 * math.ceil(settings.bound_samples / settings.chunk_samples)
    # Figure 1: 2 models x 10 seeds; 7 sets x 13 models and 10 mixtures x 5 seeds; 5 sets x 9 models x 15 seeds.
    cells = 2 * 10 + (7 * 13 + 10) * 5 + 5 * 9 * 15
    assert len(plan.cells) == cells
    assert planned["train"] == planned["evaluate"] == planned["compare"] == cells
    assert planned["preprocess"] == 10 + 7 * 5 + 5 * 15
    assert planned["normalise_merge"] == planned["normalise_pilot"] == len(unnormalised)
    assert planned["normalise_chunk"] == chunks
    assert planned["render"] == 6


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["experiment=nonsense"], "experiment 'nonsense' is unknown"),
        (["experiment=contract", "overrides=protocol.inducing_points=0"], "inducing_points is 0; allowed is >= 1"),
        (["experiment=contract", "overrides=protocol.inducing_points=many"], "inducing_points"),
        (["experiment=contract", "overrides=protocol.pionts=3"], "pionts"),
        (["experiment=contract", "expriment=paper"], "expriment"),
        (["experiment=contract", "overrides=17"], "17"),
    ],
)
def test_a_mistake_on_the_command_line_stops_before_any_job(bare, arguments, message):
    done = bare.run(config=tuple(arguments))
    assert done.returncode != 0
    assert message in done.stderr
    assert "rule " not in done.stdout + done.stderr
    assert not (bare.folder / "results").exists()


def test_make_plan_counts_the_jobs_of_the_dry_run(dry_run, bare):
    planned, _, _ = dry_run
    plan = Plan("paper")
    figures = {name: [table.name for table in find(name).tables] for name in plan.experiment.figures}
    counts = Counter(job.stage for job in pending_jobs(plan, Wanted(figures, PAGES), bare.folder))
    assert dict(counts) == planned


def test_make_plan_answers_an_unknown_experiment_with_a_sentence():
    command = [sys.executable, "-m", "dkef", "plan", "--experiment", "papr"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert "experiment 'papr' is unknown" in done.stderr
    assert "Traceback" not in done.stderr
