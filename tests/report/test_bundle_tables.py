"""Tables of a whole bundle: every number is one of metrics.csv, and what is missing says so."""

import math
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from dkef.core.errors import ConfigError
from dkef.report.bundle_tables import KINDS, BundleTable, bundle_table, median_text
from dkef.report.claims.catalogue import judge_all
from dkef.results.experiment import ExperimentInfo
from dkef.results.lookup import Results
from dkef.results.tables import CELLS, CELLS_TABLE, METRICS, SECONDS
from tests import made_up


def about(shows: str, **more: str) -> BundleTable:
    return BundleTable("folder", shows, **more)


def with_rows(results: Results, extra: pd.DataFrame) -> Results:
    metrics = pd.concat([results.frame(METRICS), extra], ignore_index=True)
    return replace(results, tables={**results.tables, "metrics": metrics, "summary": made_up.summary_of(metrics)})


def test_figure_3_has_medians_intervals_runs_and_invalid_ones():
    results = made_up.benchmark_inputs(("redwine", "whitewine"), 3)
    table = bundle_table(about("figure_3"), results, "page")
    assert len(table) == 18
    metrics = results.frame(METRICS)
    chosen = (metrics["dataset"] == "redwine") & (metrics["model"] == "maf") & (metrics["metric"] == "score_loss")
    low, middle, high = np.sort(metrics[chosen]["value"])
    row = table[(table["dataset"] == "RedWine") & (table["model"] == "MAF")].iloc[0]
    assert row["score loss"] == f"{middle:#.3g} [{low:#.3g}, {high:#.3g}]"  # of three runs, the range
    assert row["runs"] == "3 of 3"
    broken = table[(table["dataset"] == "WhiteWine") & (table["model"] == "MADE-MOG")].iloc[0]
    assert broken["invalid"] == "1"
    own = table[(table["dataset"] == "RedWine") & (table["model"] == "DKEF")].iloc[0]
    assert own["p of the FSSD test"] == "the model is its own reference (3)"


def test_one_run_has_its_standard_error_and_doubt_its_mark():
    results = made_up.benchmark_inputs(("redwine",), 1)
    metrics = results.frame(METRICS).assign(status="untrusted: few")
    results = replace(results, tables={"metrics": metrics, "summary": made_up.summary_of(metrics)})
    value = results.run(("redwine", "maf", 0), "log_likelihood").value
    assert median_text(results, "redwine", "maf", "log_likelihood") == f"{value:#.4g} (0.10)?"


def test_variants_beside_stand_in_a_table_of_their_own():
    results = made_up.benchmark_inputs(("redwine",), 2)
    entries = (replace(results.info.datasets[0], beside=("maf",), runs={"maf": 5}),)
    results = replace(results, info=replace(results.info, datasets=entries))
    assert "MAF" not in set(bundle_table(about("figure_3"), results, "page")["model"])
    table = bundle_table(about("variants"), results, "page")
    assert list(table["model"]) == ["MAF"]
    assert list(table["runs"]) == ["2 of 5"]


def test_medians_have_a_column_for_each_synthetic_set():
    results = made_up.synthetic_inputs(("ring", "square"), ("gaussian", "dkef_g15"), 3)
    table = bundle_table(about("medians", metric="fisher_divergence"), results, "page")
    assert list(table.columns) == ["model", "Ring", "Square"]
    values = [run.value for run in results.runs("ring", "dkef_g15", "fisher_divergence").values()]
    assert table.set_index("model")["Ring"]["DKEF-G-15"].startswith(f"{np.median(values):#.2g} [")
    assert table.set_index("model")["Ring"]["DKEF-G-15"].endswith(", 3 of 3")


def test_medians_say_how_many_runs_are_in_doubt():
    results = made_up.synthetic_inputs(("ring",), ("gaussian", "maf"), seeds=3)
    metrics = results.frame(METRICS)
    doubtful = (metrics["model"] == "maf") & (metrics["metric"] == "log_likelihood") & (metrics["seed"] > 0)
    metrics = metrics.assign(status=metrics["status"].mask(doubtful, "untrusted: few"))
    results = replace(results, tables={"metrics": metrics, "summary": made_up.summary_of(metrics)})
    table = bundle_table(about("medians", metric="log_likelihood"), results, "page").set_index("model")
    assert table.loc["MAF"].iloc[0].endswith(", 3 of 3 (2 in doubt)")
    assert table.loc["Gaussian"].iloc[0].endswith(", 3 of 3")


def test_copies_are_shown_in_three_ways():
    results = made_up.benchmark_inputs(("redwine", "parkinsons"), 2)
    red, other = results.info.datasets
    rows = results.frame(METRICS)
    rows = rows[(rows["dataset"] == "redwine") & rows["metric"].isin(["score_loss", "log_likelihood"])]
    extra = rows.assign(metric=rows["metric"] + "_no_copies", value=-7.0)
    info = replace(results.info, datasets=(red, replace(other, variant_of="redwine")))
    table = bundle_table(about("copies"), replace(with_rows(results, extra), info=info), "page")
    row = table[table["model"] == "MAF"].iloc[0]
    assert set(table["dataset"]) == {"RedWine"}
    assert row["score loss, no copies in test"] == "-7.00 [-7.00, -7.00]"
    assert row["score loss, no copies at all"] == median_text(results, "parkinsons", "maf", "score_loss")


def log_z_row(model: str, value: float, metric: str = "log_z", status: str = "ok") -> dict[str, object]:
    cell = {"dataset": "redwine", "model": model, "seed": 0, "metric": metric, "value": value}
    return cell | {"stderr": 0.01, "status": status, "config_digest": "", "code_version": ""}


def test_log_z_of_the_same_model_by_q0_stands_beside_the_other_estimate():
    info = ExperimentInfo("reproduction", "", ())
    rows = [log_z_row("dkef_by_q0", 127.0), log_z_row("dkef", 127.2), log_z_row("dkef_by_q0", 0.5, "log_z_bias_bound")]
    cell = {"dataset": "redwine", "model": "dkef_by_q0", "seed": 0}
    cells = pd.DataFrame(
        [dict.fromkeys(CELLS, "x") | cell | {"effective_sample_size": 5e6, "normalise_seconds": 9000.0}]
    )
    tables = {"metrics": pd.DataFrame(rows), CELLS_TABLE.name: cells}
    table = bundle_table(about("log_z"), Results(info, tables), "page").set_index("dataset")
    assert table.loc["RedWine", "log Z by q0"] == "127.0000 (0.01)"
    assert table.loc["RedWine", "difference"] == "-0.200"
    assert table.loc["RedWine", "bound on its bias"] == "0.5"
    assert table.loc["RedWine", "samples of q0"] == "1e+10"
    assert table.loc["RedWine", "effective samples"] == "5e+06"
    assert table.loc["RedWine", "core-hours"] == "2.50"
    assert table.loc["Parkinsons", "log Z by q0"] == "not run yet"


def test_a_bound_that_was_refused_says_why():
    refused = log_z_row("dkef_by_q0", math.nan, "log_z_bias_bound", "undefined: the variance rests on few samples")
    tables = {"metrics": pd.DataFrame([refused]), CELLS_TABLE.name: pd.DataFrame(columns=CELLS)}
    table = bundle_table(about("log_z"), Results(ExperimentInfo("reproduction", "", ()), tables), "page")
    bounds = dict(zip(table["dataset"], table["bound on its bias"], strict=True))
    assert bounds == {"RedWine": "none: the variance rests on few samples", "Parkinsons": "not run yet"}


def test_verdicts_are_counted_alone_and_with_all_tests_at_once():
    results = made_up.benchmark_inputs(("redwine", "whitewine", "parkinsons"), 15)
    table = bundle_table(about("verdicts"), results, "page").set_index("verdict")
    rows = pd.DataFrame(judge_all(results))
    tested = rows[rows["p_value"] != ""]
    (at_once,) = [name for name in table.columns if name != "statements"]
    assert at_once == f"also with all {len(tested)} tests at once"
    for verdict in ("held", "did not hold"):
        own = rows[rows["verdict"] == verdict]
        certain = (own["p_value"] == "").sum()
        sure = (pd.to_numeric(own["p_value"]) * len(tested) <= 0.05).sum()
        assert list(table.loc[verdict]) == [str(len(own)), str(certain + sure)]
    assert table["statements"].astype(int).sum() == len(rows)


def test_costs_add_up():
    cells = pd.DataFrame([dict.fromkeys(CELLS, "x") | {"dataset": "redwine"} | dict(zip(SECONDS, seconds, strict=True))
                          for seconds in ((3600.0, math.nan, 36.0), (1800.0, 360.0, 36.0))])  # fmt: skip
    results = made_up.benchmark_inputs(("redwine",), 1)
    table = bundle_table(about("costs"), replace(results, tables={CELLS_TABLE.name: cells}), "page")
    assert list(table["dataset"]) == ["RedWine", "all"]
    assert list(table["training, hours"]) == ["1.50", "1.50"]
    assert list(table["log Z, hours"]) == ["0.10", "0.10"]
    assert list(table["metrics and grids, hours"]) == ["0.02", "0.02"]


@pytest.mark.parametrize("shows", [kind for kind in KINDS if kind not in ("claims", "verdicts", "costs", "log_z")])
def test_a_table_of_nothing_says_so(shows):
    table = bundle_table(about(shows), Results(ExperimentInfo("reproduction", "", ())), "page")
    assert "not run yet" in table.to_string()


def test_an_unknown_kind_is_one_sentence():
    with pytest.raises(ConfigError, match="page: a bundle's table shows 'figure_9'; allowed are claims, verdicts"):
        bundle_table(about("figure_9"), made_up.benchmark_inputs(("redwine",), 1), "page")
