"""The claims stage, and what the workflow gives to it."""

import re
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from dkef.config.experiment import load_experiment
from dkef.config.plan import Plan
from dkef.core.errors import ConfigError
from dkef.core.tables import read_table
from dkef.report.claims.catalogue import STATEMENTS, judge_all
from dkef.report.claims.verdict import FAILED, HELD, OPEN
from dkef.results.experiment import ExperimentInfo
from dkef.results.lookup import Results
from dkef.results.tables import BEHIND_CLAIMS, CLAIMS, TRACES
from tests.made_up import benchmark_metrics, summary_of


def test_the_command_writes_one_row_a_statement(tmp_path: Path) -> None:
    metrics = benchmark_metrics(("redwine", "whitewine"), 3)
    metrics.to_csv(tmp_path / "metrics.csv", index=False)
    summary_of(metrics).to_csv(tmp_path / "summary.csv", index=False)
    config = (
        '{"experiment":"made_up","title":"","datasets":['
        '{"name":"redwine","models":["dkef","maf"],"seeds":[0,1,2],"synthetic":false,"subset_of":null,"title":"R"}]}'
    )
    command = [sys.executable, "-m", "dkef", "claims", "--config", config, "--out", str(tmp_path / "claims.csv")]
    for name in ("metrics", "summary"):
        command += ["--table", name, str(tmp_path / f"{name}.csv")]
    subprocess.run(command, check=True, capture_output=True)
    table = read_table(tmp_path / "claims.csv", CLAIMS.columns)
    assert list(table["claim"]) == [statement.name for statement in STATEMENTS]
    assert set(table["verdict"]) <= {HELD, FAILED, OPEN}
    assert (table[["test", "level", "power"]] != "").all(axis=None)


def test_traces_are_inputs_of_the_claims() -> None:
    """Of unnormalised models only: the command line of a large experiment must stay below 128 kB."""
    assert {table.name: table.cells for table in BEHIND_CLAIMS}[TRACES.name] == "unnormalised"


def test_the_plan_knows_which_log_z_rests_on_q0() -> None:
    plan = Plan("reproduction")
    assert plan.by_q0("redwine", "dkef_by_q0")
    assert not plan.by_q0("redwine", "dkef")  # stops at a tolerance
    assert not plan.by_q0("redwine", "maf")  # has no log Z to estimate


def test_the_slice_says_what_a_claim_may_rest_on() -> None:
    info = ExperimentInfo.parse(Plan("figure_1").experiment_slice())
    assert [entry.by_q0 for entry in info.datasets] == [()]  # it stops at a tolerance
    assert (info.reduced, info.paper_budgets) == (None, False)


@pytest.mark.parametrize(("name", "decides"), [("laptop", False), ("reproduction", True)])
def test_a_reduced_experiment_decides_only_if_each_run_is_the_papers(name: str, decides: bool) -> None:
    experiment = load_experiment(name)
    assert experiment.reduced
    assert experiment.paper_budgets == decides


def test_an_experiment_that_names_claims_is_judged_by_no_other() -> None:
    info = ExperimentInfo.parse(Plan("confirmation").experiment_slice())
    rows = judge_all(Results(info, {}))
    assert {row["claim"] for row in rows} == set(info.claims) < {statement.name for statement in STATEMENTS}
    with pytest.raises(ConfigError, match=r"claim 'training_is_stabel' is unknown; did you mean training_is_stable\?"):
        judge_all(Results(replace(info, claims=("training_is_stabel",)), {}))


def test_every_claim_stands_in_the_list_of_sentences() -> None:
    text = (Path(__file__).parents[2] / "results" / "claims.md").read_text(encoding="utf-8")
    named = re.findall(r"`(\w+)`", text)
    known = {statement.name for statement in STATEMENTS}
    assert known <= set(named)
    assert set(named) - known <= {"mixtures", "separated"}  # a figure and an experiment
