"""A look at the data: pairwise marginals of the training rows, column by column of the user's table."""

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from dkef.core.arrays import Array
from dkef.data.splits import Splits
from dkef.report.figures.look import FAINT, INK, WARNING
from dkef.report.figures.panels import Footnotes, nothing
from dkef.results.experiment import DatasetEntry
from dkef.results.lookup import Results

COLUMNS = 5  # the first ones
ROWS = 1500  # points drawn
REACH = {False: 4.5, True: 8.0}  # shown: standard deviations of a column; synthetic sets as they are
BLOCK = 3.1  # inches a triangle of panels
PER_ROW = 3
LETTERS = 17  # of a name, in an inch


def draw(results: Results) -> Figure:
    """A triangle of scatter plots a dataset, histograms on its diagonal."""
    entries = [e for e in results.info.ordered() if (e.name, e.seeds[0]) in results.splits]
    count = max(len(entries), 1)
    columns = min(count, PER_ROW)
    block = BLOCK + 0.55
    width = max(columns * block + 0.4, 4.5)
    note = (
        f"At most {COLUMNS} columns and {ROWS} training rows of the first seed; columns in their standard deviations."
    )
    foot = Footnotes.of(results, width, note)
    size = (width, -(-count // columns) * (block + 0.15) + foot.height + 0.2)
    figure = Figure(figsize=size)
    if not entries:
        nothing(figure.add_subplot(), "no splits in this experiment")
    for i, entry in enumerate(entries):
        corner = 0.4 + (i % columns) * block, size[1] - (i // columns) * (block + 0.15)
        _triangle(figure, corner, size, entry, results.splits[entry.name, entry.seeds[0]])
    foot.draw(figure)
    return figure


def _triangle(
    figure: Figure, corner: tuple[float, float], size: tuple[float, float], entry: DatasetEntry, splits: Splits
) -> None:
    """One dataset: column j against column i for j > i, and each column's histogram."""
    x = splits.train if entry.synthetic else _standardised(splits)
    shown = min(COLUMNS, x.shape[1])
    side = BLOCK / max(shown, 2)
    title = f"{entry.title}: {len(x)} rows, {x.shape[1]} column{'s' if x.shape[1] > 1 else ''}"
    figure.text(corner[0] / size[0], 1 - (size[1] - corner[1] + 0.08) / size[1], title, fontsize=8, va="top")
    if entry.subset_of:
        y = 1 - (size[1] - corner[1] + 0.22) / size[1]
        note = f"subset of {entry.subset_of}"
        figure.text(corner[0] / size[0], y, note, fontsize=6.5, va="top", color=WARNING, style="italic")
    for row in range(shown):
        for column in range(row + 1):
            left, bottom = corner[0] + side * column, corner[1] - 0.38 - side * (row + 1)
            place = (left / size[0], bottom / size[1], 0.94 * side / size[0], 0.94 * side / size[1])
            axes = figure.add_axes(place)
            _cell(axes, x, row, column, REACH[entry.synthetic])
            if column == 0:
                axes.set_ylabel(_name(splits, row, side), labelpad=1, fontsize=6)
            if row == shown - 1:
                axes.set_xlabel(_name(splits, column, side), labelpad=1, fontsize=6)


def _standardised(splits: Splits) -> Array:
    """Training rows [n, d] in raw columns, which whitening had mixed, each with mean 0 and deviation 1."""
    x = splits.whitening.invert(splits.train)
    standard: Array = (x - x.mean(axis=0)) / np.where(x.std(axis=0) > 0, x.std(axis=0), 1.0)
    return standard


def _name(splits: Splits, column: int, side: float) -> str:
    """A column's name, cut to the width of its panel in inches."""
    name, letters = splits.columns[column], int(side * LETTERS)
    return name if len(name) <= letters else f"{name[: letters - 1]}\u2026"


def _cell(axes: Axes, x: Array, row: int, column: int, reach: float) -> None:
    axes.set(xticks=[], yticks=[], xlim=(-reach, reach))
    for spine in axes.spines.values():
        spine.set_visible(True)
        spine.set_color(FAINT)
        spine.set_linewidth(0.4)
    if row == column:
        axes.hist(x[:, row], bins=list(np.linspace(-reach, reach, 37)), color=INK, alpha=0.6, linewidth=0)
    else:
        axes.scatter(x[:ROWS, column], x[:ROWS, row], s=0.5, color=INK, alpha=0.35, linewidths=0, rasterized=True)
        axes.set_ylim(-reach, reach)
