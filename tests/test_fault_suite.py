"""The fault suite's own checks can fail: a suite that sees nothing would praise everything."""

import base64
import json
import os
from pathlib import Path

import numpy as np
import pytest

from dkef.core.hdf5 import write_hdf5
from tests.faults.playground import FIGURES, TARGETS, Playground
from tests.workflow.outcome import equal

MODEL = "results/faults/ring_tiny/made/seed0/model.h5"


@pytest.fixture
def ground(tmp_path: Path) -> Playground:
    """A folder with one file that Snakemake says is finished."""
    for folder in (".snakemake/metadata", ".snakemake/incomplete", str(Path(MODEL).parent)):
        (tmp_path / folder).mkdir(parents=True)
    (tmp_path / MODEL).write_text("finished")
    (tmp_path / ".snakemake/metadata" / key(MODEL)).write_text(json.dumps({"incomplete": False}))
    return Playground(tmp_path)


def key(name: str) -> str:
    """The name of Snakemake's note about a file."""
    return base64.b64encode(name.encode()).decode()


def test_a_finished_file_that_stays_is_not_lost(ground):
    before = ground.finished()
    assert list(before) == [MODEL]
    assert ground.lost(before) == []


def test_a_finished_file_that_another_one_replaced_is_lost(ground):
    before, path = ground.finished(), ground.folder / MODEL
    status = path.stat()
    (path.parent / "new").write_text("finished")
    os.utime(path.parent / "new", ns=(status.st_atime_ns, status.st_mtime_ns))
    os.replace(path.parent / "new", path)
    assert ground.lost(before) == [f"lost: {MODEL}"]


def test_a_finished_file_made_again_with_the_old_inode_is_lost(ground):
    before, path = ground.finished(), ground.folder / MODEL
    os.utime(path, ns=(0, path.stat().st_mtime_ns + 1))
    assert ground.lost(before) == [f"lost: {MODEL}"]


def test_a_finished_file_that_is_gone_is_lost_unless_it_had_to_go(ground):
    before = ground.finished()
    (ground.folder / MODEL).unlink()
    assert ground.lost(before) == [f"lost: {MODEL}"]
    assert ground.lost(before, ("results/faults/ring_tiny/made/",)) == []


def test_a_file_of_a_job_under_way_does_not_count_as_finished(ground):
    (ground.folder / ".snakemake/incomplete" / key(MODEL)).touch()
    assert ground.finished() == {}


@pytest.mark.parametrize("name", [".model.h5.12@host-1.partial", ".t.csv.12@host-1.partial.archive", "checkpoint-1.h5"])
def test_what_a_killed_job_left_is_a_stray(ground, name):
    (ground.folder / MODEL).with_name(name).touch()
    assert [Path(stray).name for stray in ground.strays()] == [name]


def test_every_job_of_the_undisturbed_run_can_be_planned(tmp_path: Path):
    """The suite itself takes half an hour and is seldom run; what it begins with must not rot meanwhile."""
    run = Playground.make(tmp_path / "ground").start("-n", *TARGETS, *FIGURES)
    assert run.wait() == 0, run.output()


def test_the_sentence_of_a_failed_job_is_found_on_the_screen(tmp_path: Path):
    ground = Playground.make(tmp_path / "ground")
    (ground.folder / "data/mirror/faults/table.csv").write_text("damaged")
    run = ground.start("data/raw/faults/table.csv")
    assert run.wait() == 1
    assert any("faults/table.csv" in sentence for sentence in run.sentences()), run.output()


def test_two_runs_agree_whatever_time_they_took_and_not_where_anything_else_differs(tmp_path: Path):
    notes = {"iterations": 20, "total_seconds": 1.5, "cpu_seconds_per_step": 0.1}
    slower = notes | {"total_seconds": 2.5, "cpu_seconds_per_step": 0.2}
    files = {}
    for name, alpha, record in (
        ("one", 1.0, notes), ("slower", 1.0, slower), ("longer", 1.0, notes | {"iterations": 21}), ("off", 1.1, notes),
    ):  # fmt: skip
        files[name] = tmp_path / f"{name}.h5"
        write_hdf5(files[name], {"alpha": np.array([alpha])}, {"notes": record})
    assert equal(files["one"], files["slower"])
    assert not equal(files["one"], files["longer"])
    assert not equal(files["one"], files["off"])
