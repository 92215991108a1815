import gzip
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from dkef.core.errors import ConfigError, DkefError
from dkef.core.streams import rng_for
from dkef.data import delimited
from dkef.data.problems import MISSING
from dkef.data.source import RawTable, Removed
from dkef.data.tables import Bundled, Csv, Npy

RNG = rng_for("test", "tables")
GOOD = "a,b,label\n1,2.5,x\n3,-4e-1,y\n5,6,x\n"


def csv_file(folder: Path, text: str) -> str:
    path = folder / "mine.csv"
    path.write_text(text)
    return str(path)


def read(source: Csv | Npy | Bundled) -> RawTable:
    return source.read(Path("nowhere"), rng_for("test"))


def test_columns_come_in_the_asked_order_and_the_dropped_ones_with_their_reason(tmp_path: Path) -> None:
    table = read(Csv(paths=[csv_file(tmp_path, GOOD)], columns=["b", "a"], drop={"label": "text"}))
    np.testing.assert_array_equal(table.values, [[2.5, 1], [-0.4, 3], [6, 5]])
    assert table.columns == ("b", "a")
    assert table.removed == (Removed("column", "label", "text"),)


def test_numbers_are_read_to_the_last_bit(tmp_path: Path) -> None:
    x = RNG.standard_normal((500, 3)) * 10.0 ** RNG.integers(-30, 30, (500, 3))
    text = "a,b,c\n" + "\n".join(",".join(repr(float(v)) for v in row) for row in x)
    np.testing.assert_array_equal(read(Csv(paths=[csv_file(tmp_path, text)])).values, x)


def test_files_are_joined_in_order_and_gzip_is_seen_by_its_first_bytes(tmp_path: Path) -> None:
    (tmp_path / "one.csv").write_text("a,b\n1,2\n")
    (tmp_path / "two.data").write_bytes(gzip.compress(b"a,b\n3,4\n5,6\n"))
    table = Csv(files=["one.csv"], paths=[str(tmp_path / "two.data")]).read(tmp_path, RNG)
    np.testing.assert_array_equal(table.values, [[1, 2], [3, 4], [5, 6]])


def test_a_byte_order_mark_and_quoted_names_are_understood(tmp_path: Path) -> None:
    (tmp_path / "bom.csv").write_bytes(b'\xef\xbb\xbf"one name";"b"\n1;2\n3;4\n')
    assert read(Csv(paths=[str(tmp_path / "bom.csv")], separator=";")).columns == ("one name", "b")


def test_names_replace_a_missing_header(tmp_path: Path) -> None:
    path = csv_file(tmp_path, "comment\n1 2\n3   4\n")
    table = read(Csv(paths=[path], separator="whitespace", names=["u", "v"], skip_lines=1))
    np.testing.assert_array_equal(table.values, [[1, 2], [3, 4]])


def test_max_rows_reads_so_many_rows(tmp_path: Path) -> None:
    assert len(read(Csv(paths=[csv_file(tmp_path, GOOD)], drop={"label": "text"}, max_rows=2)).values) == 2


def test_chunks_together_are_the_whole(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    x = np.arange(23.0)
    path = csv_file(tmp_path, "a\n" + "\n".join(map(str, x)))
    monkeypatch.setattr(delimited, "CHUNK_ROWS", 5)
    np.testing.assert_array_equal(read(Csv(paths=[path])).values[:, 0], x)


@pytest.mark.parametrize(
    ("text", "source", "sentence"),
    [
        ("", {}, "is empty; delete it and fetch it again"),
        ("<!DOCTYPE html>\n<html>moved</html>", {}, "is a web page, not data"),
        ("  <html><body>login</body></html>", {}, "is a web page, not data"),
        ("a,b\n", {}, "has no rows after its first 1 line"),
        (GOOD, {"columns": ["a", "c"]}, r"column 'c' is missing; found are a, b, label"),
        (GOOD, {"drop": ["lable"]}, r"column 'lable' is missing; did you mean label\? found are a, b, label"),
        (GOOD, {"drop": {"quality": "label"}}, r"column 'quality' is missing; found are a, b, label"),
        (GOOD, {"columns": ["a", "b"]}, r"extra column 'label'; name it in dataset.source.columns or drop"),
        ("a,a\n1,2\n", {}, "the column name 'a' occurs twice"),
        (GOOD, {}, r"text 'x' in column 'label', data row 1, where a number is needed"),
        ("a,b\n1,2\n3,four\n", {}, r"text 'four' in column 'b', data row 2"),
        ("a,b\n1,2\n3,\n", {}, r"a missing value \(NaN\) in column 'b', data row 2"),
        ("a,b\n1,2\n3,NaN\n", {}, r"a missing value \(NaN\) in column 'b', data row 2"),
        ("a,b\n1,2\n3,N/A\n", {}, r"a missing value \(NaN\) in column 'b', data row 2"),
        ("a,b\n1,2\n-inf,3\n", {}, r"an infinite value in column 'a', data row 2"),
        ("a,b\n1,2\n3\n", {}, r"a missing value \(NaN\) in column 'b', data row 2"),
        ("a,b\n1,2\n3,4,5\n", {}, r"Expected 2 fields in line 3, saw 3; every row must have as many fields"),
        ("a,b\n1,2,3\n4,5,6\n", {}, r"data rows have 3 fields where the columns are 2"),
        ("a;b\n1;2\n", {}, r" has one column, 'a;b'; set dataset\.source\.separator to ';'"),
        ("a\tb\n1\t2\n", {}, r" has one column, 'a\\+tb'; set dataset\.source\.separator to '\\+t'"),
        ("1,2\n3,4\n", {}, "begins with numbers where column names are expected"),
        (GOOD, {"drop": {"a": "x", "b": "x", "label": "x"}}, "no column is left"),
    ],
)
def test_bad_text_is_one_sentence(tmp_path: Path, text: str, source: dict[str, object], sentence: str) -> None:
    path = csv_file(tmp_path, text)
    with pytest.raises(DkefError, match=sentence) as caught:
        read(Csv(paths=[path], **source))  # type: ignore[arg-type]
    assert str(caught.value).startswith(path)
    assert "\\n" not in str(caught.value)  # a line break shows as its escape


def test_all_problems_of_a_file_are_told_at_once(tmp_path: Path) -> None:
    path = csv_file(tmp_path, "a,b,c,d,e\n1,red,,5,-inf\n2,3,,5,1\n3,blue,7,5,2\n4,4,8,5,3\n")
    with pytest.raises(DkefError) as caught:
        read(Csv(paths=[path]))
    assert str(caught.value) == (
        f"{path}: text 'red' in column 'b', data row 1, where a number is needed; a missing value (NaN) in column 'c', "
        "data row 1 and 1 more; an infinite value in column 'e', data row 1; column 'd' is constant (5); drop the "
        "columns in dataset.source.drop or correct the file, or set drop_incomplete_rows: true"
    )
    with pytest.raises(DkefError, match=r"columns 'x', 'y' are missing; found are a, b, c, d, e"):
        read(Csv(paths=[path], columns=["a", "x"], drop=["y"]))


def test_incomplete_rows_are_dropped_where_it_is_asked_for(tmp_path: Path) -> None:
    path = csv_file(tmp_path, "a,b,c\n1,2,\n3,,4\n5,6,\n")
    table = read(Csv(paths=[path], drop=["c"], drop_incomplete_rows=True))
    np.testing.assert_array_equal(table.values, [[1, 2], [5, 6]])
    assert table.removed == (("column", "c", "dropped"), ("rows", "1", "a value is missing"))
    with pytest.raises(DkefError, match="no row with a value in every column"):
        read(Csv(paths=[path], drop_incomplete_rows=True))
    with pytest.raises(DkefError, match=r"text 'x' in column 'a', data row 2"):
        read(Csv(paths=[csv_file(tmp_path, "a,b\n1,\nx,2\n")], drop_incomplete_rows=True))


def test_ignore_others_leaves_unnamed_columns_out_and_says_so(tmp_path: Path) -> None:
    table = read(Csv(paths=[csv_file(tmp_path, GOOD)], columns=["a"], ignore_others=True))
    assert [entry.name for entry in table.removed] == ["b", "label"]


def test_a_missing_file_is_one_sentence(tmp_path: Path) -> None:
    with pytest.raises(DkefError, match=r"none\.csv does not exist; fetch it with `snakemake "):
        Csv(files=["none.csv"]).read(tmp_path, RNG)
    with pytest.raises(DkefError, match="is a folder; name a file"):
        read(Csv(paths=[str(tmp_path)]))


@pytest.mark.parametrize(
    ("damage", "sentence"),
    [
        (lambda data: data[:-200], "is cut off"),
        (lambda data: data[:40] + bytes(60) + data[100:], "is damaged"),
        (lambda data: data[:-8] + bytes(8), "is damaged"),
    ],
)
def test_damaged_gzip_is_one_sentence(tmp_path: Path, damage: Callable[[bytes], bytes], sentence: str) -> None:
    rows = "\n".join(f"{a!r},{b!r}" for a, b in RNG.standard_normal((2000, 2)))
    (tmp_path / "x.csv.gz").write_bytes(damage(gzip.compress(f"a,b\n{rows}\n".encode())))
    with pytest.raises(DkefError, match=f"x.csv.gz {sentence}.*delete it and fetch it again"):
        read(Csv(paths=[str(tmp_path / "x.csv.gz")]))


def test_binary_rubbish_is_one_sentence(tmp_path: Path) -> None:
    (tmp_path / "x.csv").write_bytes(bytes(range(128, 256)) * 10)
    with pytest.raises(DkefError, match=r"x\.csv is damaged"):
        read(Csv(paths=[str(tmp_path / "x.csv")]))


def test_files_with_other_columns_are_not_joined(tmp_path: Path) -> None:
    (tmp_path / "one.csv").write_text("a,b\n1,2\n")
    (tmp_path / "two.csv").write_text("a,c\n1,2\n")
    with pytest.raises(DkefError, match=r"two\.csv has other columns than"):
        Csv(files=["one.csv", "two.csv"]).read(tmp_path, RNG)


def test_a_table_beyond_the_memory_bound_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(delimited, "MAX_TABLE_BYTES", 100)
    path = csv_file(tmp_path, "a\n" + "\n".join(map(str, range(50))))
    with pytest.raises(DkefError, match="choose fewer rows or columns"):
        read(Csv(paths=[path]))
    np.save(tmp_path / "x.npy", np.zeros((20, 2)))
    with pytest.raises(DkefError, match="choose fewer rows or columns"):
        read(Npy(paths=[str(tmp_path / "x.npy")]))
    assert len(read(Npy(paths=[str(tmp_path / "x.npy")], max_rows=6)).values) == 6


def test_npy_gives_the_array_with_its_names(tmp_path: Path) -> None:
    x = RNG.standard_normal((20, 3)).astype(np.float32)
    np.save(tmp_path / "x.npy", x)
    table = read(Npy(paths=[str(tmp_path / "x.npy")], drop={"x2": "why not"}))
    np.testing.assert_array_equal(table.values, x[:, [0, 2]].astype(np.float64))
    assert table.columns == ("x1", "x3")
    assert table.values.dtype == np.float64
    named = Npy(paths=[str(tmp_path / "x.npy")], names=["u", "v", "w"], columns=["w"], ignore_others=True)
    np.testing.assert_array_equal(read(named).values, x[:, [2]])


@pytest.mark.parametrize(
    ("array", "sentence"),
    [
        (np.zeros(5), "1-dimensional of type float64; needed is a two-dimensional array"),
        (np.array([["a", "b"]]), "2-dimensional of type <U1; needed is"),
        (np.array([[None, 1]]), "is not a whole .npy file"),
    ],
)
def test_a_bad_array_is_one_sentence(tmp_path: Path, array: np.ndarray, sentence: str) -> None:
    np.save(tmp_path / "x.npy", array, allow_pickle=True)
    with pytest.raises(DkefError, match=sentence):
        read(Npy(paths=[str(tmp_path / "x.npy")]))


def test_a_truncated_array_is_one_sentence(tmp_path: Path) -> None:
    np.save(tmp_path / "x.npy", np.zeros((100, 5)))
    whole = (tmp_path / "x.npy").read_bytes()
    (tmp_path / "x.npy").write_bytes(whole[:-100])
    with pytest.raises(DkefError, match=r"is not a whole \.npy file"):
        read(Npy(paths=[str(tmp_path / "x.npy")]))


def test_wrong_number_of_names_is_one_sentence(tmp_path: Path) -> None:
    np.save(tmp_path / "x.npy", np.zeros((10, 2)))
    with pytest.raises(DkefError, match=r"has 2 columns and dataset\.source\.names has 1"):
        read(Npy(paths=[str(tmp_path / "x.npy")], names=["a"]))


@pytest.mark.parametrize(
    ("make", "sentence"),
    [
        (Csv, r"paths is \[\]; allowed is at least one file"),
        (lambda: Csv(paths=["x"], separator=",,"), "one character or 'whitespace'"),
        (lambda: Csv(paths=["x"], max_rows=0), "max_rows is 0"),
        (lambda: Csv(paths=["x"], skip_lines=-1), "skip_lines is -1"),
        (lambda: Npy(paths=["x", "y"]), "exactly one file"),
        (lambda: Bundled(table="iris"), "one of wine_recognition, breast_cancer"),
    ],
)
def test_bad_settings_are_one_sentence(make: Callable[[], object], sentence: str) -> None:
    with pytest.raises(ConfigError, match=sentence):
        make()


def test_every_word_that_pandas_takes_for_a_missing_value_is_told_as_one(tmp_path: Path) -> None:
    from pandas._libs.parsers import STR_NA_VALUES  # type: ignore[import-untyped]

    assert {""} | MISSING == set(STR_NA_VALUES)
