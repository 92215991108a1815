"""Tables in documents come from published files."""

import subprocess
from pathlib import Path

import pytest

from dkef.core.errors import DkefError
from dkef.report.documents import fill

ROOT = Path(__file__).parents[2]
CSV = """model,seed,metric,value,stderr
a,0,loss,1.2345,0.1
a,1,loss,2,0.2
b,0,loss,3,0.3
b,1,loss,4,0.4
b,1,other,9,9
"""


def document(what: str) -> str:
    return f"before\n\n<!-- table\n{what}-->\nold\n<!-- end -->\n\nafter\n"


@pytest.fixture
def root(tmp_path):
    (tmp_path / "t.csv").write_text(CSV)
    return tmp_path


def test_a_pivot_has_one_row_for_each_key_and_the_error_in_brackets(root):
    what = "file: t.csv\nwhere: {metric: [loss]}\nrows: model\ncolumns: seed\nerror: stderr\nlabels: {a: A}\n"
    table = "| model | 0 | 1 |\n|---|---|---|\n| A | 1.23 (0.10) | 2.00 (0.20) |\n| b | 3.00 (0.30) | 4.00 (0.40) |\n"
    filled = fill(document(what), root, "page")
    assert filled == document(what).replace("old\n", table)
    assert fill(filled, root, "page") == filled


def test_a_statistic_closes_what_rows_and_columns_leave_open(root):
    what = "file: t.csv\nwhere: {metric: [loss]}\nrows: model\ncolumns: metric\nstatistic: median\n"
    assert "| a | 1.62 |\n| b | 3.50 |\n" in fill(document(what), root, "page")


def test_rows_stand_in_the_order_of_where(root):
    what = "file: t.csv\nwhere: {metric: [loss], model: [b, a]}\nrows: model\ncolumns: seed\n"
    assert "| b | 3.00 | 4.00 |\n| a | 1.23 | 2.00 |\n" in fill(document(what), root, "page")


def test_a_listing_shows_columns_in_the_order_of_where(root):
    what = "file: t.csv\nwhere: {metric: [other, loss], model: [b]}\nshow: {seed: run, value: loss}\n"
    assert "| run | loss |\n|---|---|\n| 1 | 9.00 |\n| 0 | 3.00 |\n| 1 | 4.00 |\n" in fill(document(what), root, "page")


@pytest.mark.parametrize(
    ("what", "sentence"),
    [
        ("file: none.csv\nrows: model\ncolumns: seed\n", "page: none.csv does not exist"),
        ("file: t.csv\nwhere: {model: [c]}\nrows: model\ncolumns: seed\n", "no row of t.csv fits"),
        ("file: t.csv\nrows: model\ncolumns: seed\n", "several values for one cell"),
        ("file: t.csv\nrow: model\n", "did you mean rows"),
    ],
)
def test_a_table_that_cannot_be_made_is_one_sentence(root, what, sentence):
    with pytest.raises(DkefError, match=sentence):
        fill(document(what), root, "page")


def documents() -> list[str]:
    found = subprocess.run(["git", "ls-files", "*.md"], cwd=ROOT, capture_output=True, text=True, check=False).stdout
    return [name for name in found.split() if "<!-- table" in (ROOT / name).read_text()]


def test_there_are_tables_in_documents():
    assert "results/README.md" in documents()


@pytest.mark.parametrize("name", documents())
def test_every_table_is_in_step_with_its_file(name):
    text = (ROOT / name).read_text(encoding="utf-8")
    assert fill(text, ROOT, name) == text, "run `make tables`"
