"""Where compiled code is kept."""

import fcntl
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import pytest

from dkef.core.compiled import PACKAGE, OneAtATime, _cache_folder, compiled_sources

# Starts when both processes are there, and takes a second to compile.
ADDS_ONE = """
import sys, time
from pathlib import Path
import numba.core.event
from dkef.core.compiled import njit

class Slow(numba.core.event.Listener):
    def on_start(self, event): time.sleep(1)
    def on_end(self, event): pass

numba.core.event.register("numba:compile", Slow())

@njit
def add_one(x):
    return x + 1

here = Path(sys.argv[1])
(here / sys.argv[2]).touch()
while not {"a", "b"} <= {path.name for path in here.iterdir()}:
    time.sleep(0.01)
print(add_one(1.0), sum(add_one.stats.cache_misses.values()))
"""


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


def test_of_processes_that_start_together_one_compiles(tmp_path):
    script = tmp_path / "adds_one.py"
    script.write_text(ADDS_ONE)
    environment = os.environ | {"NUMBA_CACHE_DIR": str(tmp_path / "cache")}
    both = [
        subprocess.Popen([sys.executable, script, tmp_path, name], env=environment, stdout=subprocess.PIPE, text=True)
        for name in "ab"
    ]
    told = [process.communicate(timeout=120)[0].split() for process in both]
    assert sorted(told) == [["2.0", "0"], ["2.0", "1"]]


def is_free(file):
    with file.open("w") as other:
        try:
            fcntl.flock(other, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
        return True


def test_the_lock_is_given_back_at_the_end_of_the_outermost_function(tmp_path):
    one = OneAtATime(tmp_path)
    for _ in range(2):  # it can be taken again
        one.on_start(None)
        one.on_start(None)
        one.on_end(None)
        assert not is_free(tmp_path / "lock")
        one.on_end(None)
        assert is_free(tmp_path / "lock")


def test_a_process_that_hangs_holds_no_one_up_for_long(tmp_path):
    hanging, other = OneAtATime(tmp_path), OneAtATime(tmp_path, patience=0.2)
    hanging.on_start(None)
    began = time.monotonic()
    other.on_start(None)
    other.on_end(None)
    assert 0.2 <= time.monotonic() - began < 30
    assert not is_free(tmp_path / "lock")


def test_a_folder_that_cannot_be_written_is_no_obstacle_to_compiling(tmp_path):
    (tmp_path / "file").touch()
    one = OneAtATime(tmp_path / "file")
    one.on_start(None)
    one.on_end(None)
