"""Which code stands behind a stage, and its digest: an edit that can change a result reruns what uses it, no other.

The digest is the rerun key of jobs (`params` of the rules), of checkpoints and of the parts of log Z. `syntax` says
what of a file counts.
"""

import functools
from collections.abc import Mapping
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from dkef.config.kept_syntax import Facts, SourceFile
from dkef.config.syntax import BUILT_IN, ancestors
from dkef.core.files import record_digest
from dkef.core.trust import OWN_PACKAGE, belongs_to_user

PACKAGE = Path(__file__).parents[1]
# No result depends on these: the version and lazy names, the wording of errors, and the making of this digest.
LEFT_OUT = {OWN_PACKAGE, "dkef.config.sentences", "dkef.config.code", "dkef.config.kept_syntax", "dkef.config.syntax"}


@functools.cache
def _root(package: str) -> Path | None:
    """Where a top-level name lies, less its suffix, if its code is this package's or the user's own."""
    if package == OWN_PACKAGE:
        return PACKAGE
    if not belongs_to_user(package):
        return None
    spec = find_spec(package)
    folders = list(spec.submodule_search_locations or []) if spec else []
    if folders:
        return Path(folders[0])
    return Path(spec.origin).with_suffix("") if spec and spec.origin else None


@functools.cache
def _file_of(module: str) -> Path | None:
    """Source file of a module or package; None for those of others, and for names that are no modules."""
    package, *below = module.split(".")
    root = _root(package)
    if root is None:
        return None
    path = root.joinpath(*below)
    candidates = (path / "__init__.py", path.with_name(f"{path.name}.py"))
    return next((candidate for candidate in candidates if candidate.is_file()), None)


def _with_packages(module: str) -> list[str]:
    """A module and the packages around it, whose __init__ Python runs first."""
    words = module.split(".")
    return [".".join(words[: n + 1]) for n in range(len(words))]


@functools.cache
def _source(path: Path) -> SourceFile:
    return SourceFile(path)


@functools.cache
def _facts(module: str, path: Path) -> Facts:
    return _source(path).facts(module if path.name == "__init__.py" else module.rpartition(".")[0])


@functools.cache
def _digest(path: Path, kept: frozenset[str]) -> str:
    """Digest of one file, with the text of the errors in `kept`."""
    return _source(path).digest(kept)


@functools.cache
def _behind(*modules: str) -> dict[str, Path]:
    """Files by the names of their modules: those given, and all of this package or the user's own that they import.

    Imports inside functions count, those for type checkers do not.
    """
    found: dict[str, Path] = {}
    waiting = [name for module in modules for name in _with_packages(module)]
    while waiting:
        module = waiting.pop()
        path = _file_of(module)
        if path is None or module in found or module in LEFT_OUT:
            continue
        if not _facts(module, path).empty:
            found[module] = path
            waiting += [name for other in _facts(module, path).imports for name in _with_packages(other)]
    return dict(sorted(found.items()))


def sources_behind(*modules: str) -> list[str]:
    """Files that the modules import, directly or not, themselves included; sorted."""
    return sorted(str(path) for path in _behind(*modules).values())


@functools.cache
def sources_digest(*modules: str) -> str:
    """Digest of all that can change a result in the files behind the modules, whatever folder they lie in."""
    files = _behind(*modules)
    known = {module: _facts(module, path).errors for module, path in files.items()}
    bases = {name: parents for one in known.values() for name, parents in one.bases.items()}
    caught = {name for one in known.values() for name in one.kept}
    kept = frozenset(name for name in bases.keys() | caught | BUILT_IN if ancestors(name, bases) & caught)
    return record_digest({module: _digest(path, kept & known[module].called) for module, path in files.items()})


def target_modules(section: Any) -> list[str]:
    """Modules of every class that a configuration section names by `_target_`, at any depth; sorted."""
    if not isinstance(section, Mapping):
        return []
    own = {str(section["_target_"]).rpartition(".")[0]} if "_target_" in section else set()
    return sorted(own.union(*(target_modules(entry) for entry in section.values())))
