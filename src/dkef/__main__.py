"""`python -m dkef STAGE ...` runs one stage of the workflow; `python -m dkef --help` lists them.

A stage's module is imported when it is asked for, so that nothing waits for libraries that it does not need.
"""

import ast
import gc
import importlib
import sys
from pathlib import Path

from dkef.core.errors import DkefError, run_stage

STAGES = Path(__file__).with_name("stages")


def stages() -> dict[str, str]:
    """What every stage does, by its name; read, not imported."""
    return {path.stem: _summary(path) for path in _files()}


def _files() -> list[Path]:
    return sorted(path for path in STAGES.glob("*.py") if path.stem != "__init__")


def _summary(path: Path) -> str:
    lines = (ast.get_docstring(ast.parse(path.read_text(encoding="utf-8"))) or "").splitlines()
    return lines[0] if lines else ""


def main() -> None:
    words = sys.argv[1:]
    if not words or words[0] in ("-h", "--help"):
        rows = [f"  {name:<18}{summary}" for name, summary in stages().items()]
        print(
            "usage: python -m dkef STAGE ...\n", *rows, "\npython -m dkef STAGE --help shows what it takes.", sep="\n"
        )
        return
    name, *rest = words
    if name not in {path.stem for path in _files()}:
        from dkef.config.sentences import unknown  # pydantic takes a third of a second

        raise DkefError(unknown("stage", name, stages()))
    # Libraries make a million objects that stay. To look through them for garbage as often as Python does by default
    # would take a sixth of a small training.
    gc.set_threshold(100_000, 50, 50)
    sys.argv = [f"python -m dkef {name}", *rest]
    importlib.import_module(f"dkef.stages.{name}").main()


if __name__ == "__main__":
    run_stage(main)
