"""HDF5 files show when they are no longer what was written, and give nothing but arrays of their own."""

import subprocess
import sys
from pathlib import Path

import h5py
import numpy as np
import pytest

from dkef.core.errors import DkefError
from dkef.core.hdf5 import read_hdf5, reseal, write_hdf5

ARRAYS = {"x": np.arange(6.0).reshape(2, 3), "inner/n": np.array(4)}
RECORD = {"status": "ok", "best": 0.1}


@pytest.fixture
def path(tmp_path: Path) -> Path:
    write_hdf5(tmp_path / "file.h5", ARRAYS, RECORD)
    return tmp_path / "file.h5"


def read(path: Path) -> dict[str, np.ndarray]:
    return read_hdf5(path, "a test file", "delete it").arrays


def test_arrays_and_record_come_back(path: Path) -> None:
    contents = read_hdf5(path, "a test file", "delete it")
    assert contents.record == RECORD
    assert set(contents.arrays) == set(ARRAYS)
    for name, array in ARRAYS.items():
        np.testing.assert_array_equal(contents.arrays[name], array)
    assert contents.below("inner") == {"n": 4}


def test_any_other_program_reads_the_file_too(path: Path) -> None:
    with h5py.File(path) as file:
        np.testing.assert_array_equal(file["x"][()], ARRAYS["x"])


def test_a_flipped_bit_anywhere_is_noticed(path: Path) -> None:
    whole = path.read_bytes()
    for place in range(0, len(whole), 37):
        path.write_bytes(whole[:place] + bytes([whole[place] ^ 4]) + whole[place + 1 :])
        with pytest.raises(DkefError, match=r"file\.h5 is not a test file \(its digest does not fit"):
            read(path)


@pytest.mark.parametrize("length", [0, 8, 100, 512, 600, -1])
def test_a_file_cut_off_anywhere_is_noticed(path: Path, length: int) -> None:
    path.write_bytes(path.read_bytes()[:length])
    with pytest.raises(DkefError, match=r"file\.h5 is not a test file"):
        read(path)


def test_a_file_made_by_hand_needs_no_digest(tmp_path: Path) -> None:
    with h5py.File(tmp_path / "mine.h5", "w") as file:
        file["x"] = [1.0, 2.0]
    assert read(tmp_path / "mine.h5")["x"].tolist() == [1.0, 2.0]


def strange(file: h5py.File, what: str, other: Path) -> None:
    """Put something into a file that does not belong there; `other` is a good file of the same kind."""
    if what == "external link":
        file["odd"] = h5py.ExternalLink(other.name, "/x")
    elif what == "soft link":
        file["odd"] = h5py.SoftLink("/x")
    elif what == "circle":
        file["inner/odd"] = file["inner"]
    elif what == "huge":
        file.create_dataset("odd", shape=(1 << 34,), dtype="f8", chunks=(1 << 10,))
    elif what == "text":
        file.create_dataset("odd", data=["a", "b"])
    elif what == "outside":
        file.create_dataset("odd", shape=(4,), dtype="u1", external=[(str(other), 0, 4)])
    else:
        del file["record"]
        file["record"] = {
            "record of numbers": np.arange(3),
            "record that is a list": np.bytes_("[1, 2]"),
            "record that is a link": h5py.ExternalLink(other.name, "/record"),
            "record in a heap": "{}",  # text of variable length: where a few of its bytes are wrong, HDF5 hangs
        }[what]


@pytest.mark.parametrize(
    ("what", "reason"),
    [
        ("external link", "odd is a link"),
        ("soft link", "odd is a link"),
        ("circle", "items or 3 levels"),
        ("huge", "far more memory"),
        ("text", "odd is not an array of numbers"),
        ("outside", "odd .* another file"),
        ("record of numbers", "its record is no text"),
        ("record that is a list", "its record is no mapping"),
        ("record that is a link", "record is a link"),
        ("record in a heap", "its record is no text"),
    ],
)
def test_anything_but_plain_arrays_and_a_record_is_refused(path: Path, what: str, reason: str) -> None:
    other = path.with_name("other.h5")
    write_hdf5(other, ARRAYS, RECORD)
    with h5py.File(path, "r+") as file:
        strange(file, what, other)
    reseal(path)
    with pytest.raises(DkefError, match=rf"file\.h5 is not a test file \(.*{reason}.*\); delete it") as caught:
        read(path)
    assert "\\n" not in str(caught.value)  # a line break shows as its escape


# In a process of its own, which an alarm ends: where HDF5 loops, no exception can stop it.
EVERY_BYTE = """
import signal, sys
from pathlib import Path
from dkef.core.errors import DkefError
from dkef.core.hdf5 import USER_BLOCK, read_hdf5, reseal
signal.alarm(60)
path, refused = Path(sys.argv[1]), 0
whole = path.read_bytes()
for place in (place for place in range(USER_BLOCK, len(whole)) if whole[place]):
    path.write_bytes(whole[:place] + bytes(1) + whole[place + 1 :])
    reseal(path)
    try:
        read_hdf5(path, "a test file", "delete it")
    except DkefError:
        refused += 1
print(refused)
"""


def test_damage_that_the_digest_does_not_show_ends_too(path: Path) -> None:
    """Found by fuzzing: with the record in a heap, some bytes of it sent HDF5 into a loop without end."""
    done = subprocess.run([sys.executable, "-c", EVERY_BYTE, str(path)], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr or "a damaged file was not read to its end within a minute"
    assert int(done.stdout) > 50  # most of the damage lies in what describes the arrays
