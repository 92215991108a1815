"""Figures 4 and 5: the validation score loss of kernel exponential families by iteration, one line a run."""

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from dkef.report.figures.look import FAINT, OTHERS
from dkef.report.figures.panels import Footnotes, headings, nothing
from dkef.report.figures.scale import window
from dkef.results.experiment import DatasetEntry
from dkef.results.lookup import Results
from dkef.results.names import FIGURE_1, label_of

LOSS, ITERATION = "validation_loss", "iteration"
PREFERRED = ("dkef_g15", "dkef", "dkef_fixed_q0", "dkef_g50", "kef_g")


def draw_synthetic(results: Results) -> Figure:
    """Figure 4."""
    entries = results.info.ordered(synthetic=True)
    return _draw(results, [entry for entry in entries if not set(entry.models) <= set(FIGURE_1)])


def draw_benchmark(results: Results) -> Figure:
    """Figure 5."""
    return _draw(results, results.info.ordered(synthetic=False))


def _draw(results: Results, entries: list[DatasetEntry]) -> Figure:
    count = max(len(entries), 1)
    columns = count if count <= 3 else 3 if count in (5, 6, 9) else 4
    rows = -(-count // columns)
    width = max(2.5 * columns, 5.0)
    foot = Footnotes.of(results, width, "One line a seed, first phase of training; dots: the iteration that was kept.")
    height = 2.15 * rows + foot.height + 0.35
    figure = Figure(figsize=(width, height))
    panels = figure.subplots(rows, columns, squeeze=False).ravel()
    for axes in panels[count:]:
        axes.remove()
    if not entries:
        nothing(panels[0], "no such set in this experiment")
    for first in range(0, len(entries), columns):
        headings(panels[first : first + columns], entries[first : first + columns])
    for axes, entry in zip(panels, entries, strict=False):
        _panel(axes, results, entry)
    for i, axes in enumerate(panels[: len(entries)]):
        if not axes.lines:
            continue
        if i % columns == 0:
            axes.set_ylabel("validation score loss")
        if i + columns >= len(entries):
            axes.set_xlabel("iteration")
        axes.xaxis.set_major_locator(MaxNLocator(integer=True, nbins=5))
    foot.finish(figure, left=0.62, top=0.42, bottom=0.45, right=0.985, wspace=0.3, hspace=0.42)
    return figure


def model_shown(results: Results, entry: DatasetEntry) -> str | None:
    """The model whose traces a panel shows: DKEF-G-15 or DKEF where they were run, else the first with a trace."""
    traced = [model for (dataset, model, _), table in results.traces.items() if dataset == entry.name and LOSS in table]
    return next((model for model in PREFERRED if model in traced), traced[0] if traced else None)


def _panel(axes: Axes, results: Results, entry: DatasetEntry) -> None:
    model = model_shown(results, entry)
    if model is None:
        nothing(axes, "no trace of a\nkernel exponential family")
        return
    tables = [(seed, results.traces.get((entry.name, model, seed))) for seed in entry.seeds]
    lines = [(seed, _looked_at(table)) for seed, table in tables if table is not None and LOSS in table]
    lines = [(seed, line) for seed, line in lines if not line.empty]
    if not lines:
        nothing(axes, "empty trace")
        return
    for i, (seed, line) in enumerate(lines):
        color = OTHERS[i % len(OTHERS)]
        axes.plot(line[ITERATION], line[LOSS], color=color, linewidth=0.8, label=f"seed {seed}", zorder=2)
        best = line.loc[line[LOSS].idxmin()]
        axes.scatter([best[ITERATION]], [best[LOSS]], s=9, color=color, zorder=3, edgecolors="white", linewidths=0.4)
    ends = np.array([line[LOSS].iloc[-1] for _, line in lines])
    starts = np.array([line[LOSS].iloc[0] for _, line in lines])
    kept = tuple(float(line[LOSS].min()) for _, line in lines)
    values = np.concatenate([line[LOSS] for _, line in lines])
    shown = window(np.concatenate([ends, starts]), values, include=kept, reach=0.15)
    axes.set_ylim(shown.low, shown.high)
    axes.text(
        0.97, 0.95, f"{label_of(model)}, {len(lines)} run{'s' if len(lines) > 1 else ''}",
        transform=axes.transAxes, ha="right", va="top", fontsize=6, color=FAINT,
        bbox={"facecolor": "white", "linewidth": 0, "pad": 1.5},
    )  # fmt: skip


def _looked_at(table: pd.DataFrame) -> pd.DataFrame:
    """Rows of a trace at which the validation loss was computed."""
    return table[np.isfinite(table[LOSS].astype(float))]
