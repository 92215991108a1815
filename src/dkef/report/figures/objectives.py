"""Models trained by cheaper objectives: what they reach, against the processor time of their training steps."""

from collections.abc import Mapping, Sequence
from statistics import median
from typing import NamedTuple

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from dkef.report.figures.look import Look
from dkef.report.figures.panels import Footnotes, headings, nothing
from dkef.results.experiment import DatasetEntry
from dkef.results.lookup import Results
from dkef.results.tables import OBJECTIVE_COSTS

LOOKS = {
    "exact": Look("exact", "#222222", "*"),
    "sliced": Look("sliced", "#0072B2", "o"),
    "sliced_vr": Look("sliced, variance reduced", "#56B4E9", "s"),
    "finite_difference": Look("finite differences", "#009E73", "D"),
    "denoising": Look("denoising", "#D55E00", "v"),
    "curvature_propagation": Look("curvature propagation", "#CC79A7", "P"),
    "approximate_backprop": Look("approximate backpropagation", "#E69F00", "X"),
}
FAR = 4.0  # times as far from the exact objective as the next one
METRICS = {"score_loss": "test score loss", "log_likelihood": "test log-likelihood, nats"}
NOTE = (
    "Marks: medians over seeds, bars from the lowest to the highest; open where most values are not trusted. Two marks "
    "of one objective are the budgets of the same iterations and of the same processor time. Validation and test use "
    "the exact loss; their time is not counted. A triangle at the edge is a median beyond the axis."
)


class Point(NamedTuple):
    """One objective under one budget, over seeds."""

    seconds: float
    median: float
    low: float
    high: float
    trusted: bool


def draw(results: Results) -> Figure:
    """A column a dataset, a line an objective."""
    costs = results.frame(OBJECTIVE_COSTS)
    entries = [entry for entry in results.info.ordered() if (costs["dataset"] == entry.name).any()]
    width = max(2.9 * len(entries) + 0.4, 5.2)
    foot = Footnotes.of(results, width, NOTE)
    figure = Figure(figsize=(width, foot.height + 5.9))
    grid = figure.subplots(2, max(len(entries), 1), squeeze=False, sharex="col")
    if not entries:
        nothing(grid[0, 0], "no costs of training steps")
    headings(grid[0], entries)
    for column, entry in enumerate(entries):
        own = costs[costs["dataset"] == entry.name]
        for row, metric in enumerate(METRICS):
            _panel(grid[row, column], results, entry, own, metric)
        grid[1, column].set_xlabel("processor time of all steps, s")
    for row, label in enumerate(METRICS.values()):
        grid[row, 0].set_ylabel(label)
    foot.finish(figure, left=0.75, top=0.35, bottom=1.25, right=0.98, wspace=0.3, hspace=0.1)
    shown = [look for kind, look in LOOKS.items() if (costs["objective"] == kind).any()]
    foot.legend(figure, shown, 2 if width < 7 else 4)
    return figure


def _panel(axes: Axes, results: Results, entry: DatasetEntry, costs: pd.DataFrame, metric: str) -> None:
    """One metric on one dataset; an objective that is far off stands at the edge, with its median."""
    points = {
        kind: sorted(
            point
            for model in costs[costs["objective"] == kind]["model"].unique()
            if (point := _point(results, entry.name, model, costs[costs["model"] == model], metric)) is not None
        )
        for kind in LOOKS
    }
    spread = {kind: [y for p in found for y in (p.median, p.low, p.high)] for kind, found in points.items() if found}
    far = far_off(spread)
    for kind, found in points.items():
        if kind not in far:
            _line(axes, found, LOOKS[kind])
    axes.margins(0.08)
    axes.set_xlim(left=0, right=1.1 * max((p.seconds for found in points.values() for p in found), default=1.0))
    top = axes.get_ylim()[1]
    edge = axes.get_xaxis_transform()
    for i, kind in enumerate(sorted(far)):
        color, up = LOOKS[kind].color, points[kind][-1].median > top
        height, marker = (0.96 - 0.07 * i, "^") if up else (0.04 + 0.07 * i, "v")
        for point in points[kind]:
            axes.plot(point.seconds, height, marker, markersize=6, color=color, transform=edge)
        axes.annotate(
            f"{points[kind][-1].median:.3g}".replace("-", "\N{MINUS SIGN}"), (points[kind][-1].seconds, height),
            xycoords=edge, xytext=(6, 0), textcoords="offset points", va="center", fontsize=7, color=color,
        )  # fmt: skip


def _line(axes: Axes, points: Sequence[Point], look: Look) -> None:
    axes.plot([p.seconds for p in points], [p.median for p in points], color=look.color, linewidth=0.8, alpha=0.6)
    for p in points:
        axes.errorbar(
            p.seconds, p.median, yerr=[[p.median - p.low], [p.high - p.median]], color=look.color, marker=look.marker,
            markersize=5.5, linewidth=1.0, markerfacecolor=look.color if p.trusted else "white",
        )  # fmt: skip


def far_off(values: Mapping[str, Sequence[float]]) -> set[str]:
    """Objectives so far from the exact one's median, which is its first value, that they would flatten the others."""
    if not values.get("exact"):
        return set()
    exact = values["exact"][0]
    distance = {kind: max(abs(value - exact) for value in found) for kind, found in values.items()}
    kept = sorted(distance, key=lambda kind: distance[kind])
    far: set[str] = set()
    while len(kept) > 2 and distance[kept[-1]] > FAR * distance[kept[-2]] > 0:
        far.add(kept.pop())
    return far


def _point(results: Results, dataset: str, model: str, costs: pd.DataFrame, metric: str) -> Point | None:
    """Processor seconds and a metric of a model: medians, the lowest and highest value, and whether to trust it."""
    runs = results.runs(dataset, model, metric)
    seconds = (costs["iterations"] * costs["cpu_seconds_per_step"]).dropna()
    if not runs or seconds.empty:
        return None
    found = [run.value for run in runs.values()]
    trusted = sum(run.trusted for run in runs.values()) * 2 >= len(found)
    return Point(float(seconds.median()), median(found), min(found), max(found), trusted)
