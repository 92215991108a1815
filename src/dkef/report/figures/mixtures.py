"""The weight that a kernel exponential family gives to one of two separated components (Appendix C.1).

Points are fits; the curves are the paper's prediction as printed and as corrected, the dotted lines the true ratio.
"""

import math
from collections.abc import Iterable

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from dkef.report.figures.catalogue import SEPARATED, SEPARATED_VERDICT
from dkef.report.figures.panels import nothing
from dkef.results.lookup import Results

COLORS = ("C0", "C1", "C2")
CURVES = {"corrected": "-", "printed": "--", "truth": ":"}


def draw(results: Results) -> Figure:
    """Log ratio against lambda, for one and for more inducing points, and against pi; the verdict above."""
    table = results.frame(SEPARATED)
    figure = Figure(figsize=(9.5, 3.4))
    axes = figure.subplots(1, 3)
    if table.empty:
        nothing(axes[1], "no fits to separated components")
        return figure
    fewest, most = int(table["inducing"].min()), int(table["inducing"].max())
    one, many = table[table["inducing"] == fewest], table[table["inducing"] == most]
    shares = _spread(table.loc[table["pi"] > 0.5, "pi"].unique())
    for panel, part, count in ((axes[0], one, fewest), (axes[1], many, most)):
        _against_lambda(panel, part, shares)
        panel.set_title(f"{count} inducing point{'s' if count > 1 else ''} a component", fontsize=9)
    _against_share(axes[2], one, _spread(table.loc[table["lambda"].between(3e-6, 3e-2), "lambda"].unique()))
    axes[2].set_title(f"{fewest} inducing point a component", fontsize=9)
    axes[0].set_ylabel(r"log ratio $f(0) - f(r)$")
    handles = [Line2D([], [], color="0.3", linestyle=style, label=name) for name, style in CURVES.items()]
    handles.append(Line2D([], [], color="0.3", linestyle="", marker="o", markersize=3, label="fits"))
    figure.legend(handles=handles, loc="lower center", ncols=4, frameon=False, fontsize=8)
    figure.suptitle(results.tables.get(SEPARATED_VERDICT.name, {}).get("sentence", ""), fontsize=9)
    figure.subplots_adjust(left=0.07, right=0.99, top=0.83, bottom=0.25, wspace=0.22)
    return figure


def _spread(values: Iterable[float]) -> list[float]:
    """The first, the middle and the last of some values."""
    ordered = sorted(values)
    return sorted({ordered[0], ordered[len(ordered) // 2], ordered[-1]})


def _against_lambda(axes: Axes, table: pd.DataFrame, shares: list[float]) -> None:
    for pi, color in zip(shares, COLORS, strict=False):
        _series(axes, table[table["pi"] == pi], "lambda", color)
        axes.plot([], [], color=color, label=rf"$\pi = {pi:g}$")
    axes.set_xscale("log")
    axes.set_xlabel(r"$\lambda$")
    axes.legend(frameon=False, fontsize=8)


def _against_share(axes: Axes, table: pd.DataFrame, lambdas: list[float]) -> None:
    for lam, color in zip(lambdas, COLORS, strict=False):
        _series(axes, table[table["lambda"] == lam], "pi", color)
        axes.plot([], [], color=color, label=rf"$\lambda = 10^{{{math.log10(lam):g}}}$")
    axes.set_xlabel(r"$\pi$")
    axes.legend(frameon=False, fontsize=8)


def _series(axes: Axes, rows: pd.DataFrame, against: str, color: str) -> None:
    first = rows[rows["seed"] == rows["seed"].min()].sort_values(against)  # predictions are equal for every seed
    for name, style in CURVES.items():
        axes.plot(first[against], first[name], color=color, linestyle=style, linewidth=1)
    axes.plot(rows[against], rows["log_ratio"], color=color, linestyle="", marker="o", markersize=2.5)
