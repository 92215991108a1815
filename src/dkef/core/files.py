"""Files that are whole or absent, and that show when they are no longer what was written.

A record (JSON) carries the digest of itself, a table (CSV, whose columns others rely on) has it in a note beside it,
in the form that `sha256sum -c` reads. Files without a digest, made by hand, are read as they are.
"""

import errno
import glob
import hashlib
import json
import os
import re
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from dkef.core.errors import DkefError, one_line

FULL = {errno.ENOSPC, errno.EDQUOT, errno.EFBIG}
DIGEST = "sha256"  # the key of a record under which its digest stands
AGAIN = "delete it and run its stage again"
ABANDONED_SECONDS = 86_400.0  # after which a scratch file of another machine is taken for one of a killed process


@contextmanager
def whole_file(path: Path) -> Iterator[Path]:
    """Give a scratch path that becomes `path` only if the block succeeds.

    The reader never meets half a file, and a process that outlives its parent cannot spoil the next run.
    """
    remove_abandoned(path.parent, glob.escape(path.name))
    scratch = path.with_name(f".{path.name}.{os.getpid()}@{pid_space()}.partial")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        yield scratch
        with open(scratch, "rb") as written:
            os.fsync(written.fileno())
        os.replace(scratch, path)
    except OSError as error:
        if error.errno not in FULL:
            raise
        raise DkefError(f"{path} cannot be written ({error.strerror}); make room and run again") from None
    finally:
        scratch.unlink(missing_ok=True)


def remove_abandoned(folder: Path, targets: str) -> None:
    """Remove what killed processes left of files in `folder` whose names fit the pattern `targets`.

    A file of a living process is never touched. Whether one lives elsewhere cannot be seen, so its files get a day.
    """
    for scratch in folder.glob(f".{targets}.*.partial*"):
        writer = re.search(r"\.(\d+)@(.+)\.partial", scratch.name)
        with suppress(OSError):  # finished meanwhile, or not ours to remove
            if writer and writer[2] == pid_space():
                abandoned = not _lives(int(writer[1]))
            else:
                abandoned = time.time() - scratch.stat().st_mtime > ABANDONED_SECONDS
            if abandoned:
                scratch.unlink()


def pid_space() -> str:
    """Where process numbers mean the same as here: the host, and the container where it counts its own processes."""
    try:
        inside = os.stat("/proc/self/ns/pid").st_ino
    except OSError:  # a system without containers
        inside = 0
    return f"{os.uname().nodename}-{inside}"


def _lives(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:  # somebody else's
        return True
    return True


def write_text(path: Path, text: str) -> None:
    with whole_file(path) as scratch:
        scratch.write_text(text, encoding="utf-8")


def write_json(path: Path, record: Mapping[str, Any]) -> None:
    """Write a record and its digest with sorted keys, so that equal records are equal bytes."""
    sealed = dict(record) | {DIGEST: record_digest(record)}
    write_text(path, json.dumps(sealed, sort_keys=True, indent=2, allow_nan=False) + "\n")


def read_json(path: Path) -> dict[str, Any]:
    """A record, without its digest, which must be right where there is one."""
    try:
        text = path.read_text(encoding="utf-8")
        record = json.loads(text)
    except FileNotFoundError:
        raise DkefError(f"{path} does not exist; run the stage that writes it") from None
    except (ValueError, RecursionError) as error:  # not text, not JSON, or a number of thousands of digits
        raise DkefError(f"{path} is not JSON ({one_line(error)}); {AGAIN}") from None
    if not isinstance(record, dict):
        raise DkefError(f"{path} holds no record but {str(record)[:40]!r}; {AGAIN}")
    digest = record.pop(DIGEST, None)
    # A damaged name of the key must not make the file look like one made by hand.
    sealed = digest is not None or re.search("[0-9a-f]{60}", text)
    if sealed and digest != record_digest(record):
        raise DkefError(f"{path} is not what was written: its digest does not fit; {AGAIN}")
    return record


def record_digest(record: Mapping[str, Any]) -> str:
    text = json.dumps(record, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()


def write_noted(path: Path, text: str) -> None:
    """Write a text with a note of its digest beside it. The note comes first: a text without one is not checked."""
    digest = hashlib.sha256(text.encode()).hexdigest()
    write_text(note_of(path), f"{digest}  {path.name}\n")
    write_text(path, text)


def note_of(path: Path) -> Path:
    """Where the digest of a file stands that has no place for it inside."""
    return path.with_name(f"{path.name}.sha256")


def require_noted(path: Path, remedy: str = AGAIN) -> None:
    """Stop unless a file is the one that its note describes; a file without a note may be anything."""
    expected = noted_digest(path)
    if expected is not None and path.is_file() and file_digest(path) != expected:
        raise DkefError(f"{path} is not what was written: its sha256 differs from {note_of(path).name}; {remedy}")


def noted_digest(path: Path) -> str | None:
    """The digest in the note of a file; None without a note."""
    note = note_of(path)
    if not note.is_file():
        return None
    words = note.read_bytes().split()
    return words[0].decode("utf-8", "replace") if words else ""


def file_digest(path: Path) -> str:
    with open(path, "rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
