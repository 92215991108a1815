"""What is fuzzed, each a module with `cases()`, which draws (kind, contents of a file), and `read(kind, data, folder)`.

`read` must load what it is given or refuse it with one sentence.
"""

import importlib
from typing import Any

TARGETS = {"raw": "raw_files", "hdf5": "hdf5_files", "records": "records", "configs": "configs"}


def module_of(target: str) -> Any:
    """The module of a target; the others, and the libraries they need, stay unloaded."""
    return importlib.import_module(f"tests.fuzz.{TARGETS[target]}")
