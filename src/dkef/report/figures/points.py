"""Panels of points: one metric of one dataset, for each model its median with an interval, and every single run.

A point needs no floor to stand on, so that the axis may show the part in which the models differ. What lies far beyond
the others stands behind a break of the axis, with its value.
"""

import math
import textwrap
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.ticker import MaxNLocator

from dkef.core.arrays import Array
from dkef.report.figures.look import FAINT, INK, WARNING, look_of
from dkef.report.figures.panels import nothing
from dkef.report.figures.scale import Window, edge_mark, window
from dkef.results.experiment import DatasetEntry
from dkef.results.lookup import Results, Run
from dkef.results.names import label_of

LEFT, RUNS = -0.2, (0.02, 0.36)  # where a model's median stands, and its runs: shares of its place on the axis
REACH, REACH_OF_ONE = 0.8, 4.0  # how far intervals and runs widen an axis; error bars of single runs are to be whole
SQUASH = 3  # a median that makes the axis so many times longer stands behind a break
BREAK = 0.16  # height of the part behind a break, as a share of the part before it
BIAS_BOUND = "log_likelihood_bias_bound"
INVALID = "\u2715"
BROKEN_AXIS = "Values beyond the others stand behind a break of the axis."
INTERVALS = (
    "Intervals: order statistics around the median, 95 % from six runs on, else the range; of one "
    f"run, one standard error over test rows. {BROKEN_AXIS}"
)
OF_ONE_RUN = (
    f"One run of each model: its value with one standard error over test rows on either side. {BROKEN_AXIS} Runs under "
    "other seeds may differ by more than the test rows say."
)


@dataclass(frozen=True)
class Row:
    """One row of panels: a metric, and what its axis has to show."""

    metric: str
    label: str
    line: float | None = None  # a value worth a line: a perfect model, or no difference
    limits: tuple[float, float] | None = None
    has_reference: bool = False  # compares with the dataset's reference, which has no value of its own


@dataclass(frozen=True)
class Point:
    """What a panel shows of one model."""

    value: float  # median over runs with a value
    low: float
    high: float
    runs: Mapping[int, Run]
    trusted: bool
    failed: int


def point_of(results: Results, dataset: str, model: str, metric: str) -> Point:
    """The median with its interval; the only run with a standard error on either side."""
    median, runs = results.median(dataset, model, metric), results.runs(dataset, model, metric)
    low, high = median.low, median.high
    if len(runs) == 1:
        run = next(iter(runs.values()))
        low, high = run.value - run.stderr, run.value + run.stderr
    return Point(median.value, low, high, runs, median.trusted, median.failed)


def one_run_each(results: Results, models: Mapping[str, Sequence[str]]) -> bool:
    """Whether no model has a second run on its dataset: intervals are then those of test rows."""
    keys = {(dataset, model) for dataset, shown in models.items() for model in shown}
    return all(median.valued < 2 for key, median in results.medians.items() if key[:2] in keys)


def panel(axes: Axes, results: Results, entry: DatasetEntry, models: Sequence[str], row: Row) -> None:
    """One metric of one dataset."""
    points = {model: point_of(results, entry.name, model, row.metric) for model in models}
    everything = np.array([run.value for point in points.values() for run in point.runs.values()])
    if everything.size == 0 and not any(point.failed for point in points.values()):
        nothing(axes, _why_nothing(results, entry.name, models, row.metric))
        return
    shown = _window(points, everything, row)
    _axis(axes, shown, [point.value for point in points.values()])
    if row.line is not None:
        axes.axhline(row.line, color=FAINT, linewidth=0.6, zorder=1)
    for x, (model, point) in enumerate(points.items()):
        if row.has_reference and model == entry.reference:
            _word(axes, x, "reference")
            continue
        color = look_of(model, x).color
        _median(axes, x, point, shown, color)
        _runs(axes, x, point, shown, color)
        if row.metric == "log_likelihood":
            _bias_lines(axes, x, point.runs, results.runs(entry.name, model, BIAS_BOUND), shown)
        _note_missing(axes, x, point, shown)


def _why_nothing(results: Results, dataset: str, models: Sequence[str], metric: str) -> str:
    """The reason that all runs without a value share."""
    if metric == "fisher_divergence":
        return "the true density is not known"
    reasons = {results.reasons(dataset, model, metric) for model in models} - {""}
    return textwrap.fill(reasons.pop(), 30) if len(reasons) == 1 else "no values"


def _window(points: Mapping[str, Point], everything: Array, row: Row) -> Window:
    """The part of the axis before any break; differences within the intervals must look small."""
    if row.limits:
        return Window(*row.limits)
    medians = np.array([point.value for point in points.values()])
    ends = np.array([end for point in points.values() for end in (point.low, point.high)])
    reach = REACH_OF_ONE if all(len(point.runs) < 2 for point in points.values()) else REACH
    include = (0.0,) if row.line == 0 else ()
    return window(medians, np.concatenate([everything, ends]), include, reach=reach, squash=SQUASH)


def _axis(axes: Axes, shown: Window, medians: Sequence[float]) -> None:
    """The value axis, with a break at an end beyond which a median lies."""
    part = BREAK * (shown.high - shown.low)
    below, above = any(m < shown.low for m in medians), any(m > shown.high for m in medians)
    low, high = shown.low - below * part, shown.high + above * part
    axes.set_ylim(low, high)
    ticks = MaxNLocator(nbins=5, steps=[1, 2, 2.5, 5, 10]).tick_values(shown.low, shown.high)
    axes.set_yticks([tick for tick in ticks if shown.holds(tick)])
    axes.grid(axis="y", color="#ececec", linewidth=0.5)
    axes.set_axisbelow(True)
    for end, broken in ((shown.low, below), (shown.high, above)):
        if not broken:
            continue
        axes.axhline(end, color=FAINT, linewidth=0.6, linestyle=(0, (4, 3)), zorder=1)
        height = (end - low) / (high - low)
        for shift in (-0.012, 0.012):  # the two strokes of a break
            axes.plot(
                [-0.015, 0.015], [height + shift - 0.01, height + shift + 0.01], transform=axes.transAxes,
                color=INK, linewidth=0.8, clip_on=False, zorder=7,
            )  # fmt: skip


def _median(axes: Axes, x: float, point: Point, shown: Window, color: str) -> None:
    """The median and its interval; white inside where most of the runs behind it are not to be trusted."""
    if not math.isfinite(point.value):
        return
    x = x + LEFT if len(point.runs) > 1 else x
    face = color if point.trusted else "white"
    style: dict[str, Any] = {
        "marker": "D",
        "s": 20,
        "facecolors": face,
        "edgecolors": color,
        "linewidths": 1.0,
        "zorder": 5,
    }
    if shown.holds(point.value):
        ends = [min(max(end, shown.low), shown.high) for end in (point.low, point.high) if math.isfinite(end)]
        if len(ends) == 2:
            axes.vlines(x, *ends, color=color, linewidth=1.6, zorder=3)
            for above, beyond in ((True, point.high > shown.high), (False, point.low < shown.low)):
                if beyond and len(point.runs) == 1:  # of several runs, those beyond are marked themselves
                    edge_mark(axes, x, above, 1, size=10)
        axes.scatter([x], [point.value], **style)
        return
    low, high = axes.get_ylim()
    above = point.value > shown.high
    mark, text = (0.3, 0.95) if above else (0.7, 0.05)  # of the part behind the break, from its lower end
    start, end = (shown.high, high) if above else (low, shown.low)
    axes.scatter([x], [start + mark * (end - start)], **style)
    axes.text(
        x, start + text * (end - start), f"{point.value:.3g}", ha="center", va="top" if above else "bottom",
        fontsize=5.5, color=INK, zorder=6,
    )  # fmt: skip


def _positions(x: float, n: int) -> Array:
    return np.linspace(x + RUNS[0], x + RUNS[1], n)


def _runs(axes: Axes, x: float, point: Point, shown: Window, color: str) -> None:
    """Every run, where there are several; the only one stands as the median."""
    if len(point.runs) < 2:
        return
    values = np.array([run.value for run in point.runs.values()])
    inside = np.array([shown.holds(value) for value in values], dtype=bool)
    trusted = np.array([run.trusted for run in point.runs.values()], dtype=bool)
    where = _positions(x, len(values))
    for chosen, face in ((inside & trusted, color), (inside & ~trusted, "white")):
        if chosen.any():
            axes.scatter(
                where[chosen], values[chosen], marker="o", s=6, facecolors=face, edgecolors=color, linewidths=0.6,
                zorder=4,
            )  # fmt: skip
    for above, count in ((True, int((values > shown.high).sum())), (False, int((values < shown.low).sum()))):
        told = point.value > shown.high if above else point.value < shown.low  # the median stands there already
        if count and not told:
            edge_mark(axes, x + sum(RUNS) / 2, above, count, size=10)


def _bias_lines(axes: Axes, x: float, runs: Mapping[int, Run], bounds: Mapping[int, Run], shown: Window) -> None:
    """Lines from each estimate down to estimate minus bound: the true value lies between, if the bound holds.

    A bound that is too small to be seen is left out.
    """
    least = 0.01 * (shown.high - shown.low)
    positions = _positions(x, len(runs)) if len(runs) > 1 else np.array([x + RUNS[0] + 0.1])
    for where, (seed, run) in zip(positions, runs.items(), strict=False):
        if seed not in bounds or bounds[seed].value < least or not shown.holds(run.value):
            continue
        end = max(run.value - bounds[seed].value, shown.low)
        axes.vlines(where, end, run.value, color="black", linewidth=0.8, zorder=5)
        if end > shown.low:
            axes.scatter([where], [end], marker="_", s=9, color="black", linewidths=0.8, zorder=5)


def _note_missing(axes: Axes, x: float, point: Point, shown: Window) -> None:
    """Say how many runs are invalid, or that there is no value at all."""
    if point.failed:
        high = point.value < shown.low  # the lower edge is taken
        axes.text(
            x, 0.97 if high else 0.03, f"{INVALID}{point.failed}", transform=axes.get_xaxis_transform(), ha="center",
            va="top" if high else "bottom", fontsize=6.5, color=WARNING, zorder=7, fontweight="bold",
            bbox={"facecolor": "white", "alpha": 0.85, "linewidth": 0, "pad": 0.8},
        )  # fmt: skip
    elif not point.runs:
        _word(axes, x, "no value")


def _word(axes: Axes, x: float, word: str) -> None:
    """A word in the place of a point."""
    axes.text(
        x, 0.5, word, transform=axes.get_xaxis_transform(), rotation=90, ha="center", va="center", fontsize=6,
        color=FAINT, bbox={"facecolor": "white", "edgecolor": "none", "pad": 1.5},
    )  # fmt: skip


def name_models(axes: Axes, models: Sequence[str], labels: bool, notes: Mapping[str, str] | None = None) -> None:
    """Models along the lower edge, by name where `labels` says so, with a note on some of them."""
    axes.set_xlim(-0.6, len(models) - 0.4)
    axes.set_xticks(range(len(models)))
    names = [name_of(model, notes or {}) if labels else "" for model in models]
    axes.set_xticklabels(names, rotation=45, ha="right", rotation_mode="anchor")
    axes.tick_params(axis="x", length=0 if not labels else 2)


def name_of(model: str, notes: Mapping[str, str]) -> str:
    """A model's name under a panel."""
    return f"{label_of(model)}, {notes[model]}" if model in notes else label_of(model)


def names_height(names: Iterable[str]) -> float:
    """Inches that the longest name takes below a panel, at 45 degrees."""
    return 0.25 + 0.045 * max(map(len, names), default=0)


def run_counts(results: Results, entry: DatasetEntry, models: Sequence[str]) -> tuple[str, dict[str, str]]:
    """How many of the planned runs are behind a dataset's points: one text if it is the same for all, else one each."""
    ended = {model: max((m.runs for k, m in results.medians.items() if k[:2] == (entry.name, model)), default=0)
             for model in models}  # fmt: skip
    texts = {m: f"{n} of {entry.planned(m)}" for m, n in ended.items() if n < entry.planned(m)}
    if len(texts) == len(models) and len(set(texts.values())) == 1:
        return f"{next(iter(texts.values()))} runs", {}
    return "", texts
