"""Sensitivity of FSSD and KSD to their settings, and how far the orders of the models agree."""

import json
import math
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from dkef.config.schema.metrics import Comparison
from dkef.core.errors import DkefError
from dkef.core.streams import rng_for
from dkef.core.tables import read_table
from dkef.data.splits import Splits, write_splits
from dkef.data.whitening import Whitening
from dkef.metrics.agreement import compare_orders
from dkef.metrics.setup import ComparisonSetup
from dkef.metrics.stein import fssd, ksd
from dkef.models import evaluation
from dkef.results.tables import AGREEMENT, SENSITIVITY
from dkef.stages import agreement, sensitivity

SHIFTS = {"far": 1.0, "near": 0.4, "true": 0.0}  # models N(shift, I) of data N(0, I)
COMPARISON = {"fssd_locations": 20}
GRID = {"bandwidth_factors": [0.5, 2.0], "locations": [5, 40]}
NUMBERS = ["seed", "bandwidth_factor", "locations", "value", "stderr"]


@pytest.fixture
def cell(tmp_path: Path) -> Path:
    x = rng_for("test", "sensitivity").standard_normal((300, 2))
    rows = np.arange(len(x))
    splits = Splits("test", x, x, x, rows, rows, rows, Whitening.identity(2), False, ("a", "b"), (), "digest")
    write_splits(tmp_path / "data.h5", splits, {})
    for name, shift in SHIFTS.items():
        write_evaluation(tmp_path / f"{name}.h5", shift - x)
    return tmp_path


def write_evaluation(path: Path, score: Any, status: str = "ok") -> None:
    arrays = {"score": score, "curvature": score, "log_density": score[:, 0]}
    evaluation.write_evaluation(
        path, arrays, {"status": status, "normalised": True, "log_z_status": "ok", "config_digest": "abc"}
    )


def run(module: Any, *argv: str) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sys, "argv", ["stage", *argv])
        module.main()


def measure(folder: Path, seed: int = 0, *extra: str) -> pd.DataFrame:
    """Run the sensitivity stage on all models; returns its table."""
    config = {"dataset": "set", "seed": seed, "models": [*SHIFTS], "comparison": COMPARISON, "sensitivity": GRID}
    files = [str(folder / f"{name}.h5") for name in SHIFTS]
    out = folder / f"sensitivity{seed}.csv"
    paths = ["--data", str(folder / "data.h5"), "--out", str(out)]
    run(sensitivity, "--config", json.dumps(config), "--evaluations", *files, *paths, *extra)
    return read_table(out, SENSITIVITY.columns, NUMBERS)


def agree(folder: Path, *tables: Path, comparison: dict[str, Any] | None = None) -> pd.DataFrame:
    """Run the agreement stage; returns its rank correlations."""
    config = json.dumps({"comparison": comparison or COMPARISON})
    out = ["--out", str(folder / "all.csv"), "--agreement", str(folder / "agreement.csv")]
    run(agreement, "--config", config, "--tables", *map(str, tables), *out)
    numbers = ["models", "bandwidth_factor", "locations", "tau_fssd_ksd", "tau_fssd_default", "tau_ksd_default"]
    return read_table(folder / "agreement.csv", AGREEMENT.columns, numbers)


def test_every_setting_has_a_row_with_the_value_of_its_definition(cell: Path) -> None:
    table = measure(cell)
    assert len(table) == 3 * 3 * (3 + 1)  # models x factors x (numbers of locations and KSD)
    x = rng_for("test", "sensitivity").standard_normal((300, 2))
    setup = ComparisonSetup.draw(x, "set", 0, Comparison(fssd_locations=40))
    for row in table.itertuples():
        width, score = row.bandwidth_factor * setup.median, SHIFTS[row.model] - x
        if row.statistic == "ksd2":
            assert math.isnan(row.locations)
            expected = ksd(x, score, width)
        else:
            expected = fssd(x, score, setup.locations[: int(row.locations)], width)
        assert row.value == pytest.approx(expected.statistic, rel=1e-12, abs=1e-15)
        assert row.stderr == pytest.approx(expected.stderr, rel=1e-9)


def test_the_setting_of_the_comparison_is_the_setup_of_the_comparison(cell: Path) -> None:
    table = measure(cell)
    x = rng_for("test", "sensitivity").standard_normal((300, 2))
    setup = ComparisonSetup.draw(x, "set", 0, Comparison(fssd_locations=20))
    own = table[(table.model == "far") & (table.bandwidth_factor == 1.0) & (table.locations == 20)]
    assert own.value.to_list() == [fssd(x, 1.0 - x, setup.locations, setup.median).statistic]


def test_threads_do_not_change_a_byte(cell: Path) -> None:
    measure(cell)
    one = (cell / "sensitivity0.csv").read_bytes()
    measure(cell, 0, "--threads", "2")
    assert (cell / "sensitivity0.csv").read_bytes() == one


def test_a_diverged_or_invalid_model_keeps_its_rows_without_values(cell: Path) -> None:
    healthy = measure(cell)
    x = rng_for("test", "sensitivity").standard_normal((300, 2))
    write_evaluation(cell / "far.h5", 1.0 - x, status="diverged")
    write_evaluation(cell / "near.h5", np.where(np.arange(300)[:, None] < 2, np.nan, x))
    table = measure(cell)
    assert table[["model", "statistic"]].equals(healthy[["model", "statistic"]])
    assert set(table.status[table.model == "far"]) == {"diverged"}
    assert set(table.status[table.model == "near"]) == {"invalid: 2 of 300 scores not finite"}
    assert table.value[table.model != "true"].isna().all()
    assert table.value[table.model == "true"].notna().all()


def test_models_of_clearly_different_quality_are_ordered_alike_under_every_setting(cell: Path) -> None:
    measure(cell, 0)
    measure(cell, 1)
    found = agree(cell, cell / "sensitivity1.csv", cell / "sensitivity0.csv")
    assert len(found) == 2 * 3 * 3  # seeds x factors x numbers of locations
    assert set(found.models) == {3.0}
    for column in ("tau_fssd_ksd", "tau_fssd_default", "tau_ksd_default"):
        assert set(found[column]) == {1.0}
    assert set(found.best_by_fssd) == set(found.best_by_ksd) == {"true"}
    assert set(found.status) == {"ok"}


def test_the_joint_table_holds_the_same_rows_in_any_order_of_the_inputs(cell: Path) -> None:
    for seed in (2, 10):
        measure(cell, seed)
    tables = [cell / "sensitivity2.csv", cell / "sensitivity10.csv"]
    agree(cell, *tables)
    first = (cell / "all.csv").read_bytes()
    agree(cell, *tables[::-1])
    assert (cell / "all.csv").read_bytes() == first
    lines = [line for path in tables for line in path.read_text().splitlines()[1:]]
    assert sorted(first.decode().splitlines()[1:]) == sorted(lines)


def test_models_without_a_value_take_no_part_and_a_single_one_has_no_order(cell: Path) -> None:
    x = rng_for("test", "sensitivity").standard_normal((300, 2))
    write_evaluation(cell / "far.h5", 1.0 - x, status="diverged")
    measure(cell)
    assert set(agree(cell, cell / "sensitivity0.csv").models) == {2.0}
    write_evaluation(cell / "near.h5", 1.0 - x, status="diverged")
    measure(cell)
    found = agree(cell, cell / "sensitivity0.csv")
    assert set(found.status) == {"undefined: 1 of 3 models can be put in order"}
    assert found.tau_fssd_ksd.isna().all()
    assert set(found.best_by_fssd) == {"true"}


def test_the_rank_correlation_counts_swapped_pairs() -> None:
    left = pd.Series([1.0, 2.0, 3.0, 4.0], index=list("abcd"))
    right = pd.Series([1.0, 3.0, 2.0, 4.0], index=list("abcd"))
    cells = compare_orders({"tau_fssd_ksd": (left, right)})
    assert cells["tau_fssd_ksd"] == pytest.approx((5 - 1) / 6)  # one of six pairs is swapped
    assert cells["best_by_fssd"] == "a"


def test_each_order_is_compared_with_its_own_counterpart() -> None:
    orders = {  # statistic, factor, locations: values of models a, b, c
        ("fssd2", "1.0", "20"): (1, 2, 3),
        ("fssd2", "2.0", "20"): (2, 1, 3),
        ("ksd2", "1.0", ""): (1, 3, 2),
        ("ksd2", "2.0", ""): (3, 2, 1),
    }
    rows = [(*key, model, value) for key, values in orders.items() for model, value in zip("abc", values, strict=True)]
    names = ["statistic", "bandwidth_factor", "locations", "model", "number"]
    table = pd.DataFrame(rows, columns=names).assign(dataset="set", seed="0")
    first, second = agreement.agreement_rows(table, Comparison(fssd_locations=20))
    third = 1 / 3  # one of three pairs is swapped
    taus = ["tau_fssd_ksd", "tau_fssd_default", "tau_ksd_default"]
    assert [first[tau] for tau in taus] == pytest.approx([third, 1.0, 1.0])
    assert [second[tau] for tau in taus] == pytest.approx([-third, third, -third])
    assert (second["bandwidth_factor"], second["best_by_fssd"], second["best_by_ksd"]) == (2.0, "b", "c")


def test_tables_without_the_settings_of_the_comparison_are_refused(cell: Path) -> None:
    measure(cell)
    with pytest.raises(DkefError, match="no row has the settings of the comparison"):
        agree(cell, cell / "sensitivity0.csv", comparison={"fssd_locations": 77})


def test_names_and_files_of_models_must_be_as_many(cell: Path) -> None:
    config = {"dataset": "set", "seed": 0, "models": ["a", "b"], "comparison": {}, "sensitivity": {}}
    files = ["--evaluations", str(cell / "far.h5"), "--data", str(cell / "data.h5"), "--out", str(cell / "o.csv")]
    with pytest.raises(DkefError, match="2 models for 1 files"):
        run(sensitivity, "--config", json.dumps(config), *files)
