"""The marks of panels of points (`points`) and what they mean."""

from typing import Any

from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from dkef.report.figures.look import INK, WARNING


def legend_height(width: float, single: bool = False) -> float:
    """Inches that the legend takes in a figure of this width; single: no model has a second run."""
    return 0.16 * -(-len(_handles(single)) // _legend_columns(width)) + 0.1


def draw_legend(figure: Figure, above: float, single: bool = False) -> None:
    """The marks of all panels and what they mean, these inches above the figure's lower edge."""
    width, height = figure.get_size_inches()
    figure.legend(
        handles=_handles(single), loc="lower center", bbox_to_anchor=(0.5, above / height), frameon=False,
        ncols=_legend_columns(width), fontsize=7, borderaxespad=0.0, borderpad=0.2, labelspacing=0.3, columnspacing=1.6,
    )  # fmt: skip


def _legend_columns(width: float) -> int:
    return len(_handles(False)) if width > 9.9 else 3 if width > 5 else 2


def _handles(single: bool) -> list[Line2D]:
    def mark(label: str, **style: Any) -> Line2D:
        whole: dict[str, Any] = {"color": INK, "linestyle": "none", "markersize": 4, "label": label} | style
        return Line2D([], [], **whole)

    runs = [
        mark("median and its interval", marker="D", linestyle="-"),
        mark("one run", marker="o", markersize=2.5),
    ]
    return [
        *([mark("value and standard error", marker="D", linestyle="-")] if single else runs),
        mark("log Z not to be trusted", marker="D" if single else "o", markersize=3, markerfacecolor="white"),
        mark("down to the bound on its bias", marker="|", markersize=7, color="black"),
        mark("beyond the panel", marker="^", markersize=3.5),
        mark("invalid runs, and how many", marker="x", color=WARNING, markeredgewidth=1.3),
    ]
