"""What Hydra composes is kept between processes, and never taken for anything else."""

from pathlib import Path
from typing import Any

import pytest

from dkef.config import kept_cells
from dkef.config.kept_cells import KeptCells

CELL = {"chosen": {"model": "b"}, "values": {"z": [1, 2.0, None], "a": {"d": True}}}


@pytest.fixture
def model(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A YAML file outside the repository, with a cache of its own."""
    path = tmp_path / "config" / "model" / "b.yaml"
    path.parent.mkdir(parents=True)
    path.write_text("width: 3\n")
    monkeypatch.setenv("DKEF_CONFIG_PATH", str(tmp_path / "config"))
    monkeypatch.setattr(kept_cells, "cache_places", lambda: [tmp_path / "cache"])
    return path


def composed_again(cell: Any = CELL, overrides: tuple[str, ...] = ("model=b",)) -> bool:
    """Whether a second process composes what a first one has kept; it gets the same, in the same order."""
    asked = []
    for _ in range(2):
        kept = KeptCells("tiny")
        asked.append(False)

        def compose(_overrides: tuple[str, ...]) -> Any:
            asked[-1] = True
            return cell

        assert repr(kept.cell(overrides, compose)) == repr(cell)
        kept.write()
    return asked[1]


def test_a_cell_is_composed_once(model: Path) -> None:
    assert not composed_again()


def test_an_edit_a_new_file_and_other_overrides_are_composed(model: Path) -> None:
    composed_again()
    kept = KeptCells("tiny")
    other = {"chosen": {}, "values": {}}
    assert kept.cell(("model=b", "model.width=4"), lambda _: other) == other
    model.write_text("width: 4\n")
    assert KeptCells("tiny").cell(("model=b",), lambda _: other) == other
    model.write_text("width: 3\n")
    assert KeptCells("tiny").cell(("model=b",), lambda _: other) == CELL
    model.with_name("c.yaml").write_text("width: 3\n")
    assert KeptCells("tiny").cell(("model=b",), lambda _: other) == other


@pytest.mark.parametrize("text", ["width: ${oc.env:WIDTH}", "hydra: {searchpath: [elsewhere]}"])
def test_nothing_is_kept_of_files_that_ask_for_more(model: Path, text: str) -> None:
    model.write_text(text)
    assert composed_again()


def test_nothing_is_kept_of_an_override_that_asks_for_more(model: Path) -> None:
    assert composed_again(overrides=("model.width=${oc.env:WIDTH}",))


@pytest.mark.parametrize("value", [float("inf"), float("nan"), {1: 2}, (1, 2), b"x"])
def test_nothing_is_kept_that_json_would_change(model: Path, value: object) -> None:
    assert composed_again({"chosen": {}, "values": {"a": value}})


def test_a_damaged_file_is_composed_again(model: Path) -> None:
    composed_again()
    KeptCells("tiny").place.write_text("{")
    assert not composed_again()
    KeptCells("tiny").place.write_text("{}")
    assert not composed_again()


def test_where_nothing_can_be_written_nothing_is_kept(model: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kept_cells, "cache_places", lambda: [model / "no folder"])
    assert composed_again()
