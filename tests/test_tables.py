"""Tables that keep every bit of a number."""

from pathlib import Path

import numpy as np
import pytest

from dkef.core.errors import DkefError
from dkef.core.streams import rng_for
from dkef.core.tables import read_table, write_table


def test_numbers_come_back_to_the_last_bit(tmp_path: Path) -> None:
    # Random bit patterns, so that every exponent and every last digit occurs.
    bits = rng_for("test", "bits").integers(0, 2**63 - 1, size=3000, dtype=np.int64)
    values = [float(v) for v in bits.view(np.float64) if np.isfinite(v)]
    write_table(tmp_path / "t.csv", ["value"], [{"value": np.float64(v)} for v in values])
    np.testing.assert_array_equal(read_table(tmp_path / "t.csv", ["value"], ["value"])["value"], values)


def test_an_empty_cell_is_a_missing_number_and_words_like_nan_stay_words(tmp_path: Path) -> None:
    rows = [{"model": "NA", "value": None, "note": 'a "quoted", comma'}, {"model": "nan", "value": 1.5, "note": "ok"}]
    write_table(tmp_path / "t.csv", ["model", "value", "note"], rows)
    table = read_table(tmp_path / "t.csv", ["model", "value", "note"], ["value"])
    assert table["model"].to_list() == ["NA", "nan"]
    assert table["note"].to_list() == ['a "quoted", comma', "ok"]
    np.testing.assert_array_equal(table["value"], [np.nan, 1.5])


def test_a_row_without_a_promised_cell_is_a_bug_and_leaves_no_file(tmp_path: Path) -> None:
    with pytest.raises(KeyError):
        write_table(tmp_path / "t.csv", ["model", "value"], [{"model": "a"}])
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(("text", "message"), [("", "not a table"), ("a,b\n1,2\n", "expected are a, c")])
def test_another_table_is_refused_in_one_sentence(tmp_path: Path, text: str, message: str) -> None:
    (tmp_path / "t.csv").write_text(text)
    with pytest.raises(DkefError, match=message):
        read_table(tmp_path / "t.csv", ["a", "c"])
    with pytest.raises(DkefError, match="does not exist"):
        read_table(tmp_path / "missing.csv", ["a"])
