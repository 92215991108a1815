"""Pieces that several figures share: headings, notes on what a run is not, and panels with nothing to show."""

from typing import Any

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from dkef.figures.inputs import DatasetEntry, Inputs
from dkef.figures.look import FAINT, WARNING


def heading(axes: Axes, entry: DatasetEntry, **text: Any) -> None:
    """The dataset's title above its column; a subset says so in a second line."""
    axes.set_title(entry.title, **({"pad": 12 if entry.subset_of else 5} | text))
    if entry.subset_of:
        axes.text(
            0.5, 1.01, f"subset of {entry.subset_of}", transform=axes.transAxes,
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


def footnotes(figure: Figure, inputs: Inputs, *notes: str, y: float = 0.0) -> None:
    """Lines under the figure: what it shows, and how the run falls short of the paper's."""
    lines = [note for note in notes if note]
    if inputs.request.reduced:
        lines.append(f"Reduced run, not the paper's budgets: {inputs.request.reduced}")
    for i, line in enumerate(reversed(lines)):
        warns = line.startswith("Reduced run")
        figure.text(
            0.5, y + i * 0.16 / figure.get_figheight(), line,
            ha="center", va="bottom", fontsize=7, color=WARNING if warns else "#555555",
        )  # fmt: skip
