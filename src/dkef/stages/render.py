"""Draw one figure from finished tables; it selects, draws and saves, and computes no statistic."""

import argparse
import logging
from collections.abc import Sequence
from pathlib import Path

from dkef.report.figures.catalogue import find
from dkef.report.figures.drawing import draw, save
from dkef.results.lookup import Results


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--figure", required=True, help="name of the figure, see dkef.report.figures.catalogue")
    Results.add_arguments(parser)
    parser.add_argument("--out", type=Path, nargs="+", required=True, help="files to write, .pdf and .png")
    args = parser.parse_args(arguments)
    logging.getLogger("fontTools").setLevel(logging.WARNING)  # it reports on every glyph of a PDF
    figure = draw(args.figure, Results.read(args.config, args.table, find(args.figure).tables))
    for path in args.out:
        save(figure, path)
