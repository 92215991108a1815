"""Fill the tables in documents from published results, or check that they are in step."""

import argparse
from collections.abc import Sequence
from pathlib import Path

from dkef.core.errors import DkefError
from dkef.core.files import write_text
from dkef.report.documents import fill


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--documents", type=Path, nargs="+", required=True, help="Markdown files")
    parser.add_argument("--check", action="store_true", help="write nothing; stop where a table is out of step")
    args = parser.parse_args(arguments)
    for path in args.documents:
        text = path.read_text(encoding="utf-8")
        filled = fill(text, Path.cwd(), str(path))
        if filled == text:
            continue
        if args.check:
            raise DkefError(f"{path}: a table differs from its file; run `make tables`")
        write_text(path, filled)
