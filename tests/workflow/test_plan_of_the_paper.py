"""The paper's experiment can be planned with neither data nor network, and a mistake stops before any job."""

import math

import pytest

from dkef.plan import Plan
from tests.workflow.project import Project

pytestmark = [pytest.mark.slow, pytest.mark.xdist_group("paper")]


@pytest.fixture(scope="module")
def bare(tmp_path_factory):
    return Project.make(tmp_path_factory.mktemp("bare") / "project")


def test_the_dry_run_of_the_paper_plans_every_cell_of_the_grid(bare):
    planned = bare.planned(experiment="paper")
    plan = Plan("paper")
    unnormalised = [cell for cell in plan.cells if not plan.normalised(*cell[:2])]
    chunks = 0
    for dataset, model, _ in unnormalised:
        settings = plan.cell(dataset, model).normaliser
        chunks += math.ceil(settings.samples / settings.chunk_samples)
        chunks += 2 * math.ceil(settings.bound_samples / settings.chunk_samples)
    # Figure 1: 2 models x 1 seed; 7 sets x 12 models and 10 mixtures x 5 seeds; 5 sets x 9 models x 15 seeds.
    cells = 2 + (7 * 12 + 10) * 5 + 5 * 9 * 15
    assert len(plan.cells) == cells
    assert planned["train"] == planned["evaluate"] == planned["compare"] == cells
    assert planned["preprocess"] == 1 + 7 * 5 + 5 * 15
    assert planned["normalise"] == planned["normalise_pilot"] == len(unnormalised)
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
