"""Checkpoints of training runs: continued from only where they belong to the same settings, data and code."""

import logging
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

from dkef.core.errors import DkefError
from dkef.core.hdf5 import Contents, read_hdf5

T = TypeVar("T")


def read_checkpoint(
    path: Path | None, identity: str, restore: Callable[[Contents], T], log: logging.Logger
) -> T | None:
    """What `restore` makes of the state left at `path`; None where there is none, or it is damaged or another's."""
    if path is None or not path.exists():
        return None
    try:
        contents = read_hdf5(path, "a checkpoint", "training starts anew")
        if contents.record.get("identity") == identity:
            return restore(contents)
        log.info("%s is of other settings, data or code; training starts anew", path)
    except DkefError as damaged:
        log.info("%s", damaged)
    except (KeyError, TypeError, ValueError):  # forged: damage is noticed by its digest
        log.info("%s is not a whole checkpoint; training starts anew", path)
    return None
