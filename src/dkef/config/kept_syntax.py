"""What `syntax` finds in a source file, kept in the environment for all processes.

Every job asks for the digest of the code behind it, and most of a second of each went into the syntax of fifty files.
What is kept goes by the text itself, the version of Python and `syntax`, so that it is never of anything else. Where
nothing can be written, nothing is kept.
"""

import functools
import hashlib
import sys
from contextlib import suppress
from dataclasses import asdict
from pathlib import Path
from typing import Any, NamedTuple

from dkef.config import syntax
from dkef.config.syntax import Errors, canonical_tree, errors, imports, reduced
from dkef.core.caches import cache_places
from dkef.core.errors import DkefError
from dkef.core.files import read_json, write_json

EMPTY = canonical_tree(reduced(""))


class Facts(NamedTuple):
    """What one file says about others."""

    empty: bool  # but for a docstring
    imports: frozenset[str]
    errors: Errors


class SourceFile:
    """One file as it is now."""

    def __init__(self, path: Path) -> None:
        self.text = path.read_text(encoding="utf-8")
        self.place = _folder() / f"{_sha(self.text)}.json"
        self.record: dict[str, Any] = {}
        with suppress(OSError, DkefError):  # there is none, or it is damaged
            self.record = read_json(self.place)

    def facts(self, package: str) -> Facts:
        """`package` is where relative imports start."""
        key = f"facts in {package}"
        known = self.record.get(key) or self._keep(key, self._find_facts(package))
        bases = {name: tuple(parents) for name, parents in known["bases"].items()}
        found = Errors(bases, frozenset(known["kept"]), frozenset(known["called"]))
        return Facts(known["empty"], frozenset(known["imports"]), found)

    def digest(self, kept: frozenset[str]) -> str:
        """Digest of what can change a result, with the text of the errors in `kept`."""
        key = " ".join(["digest", *sorted(kept)])
        if key not in self.record:
            self._keep(key, _sha(canonical_tree(reduced(self.text, kept))))
        return str(self.record[key])

    def _find_facts(self, package: str) -> dict[str, Any]:
        tree = reduced(self.text)
        found = {
            name: sorted(value) if isinstance(value, frozenset) else value
            for name, value in asdict(errors(tree)).items()
        }
        return {"empty": canonical_tree(tree) == EMPTY, "imports": sorted(imports(tree, package)), **found}

    def _keep(self, key: str, value: Any) -> Any:
        self.record[key] = value
        with suppress(OSError, DkefError):  # not ours to write in, or full
            write_json(self.place, self.record)
        return value


def _sha(*texts: str) -> str:
    return hashlib.sha256("\0".join(texts).encode()).hexdigest()


@functools.cache
def _folder() -> Path:
    """Whatever may make other facts is in its name."""
    makers = [Path(str(file)).read_text(encoding="utf-8") for file in (__file__, syntax.__file__)]
    return cache_places()[0] / f"syntax-{_sha(sys.version, *makers)[:16]}"
