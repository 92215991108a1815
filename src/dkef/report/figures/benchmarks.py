"""Figures 3 and 6: squared FSSD, its p-value against DKEF, score loss and log-likelihood on the benchmark sets."""

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from dkef.core.arrays import Array
from dkef.report.figures.look import FAINT, INK, WARNING, look_of
from dkef.report.figures.panels import Footnotes, heading, nothing
from dkef.report.figures.scale import Window, edge_mark, window
from dkef.results.experiment import DatasetEntry
from dkef.results.lookup import Results, Run
from dkef.results.names import label_of, model_order

RUN_COLOR = (0.5, 0.1, 0.1)
SPREAD = 0.25  # runs of one model lie within this of its bar's middle


@dataclass(frozen=True)
class Row:
    """One row of panels: a metric and how its bars stand."""

    metric: str
    label: str
    base: float | None = None  # where bars start; None: at the panel's lower edge
    limits: tuple[float, float] | None = None


P_VALUE = Row("fssd_p_value", "$p$-value of FSSD test\n(near 0 favours {reference})", base=0.5, limits=(-0.04, 1.04))
ROWS = (
    Row("fssd2", "FSSD$^2$\n(lower is better)", base=0.0),
    P_VALUE,
    Row("score_loss", "score loss $\\hat J$\n(lower is better)"),
    Row("log_likelihood", "log-likelihood\n(higher is better)"),
)
NOTES = (
    "Bars: median over runs with a value; crosses: single runs; circles and hatching: log Z not to be trusted.",
    "Black lines: a log-likelihood less the bound on its bias (Proposition 1). Triangles: values beyond the panel. "
    "\u2715 n: invalid runs.",
)
BIAS_BOUND = "log_likelihood_bias_bound"
FIXED, TRAINED = "dkef_fixed_q0", "dkef"
FIXED_P_VALUE = replace(P_VALUE, metric="fssd_p_value_fixed_q0")  # against DKEF with fixed q0
NO_COPIES = "score_loss_no_copies"


def draw(results: Results) -> Figure:
    """Figure 3: q0 of DKEF is trained."""
    return _draw(results, left_out=FIXED, first=TRAINED)


def draw_fixed_q0(results: Results) -> Figure:
    """Figure 6: the same with q0 = N(0, 2^2 I) fixed, p-values against this DKEF."""
    fixed = {entry.name: replace(entry, reference=FIXED) for entry in results.info.datasets if FIXED in entry.models}
    datasets = tuple(fixed.get(entry.name, entry) for entry in results.info.datasets)
    results = replace(results, info=replace(results.info, datasets=datasets))
    return _draw(results, left_out=TRAINED, first=FIXED, rows=tuple(FIXED_P_VALUE if r is P_VALUE else r for r in ROWS))


def _draw(results: Results, left_out: str, first: str, rows: tuple[Row, ...] = ROWS) -> Figure:
    entries = results.info.ordered(synthetic=False)
    columns = max(len(entries), 1)
    width = max(2.15 * columns + 0.9, 6.5)
    foot = Footnotes.of(results, width, *NOTES, *_without_copies(results, entries))
    height = foot.height + 8.7
    figure = Figure(figsize=(width, height))
    grid = figure.subplots(len(rows), columns, squeeze=False)
    for column, entry in enumerate(entries):
        models = _models(entry, left_out, first)
        heading(grid[0, column], entry)
        for row, kind in enumerate(rows):
            panel(grid[row, column], results, entry, models, kind)
            name_models(grid[row, column], models, labels=row == len(rows) - 1)
    if not entries:
        for axes in grid[:, 0]:
            nothing(axes, "no benchmark set in this experiment")
    references = sorted({entry.reference for entry in entries if entry.reference})
    named = " or ".join(map(label_of, references)) or "the reference"
    for row, kind in enumerate(rows):
        grid[row, 0].set_ylabel(kind.label.format(reference=named))
    figure.align_ylabels(grid[:, 0])
    foot.finish(figure, left=0.95, top=0.5, bottom=0.75, right=0.99, wspace=0.38, hspace=0.12)
    return figure


def _without_copies(results: Results, entries: list[DatasetEntry]) -> list[str]:
    """Median score losses without test rows that are copies of training rows, where a set has such rows."""
    parts = []
    for entry in entries:
        medians = {m: results.median(entry.name, m, NO_COPIES).value for m in model_order(list(entry.models))}
        values = [f"{label_of(m)} {value:.3g}" for m, value in medians.items() if math.isfinite(value)]
        parts += [f"{entry.title}: {', '.join(values)}"] if values else []
    told_all = "Median score loss without test rows that are copies of training rows. "
    return [f"{told_all}{'; '.join(parts)}."] if parts else []


def _models(entry: DatasetEntry, left_out: str, first: str) -> list[str]:
    """DKEF first, other kernel models next, then the rest in the paper's order, the Gaussian floor last."""
    others = [model for model in model_order(list(entry.models)) if model not in (left_out, first)]

    def place(model: str) -> int:
        return 0 if model.startswith(("kef", "dkef")) else 2 if model == "gaussian" else 1

    return [m for m in (first,) if m in entry.models] + sorted(others, key=place)


def name_models(axes: Axes, models: list[str], labels: bool) -> None:
    """Models along the lower edge, by name where `labels` says so."""
    axes.set_xlim(-0.6, len(models) - 0.4)
    axes.set_xticks(range(len(models)))
    names = [label_of(model) if labels else "" for model in models]
    axes.set_xticklabels(names, rotation=45, ha="right", rotation_mode="anchor")
    axes.tick_params(axis="x", length=0 if not labels else 2)


def panel(axes: Axes, results: Results, entry: DatasetEntry, models: list[str], row: Row) -> None:
    """One metric of one dataset: a bar a model, a cross a run."""
    runs = {m: results.runs(entry.name, m, row.metric) for m in models}
    medians = {m: results.median(entry.name, m, row.metric) for m in models}
    everything = np.array([run.value for of_model in runs.values() for run in of_model.values()])
    if everything.size == 0 and not any(median.failed for median in medians.values()):
        nothing(axes, "the true density is not known" if row.metric == "fisher_divergence" else "no values")
        return
    zero = (0.0,) if row.metric == "fssd2" else ()
    middles = np.array([median.value for median in medians.values()])
    shown = Window(*row.limits) if row.limits else window(middles, everything, zero)
    axes.set_ylim(shown.low, shown.high)
    base = shown.low if row.base is None else row.base
    if row.base is not None:
        axes.axhline(row.base, color=FAINT, linewidth=0.6, zorder=1)
    for x, model in enumerate(models):
        if row.metric in (P_VALUE.metric, FIXED_P_VALUE.metric) and model == entry.reference:
            axes.text(
                x, row.base or 0.5, "reference", rotation=90, ha="center", va="center", fontsize=6, color=FAINT,
                bbox={"facecolor": "white", "edgecolor": "none", "pad": 1.5},
            )  # fmt: skip
            continue
        median = medians[model]
        _bar(axes, x, median.value, base, shown, look_of(model, x).color, hatched=not median.trusted)
        _runs(axes, x, runs[model], shown)
        if row.metric == "log_likelihood":
            _bias_lines(axes, x, runs[model], results.runs(entry.name, model, BIAS_BOUND), shown)
        _note_missing(axes, x, len(runs[model]), median.failed)


def _bar(axes: Axes, x: float, median: float, base: float, shown: Window, color: str, hatched: bool) -> None:
    """The median, from `base`; hatched where most of the runs behind it are not to be trusted."""
    if not math.isfinite(median):
        return
    top = min(max(median, shown.low), shown.high)
    axes.bar(
        x, top - base, bottom=base, width=0.8, color=color, alpha=0.45, linewidth=0, zorder=2,
        hatch="////" if hatched else None, edgecolor="white",
    )  # fmt: skip
    if shown.holds(median):
        axes.hlines(median, x - 0.4, x + 0.4, color=color, linewidth=1.6, zorder=3)
        return
    above = median > shown.high
    edge_mark(axes, x, above, 1)
    axes.text(
        x, 0.94 if above else 0.06, f"median {median:.3g}", transform=axes.get_xaxis_transform(),
        rotation=90, ha="center", va="top" if above else "bottom", fontsize=5.5, color=INK, zorder=6,
    )  # fmt: skip


def _positions(x: float, n: int) -> Array:
    return x + (np.linspace(-SPREAD, SPREAD, n) if n > 1 else np.zeros(n))


def _runs(axes: Axes, x: float, runs: Mapping[int, Run], shown: Window) -> None:
    values = np.array([run.value for run in runs.values()])
    inside = np.array([shown.holds(value) for value in values], dtype=bool)
    trusted = np.array([run.trusted for run in runs.values()], dtype=bool)
    where = _positions(x, len(values))
    for chosen, marker, face in ((inside & trusted, "x", RUN_COLOR), (inside & ~trusted, "o", "none")):
        if chosen.any():
            axes.scatter(
                where[chosen], values[chosen], marker=marker, s=11, color=RUN_COLOR, facecolors=face,
                linewidths=0.7, zorder=4,
            )  # fmt: skip
    for above, count in ((True, int((values > shown.high).sum())), (False, int((values < shown.low).sum()))):
        if count:
            edge_mark(axes, x, above, count, size=10)


def _bias_lines(axes: Axes, x: float, runs: Mapping[int, Run], bounds: Mapping[int, Run], shown: Window) -> None:
    """Lines from each estimate down to estimate minus bound: the true value lies between, if the bound holds."""
    for where, (seed, run) in zip(_positions(x, len(runs)), runs.items(), strict=True):
        if seed not in bounds or bounds[seed].value <= 0 or not shown.holds(run.value):
            continue
        end = max(run.value - bounds[seed].value, shown.low)
        axes.vlines(where, end, run.value, color="black", linewidth=0.8, zorder=5)
        if end > shown.low:
            axes.scatter([where], [end], marker="_", s=14, color="black", linewidths=0.8, zorder=5)


def _note_missing(axes: Axes, x: float, valid: int, invalid: int) -> None:
    """Say how many runs are invalid, or that there is no value at all."""
    text = f"\u2715{invalid}" if invalid else ("no runs" if valid == 0 else "")
    if text:
        axes.text(
            x, 0.03, text, transform=axes.get_xaxis_transform(), ha="center", va="bottom", fontsize=6.5,
            color=WARNING, rotation=90 if text == "no runs" else 0, zorder=7, fontweight="bold",
            bbox={"facecolor": "white", "alpha": 0.85, "linewidth": 0, "pad": 0.8},
        )  # fmt: skip
