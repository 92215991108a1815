"""Figure 2: log densities of all models on all two-dimensional sets, with what the kernel looks like from inside."""

import math
from dataclasses import dataclass

import matplotlib as mpl
import numpy as np
from matplotlib.axes import Axes
from matplotlib.cm import ScalarMappable
from matplotlib.colors import Normalize
from matplotlib.figure import Figure

from dkef.core.arrays import Array
from dkef.metrics.elongation import CONTOUR, SUPPORT
from dkef.report.figures.look import CONTOURS, INK, OTHERS, WARNING
from dkef.report.figures.panels import Footnotes, nothing
from dkef.results.experiment import DatasetEntry
from dkef.results.lookup import OK, Results
from dkef.results.names import component_of, label_of, model_order
from dkef.results.read import Grid

FLOOR = -SUPPORT  # log densities are shown from their maximum down to this
CELL = (1.12, 1.27)  # inches: a panel and the numbers above it
LEFT, TOP, BAR = 0.55, 0.45, 0.4  # inches: row names, column names, colour bar
NOTES = (
    "Above each panel: test log-likelihood (left) and Fisher divergence (right) of the run shown; best in bold; "
    "?: log Z not to be trusted.",
    f"Faint lines: contours at {CONTOUR} of the kernel around 16 points.",
)


@dataclass(frozen=True)
class Column:
    """One column of panels: a dataset, and for each row's model the name under which it was run there."""

    entry: DatasetEntry
    title: str
    model_of: dict[str, str]  # row model -> model as run
    mixture: bool = False


def columns_of(results: Results) -> list[Column]:
    """One column a planar set; after it, where mixtures on clusters were run, one for these."""
    columns = []
    planar = {dataset for dataset, _, _ in results.grids if _dimension(results, dataset) == 2}
    for entry in results.info.ordered():
        if not (entry.synthetic or entry.name in planar) or _dimension(results, entry.name) == 1:
            continue
        models = [model for model in entry.models if model not in entry.beside]
        single = {model: model for model in models if component_of(model) is None}
        mixed = {component: model for model in models if (component := component_of(model)) is not None}
        if single:
            columns.append(Column(entry, entry.title, single))
        if mixed:
            columns.append(Column(entry, f"{entry.title} mixture", mixed, mixture=True))
    return columns


def _dimension(results: Results, dataset: str) -> int | None:
    for (name, _, _), grid in results.grids.items():
        if name == dataset and "log_density" in grid:
            return int(grid["log_density"].ndim)
    return None


def draw(results: Results) -> Figure:
    """All panels, truth on top and DKEF-G-15 at the bottom."""
    columns = columns_of(results)
    models = model_order([row for column in columns for row in column.model_of])
    rows, width = len(models) + 1, max(len(columns), 1)
    across = LEFT + CELL[0] * max(width, 4) + 0.1
    left = LEFT + CELL[0] * max(4 - width, 0) / 2  # few columns stand in the middle of the notes
    foot = Footnotes.of(results, across, *NOTES)
    size = (across, TOP + CELL[1] * rows + BAR + foot.height)
    figure = Figure(figsize=size)
    if not columns:
        nothing(figure.add_subplot(), "no two-dimensional set in this experiment")
        return figure
    for c, column in enumerate(columns):
        seed = column.entry.seeds[0]
        truth = _panel(figure, left, c, 0, size)
        truth.set_title(column.title, fontsize=8, pad=14, fontweight="bold")
        _truth(truth, results, column, seed)
        best = _best(results, column, models, seed)
        for r, model in enumerate(models, start=1):
            _model(_panel(figure, left, c, r, size), results, column, model, seed, best)
    for r, label in enumerate(["truth", *map(label_of, models)]):
        y = 1 - (TOP + CELL[1] * (r + 0.58)) / size[1]
        figure.text((left - LEFT + 0.3) / size[0], y, label, rotation=90, ha="center", va="center", fontsize=7.5)
    _colour_bar(figure, size, foot.height)
    foot.draw(figure)
    return figure


def _panel(figure: Figure, left: float, column: int, row: int, size: tuple[float, float]) -> Axes:
    """A square panel at its place, with room above it for two numbers."""
    side = CELL[0] - 0.06
    x = left + CELL[0] * column
    y = size[1] - TOP - CELL[1] * row - 0.17 - side
    axes: Axes = figure.add_axes((x / size[0], y / size[1], side / size[0], side / size[1]))
    axes.set_xticks([])
    axes.set_yticks([])
    for spine in axes.spines.values():
        spine.set_visible(False)
    return axes


def _log_density(axes: Axes, axis: Array, log_p: Array) -> None:
    """The log density below its maximum, down to FLOOR; where it is not a number the panel stays white."""
    usable = log_p[np.isfinite(log_p)]
    if usable.size == 0:
        nothing(axes, "no finite\nvalue")
        return
    half = (axis[1] - axis[0]) / 2
    extent = (axis[0] - half, axis[-1] + half, axis[0] - half, axis[-1] + half)
    shade = np.where(np.isneginf(log_p), FLOOR, log_p - usable.max())
    axes.imshow(
        np.clip(shade, FLOOR, 0), origin="lower", extent=extent, cmap="viridis", vmin=FLOOR, vmax=0,
        interpolation="nearest", aspect="equal",
    )  # fmt: skip


def _truth(axes: Axes, results: Results, column: Column, seed: int) -> None:
    grids = [results.grids.get((column.entry.name, model, seed)) for model in column.model_of.values()]
    known = [grid for grid in grids if grid is not None]
    clusters = next((grid for grid in known if "cluster_points" in grid), None) if column.mixture else None
    if clusters is not None:
        _clusters(axes, clusters)
    elif grid := next((grid for grid in known if "true_log_density" in grid), None):
        _log_density(axes, grid["axis"], grid["true_log_density"])
        _number(axes, f"{grid.facts['true_log_likelihood']:.2f}", 0.5, "center", False)
    elif rows := results.splits.get((column.entry.name, seed)):
        axes.scatter(rows.test[:, 0], rows.test[:, 1], s=0.3, color=INK, linewidths=0)
        axes.set(xlim=(-8, 8), ylim=(-8, 8), aspect="equal")
        _number(axes, "test points", 0.5, "center", False)
    else:
        nothing(axes, "not known")


def _clusters(axes: Axes, grid: Grid) -> None:
    """The partition of the training rows that every mixture of this column is fitted on."""
    points, labels = grid["cluster_points"], grid["cluster_labels"].astype(int)
    colors = np.array(OTHERS)[labels % len(OTHERS)]
    axes.scatter(points[:, 0], points[:, 1], s=0.6, c=colors, linewidths=0, rasterized=True)
    axes.set(xlim=(-8, 8), ylim=(-8, 8), aspect="equal")
    _number(axes, f"{len(set(labels.tolist()))} clusters", 0.5, "center", False)


def _best(results: Results, column: Column, models: list[str], seed: int) -> dict[str, float]:
    """The best trusted value of each metric in a column."""
    found = {}
    for metric, better in (("log_likelihood", max), ("fisher_divergence", min)):
        names = [column.model_of[m] for m in models if m in column.model_of]
        runs = [results.run((column.entry.name, name, seed), metric) for name in names]
        good = [run.value for run in runs if run.trusted and math.isfinite(run.value)]
        found[metric] = better(good) if good else math.nan
    return found


def _model(axes: Axes, results: Results, column: Column, row: str, seed: int, best: dict[str, float]) -> None:
    name = column.model_of.get(row)
    grid = results.grids.get((column.entry.name, name, seed)) if name else None
    if name is None or grid is None:
        nothing(axes, "not run" if name is None else "no result")
        return
    _log_density(axes, grid["axis"], grid["log_density"])
    if "kernel" in grid and not column.mixture:
        _contours(axes, grid)
    for metric, text, x, side in (
        ("log_likelihood", _fixed, 0.0, "left"),
        ("fisher_divergence", _short, 1.0, "right"),
    ):
        run = results.run((column.entry.name, name, seed), metric)
        shown = text(run.value) + ("" if run.trusted else "?")
        _number(axes, shown, x, side, run.trusted and run.value == best[metric])
    if grid.facts.get("status", OK) != OK:
        axes.text(
            0.5, 0.04, str(grid.facts["status"]), transform=axes.transAxes, ha="center", va="bottom",
            fontsize=6.5, color="white", bbox={"facecolor": WARNING, "linewidth": 0, "pad": 1.2},
        )  # fmt: skip


def _contours(axes: Axes, grid: Grid) -> None:
    for i, kernel in enumerate(grid["kernel"]):
        axes.contour(
            grid["kernel_axis"], grid["kernel_axis"], kernel, levels=[CONTOUR],
            colors=[CONTOURS[i % len(CONTOURS)]], linewidths=0.9, alpha=0.6,
        )  # fmt: skip


def _fixed(value: float) -> str:
    return "n/a" if not math.isfinite(value) else f"{value:.2f}" if abs(value) < 100 else f"{value:.2g}"


def _short(value: float) -> str:
    return "n/a" if not math.isfinite(value) else f"{value:.2g}"


def _number(axes: Axes, text: str, x: float, side: str, bold: bool) -> None:
    axes.text(
        x, 1.02, text, transform=axes.transAxes, ha=side, va="bottom", fontsize=6.5,
        fontweight="bold" if bold else "normal", color=INK,
    )  # fmt: skip


def _colour_bar(figure: Figure, size: tuple[float, float], above: float) -> None:
    """One scale for all panels, at the lower right."""
    axes = figure.add_axes(((size[0] - 2.0) / size[0], (above + 0.2) / size[1], 1.8 / size[0], 0.08 / size[1]))
    scale = ScalarMappable(Normalize(FLOOR, 0), mpl.colormaps["viridis"])
    bar = figure.colorbar(scale, cax=axes, orientation="horizontal", ticks=[-9, -6, -3, 0])
    bar.ax.tick_params(labelsize=6, length=2, pad=1)
    bar.outline.set_visible(False)
    figure.text(
        (size[0] - 2.06) / size[0], (above + 0.24) / size[1], "log p - max", ha="right", va="center", fontsize=6.5
    )
