"""Points of several metrics, a column a dataset: Figures 3 and 6 on the benchmark sets, and ablations.

Figures 3 and 6 show squared FSSD, its p-value against DKEF, score loss and log-likelihood. An ablation varies one
choice and holds everything else: all metrics of all variants.
"""

import math
import textwrap
from collections.abc import Mapping, Sequence
from dataclasses import replace

from matplotlib.figure import Figure

from dkef.report.figures.legend import draw_legend, legend_height
from dkef.report.figures.panels import Footnotes, headings, nothing
from dkef.report.figures.points import (
    INTERVALS,
    OF_ONE_RUN,
    Row,
    name_models,
    name_of,
    names_height,
    one_run_each,
    panel,
    run_counts,
)
from dkef.results.experiment import DatasetEntry
from dkef.results.lookup import Results
from dkef.results.names import label_of, model_order
from dkef.results.tables import METRICS

FSSD = Row("fssd2", "FSSD$^2$\n(lower is better)", line=0.0)
P_VALUE = Row(
    "fssd_p_value", "$p$-value of FSSD test\n(near 0 favours {reference})", line=0.5, limits=(-0.04, 1.04),
    has_reference=True,
)  # fmt: skip
SCORE_LOSS = Row("score_loss", "score loss $\\hat J$\n(lower is better)")
FISHER = Row("fisher_divergence", "Fisher divergence\n(lower is better)", line=0.0)
LIKELIHOOD = Row("log_likelihood", "log-likelihood\n(higher is better)")
FIXED, TRAINED = "dkef_fixed_q0", "dkef"
NO_COPIES = "score_loss_no_copies"
LABEL = 26  # letters beside a panel: its height
MOST_NAMED = 6  # variants that a caption names; of more it gives the number


def draw(results: Results) -> Figure:
    """Figure 3: q0 of DKEF is trained."""
    return _draw_benchmark(results, left_out=FIXED, first=TRAINED, p_value=P_VALUE)


def draw_fixed_q0(results: Results) -> Figure:
    """Figure 6: the same with q0 = N(0, 2^2 I) fixed, p-values against this DKEF."""
    datasets = tuple(replace(entry, reference=FIXED) for entry in results.info.datasets)
    results = replace(results, info=replace(results.info, datasets=datasets))
    return _draw_benchmark(results, TRAINED, FIXED, replace(P_VALUE, metric="fssd_p_value_fixed_q0"))


def _draw_benchmark(results: Results, left_out: str, first: str, p_value: Row) -> Figure:
    every = results.info.ordered(synthetic=False)
    entries = [entry for entry in every if entry.variant_of is None]
    models = {entry.name: _models(entry, left_out, first) for entry in entries}
    notes = [*_without_copies(results, entries, models), *_not_drawn(every)]
    size = max(2.15 * max(len(entries), 1) + 0.9, 6.5), 7.95
    rows = [FSSD, p_value, SCORE_LOSS, LIKELIHOOD]
    return _draw(
        results, models, rows, size, notes, "no benchmark set in this experiment",
        top=0.5, right=0.99, wspace=0.38, hspace=0.12,
    )  # fmt: skip


def draw_ablation(results: Results) -> Figure:
    """A column a dataset, a row a metric that the experiment has, a point a variant in the experiment's own order."""
    models = {entry.name: entry.models for entry in results.info.ordered()}
    present = set(results.frame(METRICS)["metric"])
    rows = [row for row in (SCORE_LOSS, FSSD, FISHER, LIKELIHOOD) if row.metric in present]
    widest = max([*map(len, models.values()), 3])
    size = max(0.42 * widest + 1.0, 1.9) * max(len(models), 1) + 0.9, 1.75 * max(len(rows), 1) + 0.5
    return _draw(
        results, models, rows, size, [], "no results to compare", top=0.45, right=0.985, wspace=0.4, hspace=0.14
    )


def _draw(
    results: Results, models: Mapping[str, Sequence[str]], rows: Sequence[Row], size: tuple[float, float],
    notes: Sequence[str], empty: str, **spaces: float,
) -> Figure:  # fmt: skip
    """The models of each dataset, a row a metric; `size` is in inches, without what stands below the panels."""
    width, height = size
    entries = [entry for entry in results.info.ordered() if entry.name in models]
    single = one_run_each(results, models)
    foot = Footnotes.of(results, width, OF_ONE_RUN if single else INTERVALS, *notes)
    counts = {entry.name: run_counts(results, entry, models[entry.name]) for entry in entries}
    names = [name_of(model, counts[dataset][1]) for dataset, shown in models.items() for model in shown]
    below = names_height(names) + legend_height(width, single)
    figure = Figure(figsize=(width, foot.height + below + height))
    grid = figure.subplots(max(len(rows), 1), max(len(entries), 1), squeeze=False)
    headings(grid[0], entries, [counts[entry.name][0] for entry in entries])
    for column, entry in enumerate(entries):
        notes_on_models = counts[entry.name][1]
        for r, row in enumerate(rows):
            panel(grid[r, column], results, entry, models[entry.name], row)
            name_models(grid[r, column], models[entry.name], labels=r == len(rows) - 1, notes=notes_on_models)
    if not entries or not rows:
        for axes in grid[:, 0]:
            nothing(axes, empty)
    references = sorted({entry.reference for entry in entries if entry.reference})
    named = " or ".join(map(label_of, references)) or "the reference"
    for axes, row in zip(grid[:, 0], rows, strict=False):
        lines = row.label.format(reference=named).splitlines()
        axes.set_ylabel("\n".join(textwrap.fill(line, LABEL) for line in lines))
    figure.align_ylabels(grid[:, 0])
    foot.finish(figure, left=0.95, bottom=below, **spaces)
    draw_legend(figure, foot.height, single)
    return figure


def _without_copies(results: Results, entries: list[DatasetEntry], models: Mapping[str, list[str]]) -> list[str]:
    """Median score losses without test rows that are copies of training rows, where a set has such rows."""
    parts = []
    for entry in entries:
        medians = {m: results.median(entry.name, m, NO_COPIES).value for m in models[entry.name]}
        values = [f"{label_of(m)} {value:.3g}" for m, value in medians.items() if math.isfinite(value)]
        parts += [f"{entry.title}: {', '.join(values)}"] if values else []
    told_all = "Median score loss without test rows that are copies of training rows. "
    return [f"{told_all}{'; '.join(parts)}."] if parts else []


def _not_drawn(entries: list[DatasetEntry]) -> list[str]:
    """Variants that only some sets have, and variants of sets: tables show them."""
    models = dict.fromkeys(label_of(m) for entry in entries for m in entry.beside if m in entry.models)
    names = [*(entry.title for entry in entries if entry.variant_of), *models]
    told = ", ".join(names) if len(names) <= MOST_NAMED else f"{len(names)} variants of sets and models, see the tables"
    return [f"Not drawn: {told}."] if names else []


def _models(entry: DatasetEntry, left_out: str, first: str) -> list[str]:
    """DKEF first, other kernel models next, then the rest in the paper's order, the Gaussian floor last."""
    hidden = {left_out, first, *entry.beside}
    others = [model for model in model_order(list(entry.models)) if model not in hidden]

    def place(model: str) -> int:
        return 0 if model.startswith(("kef", "dkef")) else 2 if model == "gaussian" else 1

    return [m for m in (first,) if m in entry.models] + sorted(others, key=place)
