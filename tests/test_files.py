"""Files are whole or absent, and show when they are no longer what was written."""

import json
import os
import resource
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from dkef.core.errors import DkefError
from dkef.core.files import (
    ABANDONED_SECONDS,
    note_of,
    pid_space,
    read_json,
    remove_abandoned,
    require_noted,
    whole_file,
    write_json,
    write_noted,
    write_text,
)


def test_a_failed_write_leaves_the_old_file_and_no_scratch_file(tmp_path):
    target = tmp_path / "result.txt"
    target.write_text("old")

    def write_half():
        with whole_file(target) as scratch:
            scratch.write_text("ne")
            raise RuntimeError("half way")

    with pytest.raises(RuntimeError, match="half way"):
        write_half()
    assert target.read_text() == "old"
    assert list(tmp_path.iterdir()) == [target]


@contextmanager
def writing_process(target: Path) -> Iterator[subprocess.Popen[str]]:
    """A process that has written half of a file and waits."""
    program = (
        "import sys, time; from pathlib import Path; from dkef.core.files import whole_file\n"
        "with whole_file(Path(sys.argv[1])) as scratch:\n"
        "    scratch.write_text('ne'); print('half way', flush=True); time.sleep(600)"
    )
    command = [sys.executable, "-c", program, str(target)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            assert process.stdout.readline() == "half way\n"
            yield process
        finally:
            process.kill()


def test_what_a_killed_process_left_of_a_file_goes_with_the_next_write(tmp_path):
    target = tmp_path / "result[1].txt"  # brackets, which a pattern would read as something else
    with writing_process(target) as process:
        process.send_signal(signal.SIGKILL)
        process.wait()
    assert [path.read_text() for path in tmp_path.iterdir()] == ["ne"]
    write_text(target, "new")
    assert list(tmp_path.iterdir()) == [target]


def test_the_scratch_file_of_a_living_process_is_left_alone_however_old(tmp_path):
    target = tmp_path / "result.txt"
    with writing_process(target):
        (scratch,) = tmp_path.iterdir()
        os.utime(scratch, (0, 0))
        write_text(target, "new")
        assert sorted(tmp_path.iterdir()) == sorted([scratch, target])


def test_scratch_files_of_other_machines_and_containers_get_a_day(tmp_path):
    dead = 2**22 + 1  # above any process number of Linux
    for age, left in ((ABANDONED_SECONDS / 2, 1), (ABANDONED_SECONDS * 2, 0)):
        foreign = tmp_path / f".result.txt.{dead}@elsewhere.{pid_space()}.partial"
        foreign.write_text("ne")
        moment = foreign.stat().st_mtime - age
        os.utime(foreign, (moment, moment))
        remove_abandoned(tmp_path, "result.txt")
        assert len(list(tmp_path.iterdir())) == left


def test_an_archive_beside_the_scratch_file_of_a_killed_process_is_removed_with_it(tmp_path):
    (tmp_path / f".table.csv.{2**22 + 1}@{pid_space()}.partial.archive").write_text("half")
    (tmp_path / ".table.csv.note").write_text("not a scratch file")
    remove_abandoned(tmp_path, "table.csv")
    assert [path.name for path in tmp_path.iterdir()] == [".table.csv.note"]


def test_json_survives_a_round_trip_and_equal_records_are_equal_bytes(tmp_path):
    write_json(tmp_path / "a.json", {"b": 0.1, "a": [1, None]})
    write_json(tmp_path / "b.json", {"a": [1, None], "b": 0.1})
    assert read_json(tmp_path / "a.json") == {"a": [1, None], "b": 0.1}
    assert (tmp_path / "a.json").read_bytes() == (tmp_path / "b.json").read_bytes()


@pytest.mark.parametrize("content", [b"", b"{", b"\xff\xfe"])
def test_a_broken_json_file_is_named_in_one_sentence(tmp_path, content):
    broken = tmp_path / "log_z.json"
    broken.write_bytes(content)
    with pytest.raises(DkefError, match=r"log_z\.json is not JSON .* delete it"):
        read_json(broken)


@pytest.mark.parametrize("content", [b"[1]", b"3", b'"text"', b"null", b"[" * 100_000])
def test_json_that_is_no_record_is_named_in_one_sentence(tmp_path, content):
    (tmp_path / "log_z.json").write_bytes(content)
    with pytest.raises(DkefError, match=r"log_z\.json (holds no record|is not JSON)"):
        read_json(tmp_path / "log_z.json")


def test_every_flipped_bit_of_a_record_is_noticed(tmp_path):
    path = tmp_path / "chunk.json"
    record = {"log_mean": -1.25, "count": 1000}
    write_json(path, record)
    whole = path.read_bytes()
    for place in range(len(whole) - 1):  # the last byte ends the line
        for bit in range(8):
            path.write_bytes(whole[:place] + bytes([whole[place] ^ (1 << bit)]) + whole[place + 1 :])
            with pytest.raises(DkefError, match=r"chunk\.json"):
                read_json(path)


def test_a_record_written_by_hand_is_read_as_it_is(tmp_path):
    (tmp_path / "log_z.json").write_text(json.dumps({"log_z": 1.5, "config_digest": "0123456789abcdef"}))
    assert read_json(tmp_path / "log_z.json")["log_z"] == 1.5


def test_a_table_that_no_longer_fits_its_note_is_refused(tmp_path):
    path = tmp_path / "metrics.csv"
    write_noted(path, "a,b\n1,2\n")
    require_noted(path)
    path.write_text("a,b\n1,3\n")
    with pytest.raises(DkefError, match=r"metrics\.csv is not what was written: its sha256 differs"):
        require_noted(path)
    note_of(path).write_bytes(b"")
    with pytest.raises(DkefError, match="is not what was written"):
        require_noted(path)
    note_of(path).unlink()
    require_noted(path)


def test_a_full_disk_is_one_sentence_and_leaves_nothing_behind(tmp_path):
    path = tmp_path / "model.h5"
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (1000, before[1]))  # a file of more bytes is an error, as on a full disk
    try:
        with pytest.raises(DkefError, match=r"model\.h5 cannot be written \(.*\); make room and run again"):
            write_text(path, "x" * 2000)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
    assert not list(tmp_path.iterdir())
