"""What Hydra makes of the cells of an experiment, kept in the environment for all processes.

Hydra takes 60 ms for a cell, and all cells are composed before a workflow starts its first job. There is one file an
experiment. What it holds is of the YAML files whose digest stands in it, so that it is never of any others; where a
file or an override asks for more than files can say, or nothing can be written, nothing is kept.
"""

import hashlib
import json
import re
from collections.abc import Callable
from contextlib import suppress
from importlib import metadata
from pathlib import Path
from typing import Any

from dkef.config.files import config_folder, outside_folders
from dkef.core.caches import cache_places
from dkef.core.errors import DkefError
from dkef.core.files import read_json, write_json

# ${oc.env:HOME} is the environment's, and a search path leads to files that are not looked at here.
SAYS_MORE = re.compile(rb"\$\{[^}]*:|searchpath")

Overrides = tuple[str, ...]


class KeptCells:
    """Plain values of cells by their overrides."""

    def __init__(self, experiment: str) -> None:
        self.place = cache_places()[0] / "cells" / f"{experiment}.json"
        self.files = _digest_of_files()
        self.cells: dict[str, str] = {}  # as text, in which keys keep their order
        self.grown = False
        with suppress(OSError, DkefError):  # there is none, or it is damaged
            record = read_json(self.place)
            if self.files is not None and record.get("files") == self.files:
                self.cells = record["cells"]

    def cell(self, overrides: Overrides, compose: Callable[[Overrides], dict[str, Any]]) -> dict[str, Any]:
        """What `compose` makes of the overrides."""
        key = json.dumps(overrides)
        if key in self.cells:
            known: dict[str, Any] = json.loads(self.cells[key])
            return known
        found = compose(overrides)
        if self.files is not None and not SAYS_MORE.search(key.encode()) and (text := _as_json(found)):
            self.cells[key], self.grown = text, True
        return found

    def write(self) -> None:
        """Keep what has been composed since the file was read."""
        if self.grown:
            with suppress(OSError, DkefError):  # not ours to write in, or full
                write_json(self.place, {"files": self.files, "cells": self.cells})
            self.grown = False


def _as_json(value: Any) -> str | None:
    """A value as text; None if it would not come back as it was: dates, infinities, numbers as keys."""
    try:
        text = json.dumps(value, allow_nan=False)
    except (TypeError, ValueError, RecursionError):
        return None
    return text if json.loads(text) == value else None


def _digest_of_files() -> str | None:
    """Digest of all YAML files and of what composes them; None where they ask for more, or cannot be read."""
    sha = hashlib.sha256("".join(metadata.version(name) for name in ("hydra-core", "omegaconf")).encode())
    try:
        sha.update(Path(__file__).with_name("compose.py").read_bytes() + Path(__file__).read_bytes())
        for folder in (config_folder(), *outside_folders()):
            for path in sorted(folder.rglob("*.yaml")):
                text = path.read_bytes()
                if SAYS_MORE.search(text):
                    return None
                sha.update(f"{path.relative_to(folder)}\0{len(text)}\0".encode() + text)
    except OSError:
        return None
    return sha.hexdigest()
