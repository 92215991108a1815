"""Stage `render`: draw one figure from finished tables; it selects, draws and saves, and computes no statistic.

The same inputs give the same bytes: no date, no version of the drawing library and no random name goes into a file.
"""

import argparse
import logging
from pathlib import Path

import matplotlib as mpl
from matplotlib.figure import Figure

from dkef.core.errors import DkefError, run_stage
from dkef.core.files import whole_file
from dkef.report.figures.catalogue import find
from dkef.report.figures.look import STYLE
from dkef.results.inputs import (
    Inputs,
    Request,
    read_agreement,
    read_grid,
    read_metrics,
    read_proposals,
    read_sensitivity,
    read_split,
    read_summary,
    read_trace,
)

# What a format would otherwise fill with a date or a program's name.
METADATA: dict[str, dict[str, None]] = {
    ".pdf": {"CreationDate": None, "ModDate": None, "Producer": None, "Creator": None},
    ".png": {"Software": None},
}


def read_inputs(args: argparse.Namespace) -> Inputs:
    """Read every file that the command line names."""
    empty = Inputs(Request.parse(args.config))
    return Inputs(
        request=empty.request,
        metrics=read_metrics(args.metrics) if args.metrics else empty.metrics,
        summary=read_summary(args.summary) if args.summary else empty.summary,
        grids=dict(read_grid(path) for path in args.grids),
        traces=dict(read_trace(path) for path in args.traces),
        splits=dict(read_split(path) for path in args.splits),
        sensitivity=read_sensitivity(args.sensitivity) if args.sensitivity else empty.sensitivity,
        agreement=read_agreement(args.agreement) if args.agreement else empty.agreement,
        proposals=read_proposals(args.proposals) if args.proposals else empty.proposals,
    )


def draw(name: str, inputs: Inputs) -> Figure:
    """The figure of a name, drawn in the common style."""
    with mpl.rc_context():
        mpl.rcdefaults()
        mpl.rcParams.update(STYLE)
        figure: Figure = find(name).drawing()(inputs)
        return figure


def save(figure: Figure, path: Path) -> None:
    """Write a figure as PDF or PNG, by the path's ending."""
    if path.suffix not in METADATA:
        raise DkefError(f"{path}: figures are written as {' or '.join(METADATA)}")
    with mpl.rc_context(STYLE), whole_file(path) as scratch:
        figure.savefig(scratch, format=path.suffix[1:], metadata=METADATA[path.suffix])


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m dkef.stages.render", description=__doc__.splitlines()[0])
    parser.add_argument("--config", required=True, help="canonical JSON: figure, experiment, title, datasets, reduced")
    parser.add_argument("--figure", required=True, help="name of the figure, see dkef.report.figures.catalogue")
    parser.add_argument("--metrics", type=Path, help="metrics.csv")
    parser.add_argument("--summary", type=Path, help="summary.csv")
    parser.add_argument("--sensitivity", type=Path, help="sensitivity.csv, from the agreement stage")
    parser.add_argument("--agreement", type=Path, help="agreement.csv, from the same stage")
    parser.add_argument("--proposals", type=Path, nargs="*", default=[], help="proposals.csv of each cell")
    parser.add_argument("--grids", type=Path, nargs="*", default=[], help="grid.h5 of each cell")
    parser.add_argument("--traces", type=Path, nargs="*", default=[], help="trace.csv of each cell")
    parser.add_argument("--splits", type=Path, nargs="*", default=[], help="splits of each dataset and seed")
    parser.add_argument("--out", type=Path, nargs="+", required=True, help="files to write, .pdf and .png")
    args = parser.parse_args()
    logging.getLogger("fontTools").setLevel(logging.WARNING)  # it reports on every glyph of a PDF
    figure = draw(args.figure, read_inputs(args))
    for path in args.out:
        save(figure, path)


if __name__ == "__main__":
    run_stage(main)
