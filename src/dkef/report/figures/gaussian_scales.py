"""Figure 1: the one-dimensional mixture, fitted with one width everywhere and with a learned kernel."""

import math

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from dkef.report.figures.look import INK, TRUTH
from dkef.report.figures.panels import Footnotes, nothing
from dkef.results.experiment import DatasetEntry
from dkef.results.lookup import Results
from dkef.results.names import FIGURE_1, label_of, model_order
from dkef.results.read import Key

FIT = "#D55E00"
KERNEL_SCALE = 0.5  # kernels reach 1, the density about 0.6


def draw(results: Results) -> Figure:
    """One panel a model, shared axes, truth and three kernels in each."""
    entry = _entry(results)
    models = model_order(entry.models) if entry else []
    shown = [m for m in models if m.startswith(("kef", "dkef"))] or models
    width = max(4.2 * len(shown), 6.0)
    seed = median_seed(results, entry, shown[0]) if entry and shown else 0
    foot = Footnotes.of(results, width, "Dotted: half the kernel around -1, 0 and 1.", *_notes(entry, shown, seed))
    height = foot.height + 2.9
    figure = Figure(figsize=(width, height))
    panels = figure.subplots(1, max(len(shown), 1), squeeze=False, sharex=True, sharey=True)[0]
    if entry is None or not shown:
        nothing(panels[0], "no one-dimensional set in this experiment")
        return figure
    for axes, model in zip(panels, shown, strict=True):
        _panel(axes, results, (entry.name, model, seed))
        axes.set_xlabel("$x$")
    panels[0].set_ylabel("$p(x)$,  ½ $k(\\cdot, x)$")
    panels[0].set_ylim(bottom=0)
    foot.finish(figure, left=0.55, top=0.5, bottom=0.45, right=0.99, wspace=0.06)
    return figure


def _entry(results: Results) -> DatasetEntry | None:
    """The experiment's one-dimensional set, that of Figure 1 first."""
    drawn = {key: grid for key, grid in results.grids.items() if "log_density" in grid}
    flat = {dataset for (dataset, _, _), grid in drawn.items() if grid["log_density"].ndim == 1}
    found = [entry for entry in results.info.datasets if entry.name in flat]
    return next((entry for entry in found if set(FIGURE_1) & set(entry.models)), found[0] if found else None)


def _panel(axes: Axes, results: Results, key: Key) -> None:
    grid = results.grids.get(key)
    label = label_of(key[1])
    if grid is None:
        nothing(axes, f"{label}: no result")
        return
    x = grid["axis"]
    if "true_log_density" in grid:
        axes.plot(x, np.exp(grid["true_log_density"]), color=TRUTH, linewidth=2, label="true density")
    axes.plot(x, np.exp(grid["log_density"]), color=FIT, linewidth=1.8, linestyle="--", label=label)
    for i, kernel in enumerate(grid.arrays.get("kernel", [])):
        axes.plot(
            grid["kernel_axis"], KERNEL_SCALE * kernel, color=INK, linestyle=":", linewidth=1.1, alpha=0.7,
            label="kernel" if i == 0 else None,
        )  # fmt: skip
    axes.set_xlim(x[0], x[-1])
    axes.set_title(_title(results, key, label), fontsize=7.5)
    axes.legend(loc="upper right", frameon=False)


def median_seed(results: Results, entry: DatasetEntry, model: str) -> int:
    """The seed whose mass on the sharp component is the median (the lower of two) of a model; else the first seed."""
    masses = {seed: run.value for seed, run in results.runs(entry.name, model, "sharp_mass").items()}
    ordered = sorted(masses, key=lambda seed: masses[seed])
    return ordered[(len(ordered) - 1) // 2] if ordered else entry.seeds[0]


def _notes(entry: DatasetEntry | None, shown: list[str], seed: int) -> list[str]:
    if entry is None or not shown or len(entry.seeds) < 2:
        return []
    chosen = f"the one with the median mass of {label_of(shown[0])} on the sharp component"
    return [
        f"Seed {seed} of {len(entry.seeds)}, {chosen}; in brackets the range over seeds. "
        "All by quadrature. Fisher: half the Fisher divergence; sharp component: the mass within three of its "
        "deviations."
    ]


def _title(results: Results, key: Key, label: str) -> str:
    """The numbers of the very run that is drawn, with the range over seeds, and the truth's mass beside the model's."""
    parts = [_number(results, key, "kl_quadrature", "KL"), _number(results, key, "fisher_quadrature", "Fisher")]
    mass, truth = (
        _number(results, key, "sharp_mass", "sharp component"),
        results.grids[key].facts.get("true_sharp_mass"),
    )
    first = ", ".join(filter(None, parts))
    second = f"{mass}, truth {truth:.3f}" if mass and truth is not None else mass
    return "\n".join(filter(None, [f"{label}: {first}" if first else label, second]))


def _number(results: Results, key: Key, metric: str, name: str) -> str:
    """A metric of one run in words, with its range over seeds; nothing where the run has none."""
    run = results.run(key, metric)
    if not math.isfinite(run.value):
        return ""
    values = [other.value for other in results.runs(key[0], key[1], metric).values()]
    spread = f" [{min(values):#.3g}, {max(values):#.3g}]" if len(values) > 1 else ""
    return f"{name} {run.value:#.3g}{'' if run.trusted else '?'}{spread}"
