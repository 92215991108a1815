"""One page of the report, from finished tables, splits or models."""

import argparse
from collections.abc import Sequence
from pathlib import Path

from dkef.core.files import write_text
from dkef.report.pages.catalogue import PAGES
from dkef.report.pages.html import html_of
from dkef.results.lookup import Results


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--page", required=True, choices=PAGES)
    Results.add_arguments(parser)
    parser.add_argument("--out", type=Path, required=True, help="HTML file to write")
    args = parser.parse_args(arguments)
    write_text(args.out, html_of(args.page, Results.read(args.config, args.table, PAGES[args.page].tables)))
