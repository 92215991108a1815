"""What produced a result: configuration digest, code version, library versions."""

import functools
import hashlib
import json
import os
import platform
import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

import dkef

LIBRARIES = ("numpy", "scipy", "pandas", "h5py", "tensorflow", "numba", "hydra-core", "snakemake")


def canonical(config: Any) -> str:
    """Text that is equal exactly when the configuration is equal."""
    return json.dumps(config, sort_keys=True, separators=(",", ":"), allow_nan=False)


def config_digest(text: str) -> str:
    """Short digest of a canonical configuration text."""
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def digest_behind(config: Any, *records: Mapping[str, Any]) -> str:
    """Digest of a stage's configuration and of those behind its input files: any change upstream shows."""
    return config_digest(canonical([config, *(record.get("config_digest") for record in records)]))


def array_digest(*arrays: np.ndarray) -> str:
    """Short digest of the values, shapes and types of some arrays."""
    sha = hashlib.sha256()
    for array in arrays:
        sha.update(f"{array.dtype.str}{array.shape}".encode())
        sha.update(np.ascontiguousarray(array).data)
    return sha.hexdigest()[:16]


@functools.cache
def code_version() -> str:
    """`git describe` of the checkout this package runs from, or the package version outside one.

    Untracked and produced files do not make a checkout dirty; edits of tracked ones do. A workflow asks once and
    hands the answer to its jobs in DKEF_CODE_VERSION, so that all rows of one run name the same code.
    """
    if known := os.environ.get("DKEF_CODE_VERSION"):
        return known
    here = Path(__file__).parent
    try:
        described = subprocess.run(
            ["git", "describe", "--always", "--dirty", "--abbrev=12"],
            cwd=here, capture_output=True, text=True, timeout=10, check=True,
        )  # fmt: skip
    except (OSError, subprocess.SubprocessError):
        return f"v{dkef.__version__}"
    return described.stdout.strip()


@functools.cache
def library_versions() -> dict[str, str]:
    """Versions of Python and of the libraries that numbers depend on."""
    from importlib import metadata  # which loads the standard library's e-mail, and most jobs do without

    return {"python": platform.python_version()} | {name: metadata.version(name) for name in LIBRARIES}
