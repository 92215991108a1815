"""Reference values beside ours."""

import math
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from dkef.core.errors import DkefError
from dkef.report.reference_values import beside_ours
from dkef.results.experiment import ExperimentInfo
from dkef.results.lookup import Results
from dkef.results.read import read_frame
from dkef.results.tables import KNOWN_VALUES
from tests.made_up import benchmark_metrics, summary_of

TABLE = Path(__file__).parents[1] / "data" / "reference_values.csv"


def beside(**changed: object) -> list[dict[str, Any]]:
    """A made-up reference value beside a made-up summary."""
    row = {
        "source": "notebook", "place": "cell 3", "comparable": "roughly", "dataset": "redwine", "model": "maf",
        "metric": "log_likelihood", "value": -12.4, "uncertainty": 0.1, "note": "",
    }  # fmt: skip
    tables = {"summary": SUMMARY, "known_values": pd.DataFrame([row | changed])}
    return list(beside_ours(Results(ExperimentInfo("made_up", "", ()), tables)))


SUMMARY = summary_of(benchmark_metrics(("redwine", "hepmass_part"), 3))


def test_the_table_of_reference_values_is_well_formed_and_names_a_source_for_each() -> None:
    table = read_frame(KNOWN_VALUES, TABLE)
    assert table["value"].map(math.isfinite).all()
    assert table["source"].astype(bool).all()
    assert table["place"].astype(bool).all()
    # the six medians of four sets, the eleven rows of four toys: enough to notice a lost block
    assert (table["place"] == "figure of October 2018").sum() == 4 * (6 + 5 + 6)
    assert (table["place"] == "toy notebook of September 2018").sum() == 11 * 4 + 3


def test_ours_stands_beside_with_interval_and_difference() -> None:
    (row,) = beside()
    ours = SUMMARY.query("dataset == 'redwine' and model == 'maf' and metric == 'log_likelihood'").iloc[0]
    assert row["ours"] == ours["median"]
    assert row["low"] <= row["ours"] <= row["high"]
    assert row["difference"] == pytest.approx(ours["median"] + 12.4)
    assert row["runs"] == 3


def test_a_part_of_a_set_stands_beside_the_whole_under_its_own_name() -> None:
    (row,) = beside(dataset="hepmass")
    assert row["dataset"] == "hepmass_part"
    assert row["ours"] is not None


def test_a_number_without_ours_keeps_its_row() -> None:
    (row,) = beside(dataset="miniboone")
    assert (row["dataset"], row["ours"], row["difference"], row["runs"]) == ("miniboone", None, None, 0)


def test_a_word_that_is_no_comparability_is_refused() -> None:
    with pytest.raises(DkefError, match=r"reference_values\.csv: comparable is 'maybe'"):
        beside(comparable="maybe")
