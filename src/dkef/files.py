"""Files that are whole or absent."""

import json
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from dkef.errors import DkefError


@contextmanager
def whole_file(path: Path) -> Iterator[Path]:
    """Give a scratch path that becomes `path` only if the block succeeds.

    The reader never meets half a file, and a process that outlives its parent cannot spoil the next run.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    scratch = path.with_name(f".{path.name}.{os.getpid()}.partial")
    try:
        yield scratch
        with open(scratch, "rb") as written:
            os.fsync(written.fileno())
        os.replace(scratch, path)
    finally:
        scratch.unlink(missing_ok=True)


def write_text(path: Path, text: str) -> None:
    with whole_file(path) as scratch:
        scratch.write_text(text, encoding="utf-8")


def write_json(path: Path, record: Any) -> None:
    """Write a record with sorted keys, so that equal records are equal bytes."""
    write_text(path, json.dumps(record, sort_keys=True, indent=2, allow_nan=False) + "\n")


def read_json(path: Path) -> Any:
    try:
        return json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise DkefError(f"{path} does not exist; run the stage that writes it") from None
    except (UnicodeDecodeError, json.JSONDecodeError) as error:
        raise DkefError(f"{path} is not JSON ({error}); delete it and run its stage again") from None
