"""How loops are compiled: once per machine and version of the source, for all processes."""

import contextlib
import fcntl
import functools
import hashlib
import os
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numba
import numba.core.event
import numba.extending

from dkef.core.caches import cache_places

PACKAGE = Path(__file__).parents[1]
MARKS = (b"dkef.core.compiled", b"numba")  # one of them stands in every module that holds compiled code


def compiled_sources() -> list[Path]:
    """Modules of all folders in which something is compiled, in order."""
    folders = {path.parent for path in PACKAGE.rglob("*.py") if any(mark in path.read_bytes() for mark in MARKS)}
    return sorted(path for folder in folders for path in folder.glob("*.py"))


def _cache_folder() -> Path:
    """A folder that belongs to exactly this source and is shared by all processes.

    numba notices an edit of the file a function is in, but not of the files that function calls into or takes
    constants from; hence the digest of their folders in the name.
    """
    sha = hashlib.sha256(numba.__version__.encode())
    for source in compiled_sources():
        sha.update(source.read_bytes())
    for base in cache_places():
        folder = base / f"numba-{sha.hexdigest()[:16]}"
        try:
            folder.mkdir(parents=True, exist_ok=True)
        except OSError:
            continue
        if os.access(folder, os.W_OK):
            return folder
    raise OSError(f"no writable cache folder: tried {', '.join(map(str, cache_places()))}")


class OneAtATime(numba.core.event.Listener):  # type: ignore[misc]  # numba has no types
    """Lets one process at a time compile into a folder: jobs that start together wait for the first and read its code.

    Only work is saved. A process that has waited for `patience` seconds, or cannot lock, compiles like all others.
    """

    def __init__(self, folder: Path, patience: float = 60.0) -> None:
        self.file, self.patience = folder / "lock", patience
        self.depth, self.guard = 0, threading.Lock()  # compiled functions compile others, and threads may, too
        self.lock = contextlib.ExitStack()

    def on_start(self, _event: numba.core.event.Event) -> None:
        with self.guard:
            self.depth += 1
            if self.depth == 1:
                with contextlib.suppress(OSError):
                    self._acquire()

    def on_end(self, _event: numba.core.event.Event) -> None:
        with self.guard:
            self.depth -= 1
            if self.depth == 0:
                self.lock.close()  # closing the file gives the lock back, as does the end of the process

    def _acquire(self) -> None:
        self.file.parent.mkdir(parents=True, exist_ok=True)
        file = self.lock.enter_context(self.file.open("w"))
        given_up = time.monotonic() + self.patience
        while time.monotonic() < given_up:
            with contextlib.suppress(BlockingIOError):
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
                return
            time.sleep(0.05)


if not os.environ.get("NUMBA_CACHE_DIR"):
    numba.config.CACHE_DIR = str(_cache_folder())
numba.core.event.register("numba:compiler_lock", OneAtATime(Path(numba.config.CACHE_DIR)))


intrinsic: Callable[..., Any] = numba.extending.intrinsic
njit: Callable[..., Any] = functools.partial(numba.njit, cache=True, nogil=True, error_model="numpy")
