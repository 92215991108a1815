"""Pieces that several figures share: headings, notes on what a run is not, and panels with nothing to show."""

import textwrap
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from dkef.report.figures.look import FAINT, WARNING, Look
from dkef.results.experiment import DatasetEntry
from dkef.results.lookup import Results

QUIET = "#555555"
LINE = 0.155  # inches between lines of notes
NARROW = 32  # letters below a title: the width of a panel of Figure 3
LETTERS = 17  # of the notes' size, in an inch


def headings(row: Iterable[Axes], entries: Sequence[DatasetEntry], notes: Sequence[str] = ()) -> None:
    """Titles of datasets at one height above a row of panels; below each that it is a subset, and a further note."""
    told = [
        (f"subset of {entry.subset_of}" if entry.subset_of else "", note)
        for entry, note in zip(entries, notes or [""] * len(entries), strict=True)
    ]
    below = [[line for part in parts for line in textwrap.wrap(part, NARROW)] for parts in told]
    pad = 5 + 7 * max(map(len, below), default=0)
    for axes, entry, lines in zip(row, entries, below, strict=False):
        axes.set_title(entry.title, pad=pad)
        axes.text(
            0.5, 1.01, "\n".join(lines), transform=axes.transAxes,
            ha="center", va="bottom", fontsize=6, color=WARNING, style="italic",
        )  # fmt: skip


def nothing(axes: Axes, reason: str) -> None:
    """An empty panel that says why it is empty."""
    axes.set_xticks([])
    axes.set_yticks([])
    for spine in axes.spines.values():
        spine.set_visible(True)
        spine.set_color("#dddddd")
    axes.text(0.5, 0.5, reason, transform=axes.transAxes, ha="center", va="center", color=FAINT, wrap=True)


@dataclass(frozen=True)
class Footnotes:
    """Lines under a figure: what it shows, which experiment it is of, and how that falls short of the paper's.

    A figure asks for their height before it is laid out, so that they overlap nothing.
    """

    lines: tuple[tuple[str, str], ...]  # text and colour, from top to bottom

    @classmethod
    def of(cls, results: Results, width: float, *notes: str) -> "Footnotes":
        """The notes, wrapped to a figure's width in inches."""
        info = results.info
        lines = [(note, QUIET) for note in notes]
        if info.title:
            lines.append((f"Experiment {info.experiment}: {info.title}", QUIET))
        if info.reduced:
            budgets = "" if info.paper_budgets else ", not the paper's budgets"
            lines.append((f"Reduced run{budgets}: {info.reduced}", WARNING))
        return cls(tuple((line, color) for text, color in lines for line in textwrap.wrap(text, int(LETTERS * width))))

    @property
    def height(self) -> float:
        """Inches from the lower edge of the figure to the top of the notes."""
        return LINE * len(self.lines) + 0.12

    def finish(self, figure: Figure, left: float, top: float, bottom: float, **spaces: float) -> None:
        """Leave these inches free around the panels, the notes apart, and draw the notes; `spaces` are fractions."""
        width, height = figure.get_size_inches()
        spaces |= {"left": left / width, "top": 1 - top / height, "bottom": (self.height + bottom) / height}
        figure.subplots_adjust(**spaces)
        self.draw(figure)

    def legend(self, figure: Figure, looks: Iterable[Look], columns: int, above: float = 0.02, size: float = 5) -> None:
        """Marks and names of some looks, these inches above the notes."""
        handles = [Line2D([], [], color=k.color, marker=k.marker, markersize=size, label=k.label) for k in looks]
        place = (0.5, (self.height + above) / figure.get_figheight())
        figure.legend(handles=handles, loc="lower center", ncol=columns, frameon=False, bbox_to_anchor=place)

    def draw(self, figure: Figure) -> None:
        for i, (text, color) in enumerate(reversed(self.lines)):
            y = (0.06 + LINE * i) / figure.get_figheight()
            figure.text(0.5, y, text, ha="center", va="bottom", fontsize=7, color=color)
