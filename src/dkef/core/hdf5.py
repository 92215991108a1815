"""HDF5 files of arrays and one JSON record, which show when they are no longer what was written.

HDF5 leaves the first bytes of a file to the application; there stands the sha256 of all the others. Files without it,
made by hand, are read as they are. Only plain arrays are taken from a file: nothing that leads to other files or takes
far more memory than the file has bytes. The record is text of fixed length for the same reason: text of variable length
lies in a heap, on which the library loops for ever or asks for gigabytes where a few bytes are wrong.
"""

import hashlib
import io
import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import h5py
import numpy as np

from dkef.core.arrays import Array
from dkef.core.errors import DkefError, one_line
from dkef.core.files import whole_file

USER_BLOCK = 512  # bytes, the least that HDF5 allows
MARK = b"dkef sha256 "
RECORD = "record"
SIGNATURE = b"\x89HDF\r\n\x1a\n"
# Bytes of arrays that a file may hold: a little, or in proportion to its own size.
SMALL, RATIO = 64_000_000, 100
MOST_ITEMS, DEEPEST = 10_000, 3  # ours have two levels; a folder may contain itself
BROKEN = (OSError, KeyError, ValueError, TypeError, RuntimeError, AttributeError, UnicodeError, RecursionError)


@dataclass(frozen=True)
class Contents:
    """What a file holds: arrays by their paths in it, and the record."""

    record: dict[str, Any]
    arrays: dict[str, Array]

    def below(self, folder: str) -> dict[str, Array]:
        """The arrays of one folder, by their names in it."""
        return {name.removeprefix(f"{folder}/"): a for name, a in self.arrays.items() if name.startswith(f"{folder}/")}


def write_hdf5(path: Path, arrays: Mapping[str, Array], record: Mapping[str, Any], **options: Any) -> None:
    """Write arrays and a record, whole or not at all; `options` are h5py's for each array of at least one number."""
    buffer = io.BytesIO()  # so that a full disk is an error of our own write, not of the library's clean-up
    with h5py.File(buffer, "w", userblock_size=USER_BLOCK) as file:
        for name, array in arrays.items():
            file.create_dataset(name, data=array, track_times=False, **(options if np.size(array) > 1 else {}))
        file.create_dataset(RECORD, data=np.bytes_(json.dumps(record, sort_keys=True)), track_times=False)
    with whole_file(path) as scratch, open(scratch, "wb") as target, buffer.getbuffer() as body:
        target.write(_user_block(hashlib.sha256(body[USER_BLOCK:]).hexdigest()))
        target.write(body[USER_BLOCK:])


def read_hdf5(path: Path, what: str, remedy: str, arrays: bool = True) -> Contents:
    """Everything in a file that should be `what`, or one sentence that ends in the remedy."""
    try:
        if damaged(path):
            raise ValueError("its digest does not fit: it was cut off or changed")
        with h5py.File(path, "r") as file:
            budget = SMALL + RATIO * path.stat().st_size
            record = _record(file, budget)
            found = dict(_arrays(file, budget)) if arrays else {}
    except FileNotFoundError:
        raise DkefError(f"{path} does not exist; `snakemake {path}` makes it") from None
    except BROKEN as error:
        raise DkefError(f"{path} is not {what} ({one_line(error)}); {remedy}") from None
    if not isinstance(record, dict):
        raise DkefError(f"{path} is not {what} (its record is no mapping); {remedy}")
    return Contents(record, found)


def damaged(path: Path) -> bool:
    """Whether the digest in a file does not fit it; False for files that never had one."""
    with open(path, "rb") as file:
        start = file.read(USER_BLOCK)
        # No accident turns our mark into HDF5's signature.
        return not start.startswith(SIGNATURE) and start != _user_block(_digest_of_rest(file))


def reseal(path: Path) -> None:
    """Renew the digest of a file that was edited on purpose."""
    with open(path, "r+b") as file:
        file.seek(USER_BLOCK)
        block = _user_block(_digest_of_rest(file))
        file.seek(0)
        file.write(block)


def _digest_of_rest(file: Any) -> str:
    sha = hashlib.sha256()
    while block := file.read(1 << 20):
        sha.update(block)
    return sha.hexdigest()


def _user_block(digest: str) -> bytes:
    return (MARK + digest.encode() + b"\n").ljust(USER_BLOCK, b"\0")


def _record(file: h5py.File, budget: int) -> Any:
    """The record of a file; {} for one that has none."""
    if file.get(RECORD, getlink=True) is None:
        return {}
    item = _own(file, RECORD, RECORD)
    if not isinstance(item, h5py.Dataset) or item.shape != () or item.dtype.kind != "S" or item.nbytes > budget:
        raise ValueError("its record is no text of fixed length")
    _require_inside(item, RECORD)
    return json.loads(item[()])


def _arrays(file: h5py.File, budget: int) -> Iterator[tuple[str, Array]]:
    """All arrays of a file, by their paths."""
    waiting = [("", file)]
    items = 0
    while waiting:
        prefix, group = waiting.pop()
        for name in group:
            items += 1
            if items > MOST_ITEMS or prefix.count("/") >= DEEPEST:
                raise ValueError(f"more than {MOST_ITEMS} items or {DEEPEST} levels")
            if f"{prefix}{name}" == RECORD:
                continue
            item = _own(group, name, f"{prefix}{name}")
            if isinstance(item, h5py.Group):
                waiting.append((f"{prefix}{name}/", item))
                continue
            budget -= _size(item, f"{prefix}{name}")
            if budget < 0:
                raise ValueError("it would take far more memory than it has bytes")
            yield f"{prefix}{name}", np.asarray(item[()])


def _own(group: Any, name: str, path: str) -> Any:
    """An item of a group, unless it lies elsewhere."""
    if not isinstance(group.get(name, getlink=True), h5py.HardLink):
        raise ValueError(f"{path} is a link")
    return group[name]


def _size(item: Any, name: str) -> int:
    """Bytes of an array in memory, unless it is something else than plain numbers of this file."""
    if not isinstance(item, h5py.Dataset) or item.shape is None or item.dtype.kind not in "biuf":
        raise ValueError(f"{name} is not an array of numbers")
    _require_inside(item, name)
    return int(item.nbytes)


def _require_inside(item: h5py.Dataset, name: str) -> None:
    if item.external or item.is_virtual:
        raise ValueError(f"{name} lies in another file")
