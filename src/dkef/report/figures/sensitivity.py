"""FSSD and KSD over kernel bandwidths: do models keep their order, and do the two agree?"""

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from dkef.report.figures.look import OTHERS, look_of
from dkef.report.figures.panels import Footnotes, headings, nothing
from dkef.results.experiment import DatasetEntry
from dkef.results.lookup import OK, Results
from dkef.results.names import model_order
from dkef.results.tables import AGREEMENT, SENSITIVITY

STATISTICS = (("fssd2", "FSSD$^2$"), ("ksd2", "KSD$^2$"))


def draw(results: Results) -> Figure:
    """A column a dataset: both statistics of every model, and the rank correlation between them."""
    measured = set(results.frame(SENSITIVITY)["dataset"])
    entries = [entry for entry in results.info.ordered() if entry.name in measured]
    columns = max(len(entries), 1)
    width = max(2.4 * columns + 0.7, 5.0)
    foot = Footnotes.of(results, width, "Values: first seed, FSSD with the most locations. Correlations: all seeds.")
    height = foot.height + 7.2
    figure = Figure(figsize=(width, height))
    grid = figure.subplots(3, columns, squeeze=False, sharex="col")
    if not entries:
        nothing(grid[0, 0], "no sensitivity table in this experiment")
    headings(grid[0], entries)
    for column, entry in enumerate(entries):
        for row, (statistic, _) in enumerate(STATISTICS):
            _values(grid[row, column], results, entry, statistic)
        _agreement(grid[2, column], results, entry)
        grid[2, column].set_xlabel("bandwidth / median distance")
        grid[2, column].set_xscale("log", base=2)
    for row, label in enumerate([label for _, label in STATISTICS] + ["Kendall's $\\tau$, FSSD with KSD"]):
        grid[row, 0].set_ylabel(label)
    _legends(figure, grid[0, 0], grid[2, 0], foot.height)
    foot.finish(figure, left=0.75, top=0.45, bottom=1.15, right=0.985, wspace=0.32, hspace=0.12)
    return figure


def _values(axes: Axes, results: Results, entry: DatasetEntry, statistic: str) -> None:
    """One line a model over the bandwidth, on a scale that shows values on both sides of zero."""
    table = results.frame(SENSITIVITY)
    rows = table[(table["dataset"] == entry.name) & (table["statistic"] == statistic) & (table["status"] == OK)]
    rows = rows[rows["seed"] == entry.seeds[0]]
    if statistic == "fssd2":
        rows = rows[rows["locations"] == rows["locations"].max()]
    if rows.empty:
        nothing(axes, "no values")
        return
    for i, model in enumerate(model_order(list(rows["model"]))):
        line, look = rows[rows["model"] == model].sort_values("bandwidth_factor"), look_of(model, i)
        axes.plot(
            line["bandwidth_factor"], line["value"], color=look.color, linestyle=look.line, marker=look.marker,
            markersize=3, label=look.label,
        )  # fmt: skip
    sizes = np.abs(rows["value"].to_numpy(dtype=float))
    axes.set_yscale("symlog", linthresh=max(float(np.median(sizes)) / 10, 1e-8))
    axes.axhline(0, color="#cccccc", linewidth=0.6, zorder=1)


def _agreement(axes: Axes, results: Results, entry: DatasetEntry) -> None:
    """Rank correlation over models, one colour for each number of locations, one dot a seed."""
    table = results.frame(AGREEMENT)
    rows = table[table["dataset"] == entry.name]
    rows = rows[np.isfinite(rows["tau_fssd_ksd"].astype(float))]
    if rows.empty:
        nothing(axes, "no order to compare")
        return
    for i, count in enumerate(sorted(set(rows["locations"]))):
        chosen = rows[rows["locations"] == count]
        shift = 2 ** (0.1 * (i - 1))  # side by side, not on top of each other
        axes.scatter(
            chosen["bandwidth_factor"] * shift, chosen["tau_fssd_ksd"], s=10, color=OTHERS[i % len(OTHERS)],
            label=f"{int(count)} locations", linewidths=0,
        )  # fmt: skip
    axes.set_ylim(-1.08, 1.08)
    axes.axhline(0, color="#cccccc", linewidth=0.6, zorder=1)


def _legends(figure: Figure, values: Axes, agreement: Axes, above: float) -> None:
    """Models and numbers of locations, under all panels."""
    height = figure.get_figheight()
    for axes, y in ((values, above + 0.2), (agreement, above)):
        handles, labels = axes.get_legend_handles_labels()
        if handles:
            figure.legend(
                handles, labels, loc="lower center", bbox_to_anchor=(0.5, y / height), ncols=5, frameon=False,
                columnspacing=1.0, handletextpad=0.4, fontsize=6.5,
            )  # fmt: skip
