"""Where compiled code is kept."""

import sys
import tempfile
from pathlib import Path

import pytest

from dkef.core.compiled import PACKAGE, _cache_folder, compiled_sources


@pytest.fixture(autouse=True)
def outside_an_environment(monkeypatch):
    monkeypatch.setattr(sys, "prefix", sys.base_prefix)


def test_an_environment_keeps_compiled_code_where_make_clean_removes_it(tmp_path, monkeypatch):
    monkeypatch.setattr(sys, "prefix", str(tmp_path / ".venv"))
    folder = _cache_folder()
    assert folder.is_dir()
    assert folder.parent == tmp_path / ".venv" / "cache" / "dkef"
    recipe = (PACKAGE.parents[1] / "Makefile").read_text().partition("\nclean:")[2]
    assert "$(VENV)/cache" in recipe.splitlines()[1]


def test_an_environment_that_cannot_be_written_leaves_the_users_cache(tmp_path, monkeypatch):
    (tmp_path / ".venv").touch()
    monkeypatch.setattr(sys, "prefix", str(tmp_path / ".venv"))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert _cache_folder().parent == tmp_path / "dkef"


def test_compiled_code_is_kept_in_the_users_cache(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    folder = _cache_folder()
    assert folder.is_dir()
    assert folder.parent == tmp_path / "dkef"
    assert _cache_folder() == folder


def test_a_home_that_cannot_be_written_is_no_obstacle(tmp_path, monkeypatch):
    (tmp_path / "file").touch()
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "file"))
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "temporary"))
    assert (tmp_path / "temporary") in _cache_folder().parents


def test_the_folder_belongs_to_the_very_source(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    before = _cache_folder()
    read = Path.read_bytes
    monkeypatch.setattr(Path, "read_bytes", lambda path: read(path) + b"# edited")
    assert _cache_folder() != before


def test_the_source_of_the_folder_is_every_module_that_compiles_something():
    found = set(compiled_sources())
    users = {path for path in PACKAGE.rglob("*.py") if "import njit" in path.read_text()}
    assert users
    assert users <= found
