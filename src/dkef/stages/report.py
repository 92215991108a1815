"""One self-contained report of an experiment, from its figures and pages."""

import argparse
from collections.abc import Sequence
from pathlib import Path

from dkef.core.files import write_text
from dkef.report.pages.whole import whole_report
from dkef.results.experiment import ExperimentInfo


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--config", required=True, help="canonical JSON: experiment, title, datasets, reduced")
    parser.add_argument("--figures", type=Path, nargs="*", default=[], help="PNG files, in the order to show")
    parser.add_argument("--pages", type=Path, nargs="*", default=[], help="HTML files of the page stage")
    parser.add_argument("--out", type=Path, required=True, help="HTML file to write")
    args = parser.parse_args(arguments)
    figures = {path.stem: path.read_bytes() for path in args.figures}
    pages = {path.stem: path.read_text(encoding="utf-8") for path in args.pages}
    write_text(args.out, whole_report(ExperimentInfo.parse(args.config), figures, pages))
