"""Where compiled code is kept."""

import tempfile
from pathlib import Path

from dkef.core.compiled import PACKAGE, _cache_folder, compiled_sources


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
