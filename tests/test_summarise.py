"""The summarise stage: nothing lost, nothing averaged in silence, equal bytes in any order."""

import json
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from dkef.core.errors import DkefError
from dkef.core.streams import rng_for
from dkef.core.tables import read_table, write_table
from dkef.metrics.summary import OUTCOMES, paired_test
from dkef.results.tables import METRICS, PAIRED_TESTS, SUMMARY
from dkef.stages import summarise

SEEDS = 12  # two digits, so that 10 must not sort before 2


def cells(folder: Path) -> list[Path]:
    """Tables of the reference `dkef` and of `maf`, better in likelihood: three runs without one, one untrusted."""
    paths = []
    for model in ("maf", "dkef"):
        for seed in range(SEEDS):
            rng = rng_for("test", "summarise", model, seed)
            values: dict[str, Any] = {"score_loss": -5 + rng.normal(), "log_likelihood": -12 + 0.1 * rng.normal()}
            status = dict.fromkeys(values, "ok")
            if model == "maf":
                values["log_likelihood"] += 2
                if seed == 3:
                    values["log_likelihood"] = None
                    status["log_likelihood"] = "invalid: 2 of 9 log densities not finite"
                if seed == 4:  # a doubtful value is a value
                    status["log_likelihood"] = "untrusted: effective sample size 3 of 1e+06"
                if seed in (0, 7):
                    values, status = dict.fromkeys(values), dict.fromkeys(values, "diverged")
            values["fssd_p_value"] = None if model == "dkef" else 0.5
            status["fssd_p_value"] = "undefined: the model is its own reference" if model == "dkef" else "ok"
            rows = [
                dict.fromkeys(METRICS.columns, "x")
                | {"dataset": "wine", "model": model, "seed": seed, "metric": metric, "value": value, "stderr": 0.1}
                | {"status": status[metric]}
                for metric, value in values.items()
            ]
            paths.append(folder / f"{model}{seed}.csv")
            write_table(paths[-1], METRICS.columns, rows)
    return paths


def run(folder: Path, paths: list[Path], reference: str | None = "dkef") -> None:
    config = json.dumps({"experiment": "test", "references": {"wine": reference}})
    argv = ["summarise", "--config", config, "--metrics", *map(str, paths), "--out", str(folder / "metrics.csv")]
    argv += ["--summary", str(folder / "summary.csv"), "--tests", str(folder / "tests.csv")]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sys, "argv", argv)
        summarise.main()


def test_the_metrics_table_is_the_same_rows_in_one_fixed_order(tmp_path: Path) -> None:
    paths = cells(tmp_path)
    run(tmp_path, paths)
    outputs = [tmp_path / name for name in ("metrics.csv", "summary.csv", "tests.csv")]
    first = [path.read_bytes() for path in outputs]
    run(tmp_path, paths[::-1])
    assert [path.read_bytes() for path in outputs] == first
    inputs = sorted(line for path in paths for line in path.read_text().splitlines()[1:])
    lines = (tmp_path / "metrics.csv").read_text().splitlines()
    assert sorted(lines[1:]) == inputs
    table = read_table(tmp_path / "metrics.csv", METRICS.columns)
    assert table["seed"][table["model"] == "maf"].drop_duplicates().to_list() == [str(s) for s in range(SEEDS)]
    assert table["metric"][:3].to_list() == ["log_likelihood", "score_loss", "fssd_p_value"]


def test_the_summary_says_how_many_runs_stand_behind_each_median(tmp_path: Path) -> None:
    paths = cells(tmp_path)
    run(tmp_path, paths)
    table = read_table(tmp_path / "metrics.csv", METRICS.columns, ["value"])
    summary = read_table(tmp_path / "summary.csv", SUMMARY.columns, ["median", "interval_low", "runs"])
    assert len(summary) == 6
    row = summary[(summary.model == "maf") & (summary.metric == "log_likelihood")].iloc[0]
    values = table[(table.model == "maf") & (table.metric == "log_likelihood")]["value"]
    assert row["median"] == np.median(values.dropna())
    assert row.runs == 12
    assert [row[f"runs_{outcome}"] for outcome in OUTCOMES] == ["8", "1", "2", "1", "0"]
    assert row.interval_low == np.sort(values.dropna())[1]  # nine runs: the second lowest, coverage 0.961
    own = summary[(summary.model == "dkef") & (summary.metric == "fssd_p_value")].iloc[0]
    assert np.isnan(own["median"])
    assert [own.runs_ok, own.runs_undefined] == ["0", "12"]


def test_paired_tests_use_the_seeds_that_both_models_have(tmp_path: Path) -> None:
    run(tmp_path, cells(tmp_path))
    tests = read_table(tmp_path / "tests.csv", PAIRED_TESTS.columns, ["median_difference", "p_value"])
    assert tests["metric"].to_list() == ["log_likelihood", "score_loss"]
    row = tests.iloc[0]
    assert (row.model, row.reference, row.pairs, row.seeds_without_pair) == ("maf", "dkef", "9", "3")
    assert tests["pairs_untrusted"].to_list() == ["1", "0"]
    assert row.median_difference == pytest.approx(2.0, abs=0.3)
    assert row.p_value == pytest.approx(2.0**-8, rel=1e-12)  # all nine differences are positive
    assert row.better == "model"
    assert row.status == "ok"


def test_a_seed_that_one_model_never_ran_is_counted_as_without_a_pair(tmp_path: Path) -> None:
    paths = [path for path in cells(tmp_path) if path.stem != "maf5"]
    run(tmp_path, paths)
    row = read_table(tmp_path / "tests.csv", PAIRED_TESTS.columns).iloc[0]
    assert (row.pairs, row.pairs_untrusted, row.seeds_without_pair) == ("8", "1", "4")


def test_a_lower_score_loss_is_the_better_one(tmp_path: Path) -> None:
    run(tmp_path, cells(tmp_path))
    row = read_table(tmp_path / "tests.csv", PAIRED_TESTS.columns, ["median_difference"]).iloc[1]
    assert row.better == ("reference" if row.median_difference > 0 else "model")


def test_too_few_seeds_leave_the_test_undefined_but_not_the_difference(tmp_path: Path) -> None:
    paths = [path for path in cells(tmp_path) if path.stem in ("maf1", "maf2", "dkef1", "dkef2")]
    run(tmp_path, paths)
    row = read_table(tmp_path / "tests.csv", PAIRED_TESTS.columns, ["median_difference", "p_value"]).iloc[0]
    assert np.isnan(row.p_value)
    assert row.status == "undefined: 2 seeds differ, p below 0.05 needs 6"
    assert row.median_difference == pytest.approx(2.0, abs=0.5)


def test_seeds_without_a_difference_count_as_pairs_but_not_in_the_p_value() -> None:
    differences = np.array([0.0, 0.0, 1.0, 2.0, 3.0, 4.0, 5.0, 6.0])
    assert paired_test(differences, True)["p_value"] == pytest.approx(2.0**-5, rel=1e-12)
    few = paired_test(differences[:5], True)
    assert few["p_value"] is None
    assert few["status"] == "undefined: 3 seeds differ, p below 0.05 needs 6"
    assert paired_test(np.zeros(8), True)["better"] is None


def test_an_experiment_without_a_reference_has_no_paired_tests(tmp_path: Path) -> None:
    run(tmp_path, cells(tmp_path), reference=None)
    assert (tmp_path / "tests.csv").read_text() == ",".join(PAIRED_TESTS.columns) + "\n"


def test_the_same_cell_twice_is_refused(tmp_path: Path) -> None:
    paths = cells(tmp_path)
    with pytest.raises(DkefError, match="two rows for dataset wine, model maf, seed 0, metric score_loss"):
        run(tmp_path, [*paths, paths[0]])
