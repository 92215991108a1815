"""Which source files stand behind a stage, so that editing one reruns the stages that use it and no others."""

import ast
import functools
from collections.abc import Mapping
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from dkef.core.files import file_digest, record_digest

PACKAGE = Path(__file__).parents[1]


def _file_of(module: str) -> Path | None:
    """Source file of a module of this package; None for packages (they hold only a docstring) and for others."""
    path = PACKAGE.joinpath(*module.split(".")[1:]).with_suffix(".py")
    return path if module.startswith("dkef.") and path.is_file() else None


@functools.cache
def _imports(path: Path) -> frozenset[str]:
    """Modules that a file names in its import statements, at the top or inside functions."""
    named: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            named |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            named |= {node.module} | {f"{node.module}.{alias.name}" for alias in node.names}
    return frozenset(named)


@functools.cache
def sources_behind(*modules: str) -> list[str]:
    """Files of this package that the modules import, directly or not, themselves included; sorted.

    A module outside this package (a user's own model) counts as one file.
    """
    found: set[Path] = set()
    waiting = list(modules)
    while waiting:
        module = waiting.pop()
        path = _file_of(module)
        if path is None and module in modules:
            spec = find_spec(module)
            path = Path(spec.origin) if spec and spec.origin else None
        if path is not None and path not in found:
            found.add(path)
            waiting += _imports(path)
    return sorted(str(path) for path in found)


@functools.cache
def sources_digest(*modules: str) -> str:
    """Digest of all files behind the modules, whatever folder they lie in."""
    return record_digest({"sources": [file_digest(Path(path)) for path in sources_behind(*modules)]})


def target_modules(section: Any) -> list[str]:
    """Modules of every class that a configuration section names by `_target_`, at any depth; sorted."""
    if not isinstance(section, Mapping):
        return []
    own = {str(section["_target_"]).rpartition(".")[0]} if "_target_" in section else set()
    return sorted(own.union(*(target_modules(entry) for entry in section.values())))
