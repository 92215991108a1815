"""Whose code a configuration or a model file may name: this package's, and the user's own.

A name is only looked up, never imported, before it is allowed. The user's own are modules that Python finds outside
its standard library and installed packages (a folder on PYTHONPATH, the working folder, an editable install), and
whatever packages DKEF_TRUSTED names.
"""

import importlib.util
import os
import sys
import sysconfig
from pathlib import Path

OWN_PACKAGE = "dkef"


def belongs_to_user(package: str) -> bool:
    """Whether a top-level package is the user's own, so that a name in it may be imported."""
    if package in os.environ.get("DKEF_TRUSTED", "").split(os.pathsep):
        return bool(package)
    place = _place(package)
    return place is not None and not any(place.is_relative_to(folder) for folder in _installed())


def allowed(target: str) -> bool:
    """Whether a `_target_` may be imported."""
    package = target.partition(".")[0]
    return package == OWN_PACKAGE or belongs_to_user(package)


def _place(package: str) -> Path | None:
    """Where Python would find a top-level package; None where it would not, or inside the interpreter."""
    loaded = sys.modules.get(package)
    try:
        spec = loaded.__spec__ if loaded is not None else importlib.util.find_spec(package)
    except (ImportError, ValueError, AttributeError):
        return None
    if spec is None:
        return None
    folders = list(spec.submodule_search_locations or [])
    origin = spec.origin if spec.has_location else folders[0] if folders else None
    return Path(origin).resolve() if origin else None


def _installed() -> list[Path]:
    """Folders of the standard library and of installed packages."""
    paths = sysconfig.get_paths()
    return [Path(paths[key]).resolve() for key in ("stdlib", "platstdlib", "purelib", "platlib")]
