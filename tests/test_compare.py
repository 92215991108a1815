"""The compare stage: its rows, its reasons, and what it must not import."""

import json
import math
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from dkef.config.schema.metrics import Comparison
from dkef.core.arrays import Array
from dkef.core.errors import DkefError
from dkef.core.provenance import canonical
from dkef.core.streams import rng_for
from dkef.core.tables import read_table
from dkef.data.splits import Splits, write_splits
from dkef.data.whitening import Whitening
from dkef.metrics.pointwise import score_loss
from dkef.metrics.registry import METRICS
from dkef.metrics.setup import ComparisonSetup
from dkef.metrics.stein import compare_fssd, fssd, ksd
from dkef.models import evaluation
from dkef.results.tables import METRICS as METRICS_TABLE
from dkef.stages import compare

N, D = 60, 2
LOG_Z = {"log_z": 1.5, "log_z_stderr": 0.1, "log_z_bias_bound": 0.01, "status": "ok", "extra": [1]}


@pytest.fixture
def cell(tmp_path: Path) -> Path:
    """A folder with splits of N(0, I) whitened by 2 I, and evaluations of N(0.3, I) and, as `dkef`, of N(0, I)."""
    x = rng_for("test", "compare").standard_normal((N, D))
    rows = np.arange(N)
    splits = Splits(
        "test", x, x, x, rows, rows, rows, Whitening(np.zeros(D), 2 * np.eye(D)), True, ("a", "b"), (), "digest"
    )
    write_splits(tmp_path / "data.h5", splits, {})
    write_evaluation(tmp_path / "evaluation.h5", x, 0.3)
    write_evaluation(tmp_path / "reference.h5", x, 0.0)
    (tmp_path / "log_z.json").write_text(json.dumps(LOG_Z))
    return tmp_path


def write_evaluation(
    path: Path,
    x: Array,
    shift: float,
    truth: bool = True,
    change: Callable[[Any], None] = lambda file: None,
    **record: Any,
) -> None:
    """An evaluation of N(shift, I) as the evaluate stage leaves it."""
    log_density = -0.5 * ((x - shift) ** 2).sum(axis=1) - math.log(2 * math.pi)
    arrays = {"log_density": log_density, "score": shift - x, "curvature": -np.ones_like(x)}
    if truth:
        arrays |= {"true_log_density": -0.5 * (x**2).sum(axis=1) - math.log(2 * math.pi), "true_score": -x}
    change(arrays)
    evaluation.write_evaluation(
        path, arrays, {"status": "ok", "normalised": True, "log_z_status": "ok", "config_digest": "abc"} | record
    )


def run(
    folder: Path, *extra: str, model: str = "made", out: str = "metrics.csv", settings: dict[str, Any] | None = None
) -> pd.DataFrame:
    """Run the stage in this process; returns its table by metric."""
    config = {"dataset": "set", "model": model, "seed": 3, "comparison": settings or {}, "normalised": True}
    argv = ["compare", "--config", canonical(config), "--evaluation", str(folder / "evaluation.h5")]
    argv += ["--data", str(folder / "data.h5"), "--out", str(folder / out), *extra]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sys, "argv", argv)
        compare.main()
    return read_table(folder / out, METRICS_TABLE.columns, ["value", "stderr"]).set_index("metric")


def reference(folder: Path) -> tuple[str, str]:
    return "--reference", str(folder / "reference.h5")


def test_every_metric_has_one_row_with_the_value_of_its_definition(cell: Path) -> None:
    table = run(cell, *reference(cell))
    x = rng_for("test", "compare").standard_normal((N, D))
    setup = ComparisonSetup.draw(x, "set", 3, Comparison())
    kernel = (setup.locations, setup.median)
    expected = {
        "log_likelihood": (-0.5 * ((x - 0.3) ** 2).sum(axis=1)).mean() - math.log(2 * math.pi),
        "score_loss": score_loss(0.3 - x, -np.ones_like(x)).value,
        "fssd2": fssd(x, 0.3 - x, *kernel).statistic,
        "fssd_p_value": compare_fssd(x, 0.3 - x, -x, *kernel).p_value,
        "ksd2": ksd(x, 0.3 - x, setup.median).statistic,
        "ksd2_v": ksd(x, 0.3 - x, setup.median).v_statistic,
        "fisher_divergence": 0.09,
        "true_log_likelihood": (-0.5 * (x**2).sum(axis=1)).mean() - math.log(2 * math.pi),
    }
    expected["log_likelihood_raw"] = expected["log_likelihood"] + 2 * math.log(2)
    rows = {
        "log_likelihood": -0.5 * ((x - 0.3) ** 2).sum(axis=1) - math.log(2 * math.pi),
        "score_loss": (-1 + 0.5 * (0.3 - x) ** 2).sum(axis=1),
        "fisher_divergence": np.full(N, 0.09),
    }
    for metric, values in rows.items():
        expected[f"{metric}_median"] = np.median(values)
        expected[f"{metric}_largest_row"] = np.abs(values).max() / np.abs(values).sum()
    assert set(table.index) == set(expected)
    for metric, value in expected.items():
        assert table.value[metric] == pytest.approx(value, rel=1e-12), metric
    assert set(table.status) == {"ok"}
    without = ["fssd_p_value", *(metric for metric in expected if metric.endswith("_largest_row"))]
    assert table.stderr.drop(without).notna().all()
    assert [*table.index] == [metric for metric in METRICS if metric in expected]


def test_the_first_line_is_the_promised_header(cell: Path) -> None:
    run(cell)
    header = (cell / "metrics.csv").read_text().splitlines()[0]
    assert header == "dataset,model,seed,metric,value,stderr,status,config_digest,code_version"


def test_an_unnormalised_model_gets_its_likelihood_from_log_z_with_the_bound(cell: Path) -> None:
    x = rng_for("test", "compare").standard_normal((N, D))
    write_evaluation(cell / "evaluation.h5", x, 0.3, normalised=False)
    table = run(cell, *reference(cell), "--log-z", str(cell / "log_z.json"))
    write_evaluation(cell / "evaluation.h5", x, 0.3)
    plain = run(cell, *reference(cell))
    assert table.value["log_likelihood"] == pytest.approx(plain.value["log_likelihood"] - 1.5, rel=1e-12)
    assert table.value["log_likelihood_raw"] == pytest.approx(plain.value["log_likelihood_raw"] - 1.5, rel=1e-12)
    assert table.stderr["log_likelihood"] == pytest.approx(math.hypot(plain.stderr["log_likelihood"], 0.1), rel=1e-12)
    assert table.value["log_z"] == 1.5
    assert table.stderr["log_z"] == 0.1
    assert table.value["log_z_bias_bound"] == table.value["log_likelihood_bias_bound"] == 0.01


def test_the_doubts_of_the_normaliser_go_with_every_number_that_rests_on_it(cell: Path) -> None:
    x = rng_for("test", "compare").standard_normal((N, D))
    write_evaluation(cell / "evaluation.h5", x, 0.3, normalised=False)
    doubt = {"status": "untrusted: effective sample size 4 of 1e+06", "log_z_bias_bound": None}
    (cell / "log_z.json").write_text(json.dumps(LOG_Z | doubt | {"bound_condition": "rho is 0.6, not below 1/2"}))
    table = run(cell, "--log-z", str(cell / "log_z.json"))
    for metric in ("log_likelihood", "log_likelihood_raw", "log_z"):
        assert table.status[metric] == doubt["status"]
        assert math.isfinite(table.value[metric])
    for metric in ("log_likelihood_bias_bound", "log_z_bias_bound"):
        assert table.status[metric] == "undefined: rho is 0.6, not below 1/2"
        assert math.isnan(table.value[metric])
    assert table.status["score_loss"] == "ok"


def test_the_doubt_of_a_mixture_about_its_components_goes_with_its_likelihood(cell: Path) -> None:
    x = rng_for("test", "compare").standard_normal((N, D))
    sound = run(cell)
    write_evaluation(cell / "evaluation.h5", x, 0.3, log_z_status="untrusted: component 1, one sample makes 0.34 of Z")
    table = run(cell)
    for metric in ("log_likelihood", "log_likelihood_raw"):
        assert table.status[metric] == "untrusted: component 1, one sample makes 0.34 of Z"
        assert table.value[metric] == sound.value[metric]
    assert table.status["score_loss"] == "ok"


def test_without_log_z_an_unnormalised_model_has_no_likelihood_but_all_else(cell: Path) -> None:
    x = rng_for("test", "compare").standard_normal((N, D))
    write_evaluation(cell / "evaluation.h5", x, 0.3, normalised=False)
    table = run(cell)
    for metric in ("log_likelihood", "log_likelihood_raw", "log_likelihood_bias_bound", "log_z", "log_z_bias_bound"):
        assert math.isnan(table.value[metric])
        assert table.status[metric] == "undefined: no log Z was given"
    assert table.status["score_loss"] == "ok"


@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_scores_that_are_not_finite_leave_a_status_a_count_and_a_log_line(
    cell: Path, value: float, caplog: pytest.LogCaptureFixture
) -> None:
    def spoil(arrays: dict[str, Array]) -> None:
        arrays["score"][[5, 20, 40], 1] = value

    x = rng_for("test", "compare").standard_normal((N, D))
    write_evaluation(cell / "evaluation.h5", x, 0.3, change=spoil)
    table = run(cell, *reference(cell))
    for metric in ("score_loss", "fssd2", "fssd_p_value", "ksd2", "ksd2_v", "fisher_divergence"):
        assert math.isnan(table.value[metric])
        assert math.isnan(table.stderr[metric])
        assert table.status[metric] == "invalid: 3 of 60 scores not finite"
        assert f"set, made, seed 3: {metric} invalid: 3 of 60 scores not finite" in caplog.text
    assert table.status["log_likelihood"] == "ok"


def test_a_reference_that_is_not_finite_spoils_the_p_value_only(cell: Path) -> None:
    def spoil(arrays: dict[str, Array]) -> None:
        arrays["score"][7] = np.nan

    x = rng_for("test", "compare").standard_normal((N, D))
    write_evaluation(cell / "reference.h5", x, 0.0, change=spoil)
    table = run(cell, *reference(cell))
    assert table.status["fssd_p_value"] == "invalid: 1 of 60 scores of the reference dkef not finite"
    assert (table.status.drop("fssd_p_value") == "ok").all()


def test_the_reference_against_itself_is_undefined(cell: Path) -> None:
    table = run(cell, *reference(cell), model="dkef")
    assert table.status["fssd_p_value"] == "undefined: the model is its own reference"
    assert math.isnan(table.value["fssd_p_value"])
    assert (table.status.drop("fssd_p_value") == "ok").all()


def test_a_twin_of_the_reference_and_a_missing_or_diverged_one_are_told_apart(cell: Path) -> None:
    x = rng_for("test", "compare").standard_normal((N, D))
    statuses = [run(cell).status["fssd_p_value"]]
    write_evaluation(cell / "reference.h5", x, 0.3)
    statuses += [run(cell, *reference(cell)).status["fssd_p_value"]]
    write_evaluation(cell / "reference.h5", x, 0.0, status="diverged")
    statuses += [run(cell, *reference(cell)).status["fssd_p_value"]]
    assert statuses == [
        "undefined: the reference dkef is not part of this run",
        "undefined: the scores equal those of the reference dkef",
        "undefined: the reference dkef: diverged",
    ]


def test_a_diverged_run_keeps_all_its_rows_without_values(cell: Path) -> None:
    healthy = run(cell, *reference(cell))
    x = rng_for("test", "compare").standard_normal((N, D))
    write_evaluation(cell / "evaluation.h5", x, 0.3, status="diverged")
    table = run(cell, *reference(cell))
    assert [*table.index] == [*healthy.index]
    assert (table.status.drop("true_log_likelihood") == "diverged").all()
    assert table.value.drop("true_log_likelihood").isna().all()
    assert table.value["true_log_likelihood"] == healthy.value["true_log_likelihood"]  # needs no model


def test_without_a_known_truth_there_is_no_fisher_divergence(cell: Path) -> None:
    x = rng_for("test", "compare").standard_normal((N, D))
    write_evaluation(cell / "evaluation.h5", x, 0.3, truth=False)
    table = run(cell)
    assert "fisher_divergence" not in table.index
    assert "true_log_likelihood" not in table.index


def test_two_runs_write_the_same_bytes_with_any_number_of_threads(cell: Path) -> None:
    run(cell, *reference(cell), out="one.csv")
    run(cell, *reference(cell), "--threads", "3", out="three.csv")
    assert (cell / "one.csv").read_bytes() == (cell / "three.csv").read_bytes()


def test_block_rows_change_no_number_beyond_rounding(cell: Path) -> None:
    whole, blocks = run(cell, *reference(cell)), run(cell, *reference(cell), settings={"block_rows": 7})
    np.testing.assert_allclose(blocks.value, whole.value, rtol=1e-12, atol=1e-14)


def test_the_digest_knows_the_settings_and_what_lies_behind_the_inputs(cell: Path) -> None:
    digests = [run(cell, *reference(cell)).config_digest.iloc[0]]
    digests += [run(cell, *reference(cell), settings={"fssd_locations": 50}).config_digest.iloc[0]]
    x = rng_for("test", "compare").standard_normal((N, D))
    write_evaluation(cell / "evaluation.h5", x, 0.3, config_digest="other")
    digests += [run(cell, *reference(cell)).config_digest.iloc[0]]
    write_evaluation(cell / "evaluation.h5", x, 0.3)
    assert len(set(digests)) == 3
    assert run(cell, *reference(cell)).config_digest.iloc[0] == digests[0]


def test_the_setup_is_shared_by_models_and_differs_between_datasets_and_seeds() -> None:
    x = rng_for("test", "yardstick").standard_normal((100, 3))
    settings = Comparison(ksd_max_rows=30, median_rows=20, fssd_locations=10)
    base = ComparisonSetup.draw(x, "a", 0, settings)
    again, other, seed = (ComparisonSetup.draw(x, *key, settings) for key in (("a", 0), ("b", 0), ("a", 1)))
    np.testing.assert_array_equal(base.locations, again.locations)
    assert base.median == again.median
    for different in (other, seed):
        assert not np.array_equal(base.locations, different.locations)
        assert not np.array_equal(base.ksd_rows, different.ksd_rows)
        assert base.median != different.median
    assert len(set(base.ksd_rows)) == 30


def test_ksd_beyond_the_cap_is_that_of_the_drawn_rows(cell: Path) -> None:
    table = run(cell, settings={"ksd_max_rows": 25})
    x = rng_for("test", "compare").standard_normal((N, D))
    setup = ComparisonSetup.draw(x, "set", 3, Comparison(ksd_max_rows=25))
    rows = setup.ksd_rows
    assert table.value["ksd2"] == pytest.approx(ksd(x[rows], 0.3 - x[rows], setup.median).statistic, rel=1e-12)


def test_a_score_that_is_not_finite_counts_whether_or_not_its_row_is_drawn_for_ksd(cell: Path) -> None:
    x = rng_for("test", "compare").standard_normal((N, D))
    drawn = ComparisonSetup.draw(x, "set", 3, Comparison(ksd_max_rows=25)).ksd_rows
    left_out = min(set(range(N)) - set(drawn))

    def spoil(arrays: dict[str, Array]) -> None:
        arrays["score"][left_out] = np.nan

    write_evaluation(cell / "evaluation.h5", x, 0.3, change=spoil)
    assert run(cell, settings={"ksd_max_rows": 25}).status["ksd2"] == "invalid: 1 of 60 scores not finite"


def test_each_bandwidth_is_its_own_factor_times_the_median(cell: Path) -> None:
    table = run(cell, settings={"fssd_bandwidth_factor": 0.5, "ksd_bandwidth_factor": 3.0})
    x = rng_for("test", "compare").standard_normal((N, D))
    setup = ComparisonSetup.draw(x, "set", 3, Comparison())
    near = fssd(x, 0.3 - x, setup.locations, 0.5 * setup.median)
    everywhere = ksd(x, 0.3 - x, 3.0 * setup.median)
    assert table.value["fssd2"] == pytest.approx(near.statistic, rel=1e-12)
    assert table.value["ksd2"] == pytest.approx(everywhere.statistic, rel=1e-12)


def test_an_evaluation_of_other_points_is_refused(cell: Path) -> None:
    write_evaluation(cell / "evaluation.h5", np.zeros((N - 1, D)), 0.3)
    with pytest.raises(DkefError, match=r"\(59, 2\) for test points of the shape \(60, 2\)"):
        run(cell)


def test_a_misspelt_setting_is_one_sentence(cell: Path) -> None:
    with pytest.raises(DkefError, match="did you mean fssd_locations"):
        run(cell, settings={"fssd_location": 3})


def test_the_command_line_imports_no_tensorflow_and_takes_empty_options(cell: Path) -> None:
    config = canonical({"dataset": "set", "model": "made", "seed": 0, "comparison": {}, "normalised": True})
    code = (
        "import sys\nfrom dkef.stages import agreement, claims, compare, page, reference_values, render\n"
        "from dkef.stages import sensitivity, summarise\n"
        "compare.main()\nprint(sorted(m for m in sys.modules if m.split('.')[0] in ('tensorflow', 'keras')))"
    )
    argv = ["--config", config, "--data", str(cell / "data.h5"), "--evaluation", str(cell / "evaluation.h5")]
    argv += ["--reference", "--log-z", "--out", str(cell / "out.csv")]
    done = subprocess.run([sys.executable, "-c", code, *argv], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
    assert (cell / "out.csv").exists()
