"""How loops are compiled: once per machine and version of the source, for all processes."""

import functools
import hashlib
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numba
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


if not os.environ.get("NUMBA_CACHE_DIR"):
    numba.config.CACHE_DIR = str(_cache_folder())


intrinsic: Callable[..., Any] = numba.extending.intrinsic
njit: Callable[..., Any] = functools.partial(numba.njit, cache=True, nogil=True, error_model="numpy")
