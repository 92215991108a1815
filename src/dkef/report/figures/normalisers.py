"""log Z by three proposals against what the samples cost: how far the plain estimate is off, and when it shows."""

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from dkef.report.figures.look import INK, Look
from dkef.report.figures.panels import Footnotes, headings, nothing
from dkef.results.lookup import OK, Results
from dkef.results.names import label_of
from dkef.results.tables import PROPOSALS

LOOKS = {
    "q0": Look("samples of $q_0$", "#D55E00", "o", "-"),
    "mixture": Look("mixture around the data", "#0072B2", "s", "-"),
    "annealed": Look("annealed from the mixture", "#009E73", "D", "-"),
}
NOTE = (
    "Bars: 2 standard errors; ticks below: how much lower the likelihood may be by the bound on the bias (not shown "
    "where that is below the axis). "
    "Open marks: not to be trusted, by signs of its own or since another one found mass that it missed. Grey band: the "
    "trusted estimate with the largest effective sample size, 2 standard errors."
)


def draw(results: Results) -> Figure:
    """A column a trained model: test log-likelihood and effective sample size over the cost."""
    table = results.frame(PROPOSALS)
    cells = [
        (entry, model, rows)
        for entry in results.info.ordered()
        for model in entry.models
        if not (rows := table[(table["dataset"] == entry.name) & (table["model"] == model)]).empty
    ]
    columns = max(len(cells), 1)
    width = max(2.5 * columns + 0.8, 5.0)
    foot = Footnotes.of(results, width, NOTE)
    figure = Figure(figsize=(width, foot.height + 5.6))
    grid = figure.subplots(2, columns, squeeze=False, sharex="col")
    if not cells:
        nothing(grid[0, 0], "no unnormalised model in this experiment")
    headings(grid[0], [entry for entry, _, _ in cells])
    for column, (entry, model, rows) in enumerate(cells):
        _name_of_model(grid[0, column], model)
        rows = rows[rows["seed"] == entry.seeds[0]]
        _likelihoods(grid[0, column], rows)
        _effective(grid[1, column], rows)
    grid[0, 0].set_ylabel("test log-likelihood, nats")
    grid[1, 0].set_ylabel("effective sample size")
    foot.finish(figure, left=0.75, top=0.5, bottom=0.95, right=0.985, wspace=0.3, hspace=0.1)
    foot.legend(figure, LOOKS.values(), 3, above=0.05, size=4)
    return figure


def _name_of_model(axes: Axes, model: str) -> None:
    axes.text(
        0.98, 0.97, label_of(model), transform=axes.transAxes, ha="right", va="top", fontsize=7, color=INK
    )  # fmt: skip


def _likelihoods(axes: Axes, rows: pd.DataFrame) -> None:
    trusted = rows[rows["status"] == OK]
    if not trusted.empty:
        best = trusted.loc[trusted["effective_sample_size"].idxmax()]
        spread = 2 * best["stderr"]
        axes.axhspan(best["log_likelihood"] - spread, best["log_likelihood"] + spread, color="#cccccc", zorder=0)
        axes.axhline(best["log_likelihood"], color="#bbbbbb", linewidth=0.8, zorder=0)
    for kind, look in LOOKS.items():
        line = rows[rows["proposal"] == kind].sort_values("evaluations")
        if line.empty:
            continue
        axes.plot(line["evaluations"], line["log_likelihood"], color=look.color, linewidth=0.8, alpha=0.6)
        for _, row in line.iterrows():
            axes.errorbar(
                row["evaluations"], row["log_likelihood"], yerr=2 * row["stderr"], color=look.color, marker=look.marker,
                markersize=4.5, linewidth=1.0, markerfacecolor=look.color if row["status"] == OK else "white",
            )  # fmt: skip
    axes.set_xscale("log")
    _bounds(axes, rows[np.isfinite(rows["bias_bound"])])


def _bounds(axes: Axes, rows: pd.DataFrame) -> None:
    """Ticks within the axis as it is: the bound for a few samples may be thousands of nats."""
    bottom, top = axes.get_ylim()
    for _, row in rows.iterrows():
        low = row["log_likelihood"] - 2 * row["stderr"] - row["bias_bound"]
        color = LOOKS[row["proposal"]].color
        axes.plot(row["evaluations"], low, color=color, marker="_", markersize=7, markeredgewidth=1.2)
    axes.set_ylim(bottom, top + 0.1 * (top - bottom))  # room for the name of the model


def _effective(axes: Axes, rows: pd.DataFrame) -> None:
    for kind, look in LOOKS.items():
        line = rows[rows["proposal"] == kind].sort_values("evaluations")
        axes.plot(line["evaluations"], line["effective_sample_size"], color=look.color, linewidth=0.8, alpha=0.6)
        for _, row in line.iterrows():
            face = look.color if row["status"] == OK else "white"
            axes.plot(
                row["evaluations"], row["effective_sample_size"], look.marker, color=look.color, markersize=4.5,
                markerfacecolor=face,
            )  # fmt: skip
    axes.set_xscale("log")
    axes.set_yscale("log")
    axes.set_xlabel("cost: evaluations of the model")
