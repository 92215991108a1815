"""One choice varied, everything else held: all metrics of all variants, set by set."""

from matplotlib.figure import Figure

from dkef.report.figures.panels import Footnotes, heading, nothing
from dkef.report.figures.points import (
    INTERVALS,
    Row,
    draw_legend,
    legend_height,
    name_models,
    name_of,
    names_height,
    panel,
    run_counts,
)
from dkef.results.lookup import Results
from dkef.results.tables import METRICS

ROWS = (
    Row("score_loss", "score loss $\\hat J$\n(lower is better)"),
    Row("fssd2", "FSSD$^2$\n(lower is better)", line=0.0),
    Row("fisher_divergence", "Fisher divergence\n(lower is better)", line=0.0),
    Row("log_likelihood", "log-likelihood\n(higher is better)"),
)


def draw(results: Results) -> Figure:
    """A column a dataset, a row a metric that the experiment has, a point a variant in the experiment's own order."""
    entries = results.info.ordered()
    present = set(results.frame(METRICS)["metric"])
    rows = [row for row in ROWS if row.metric in present]
    shape = max(len(rows), 1), max(len(entries), 1)
    widest = max([len(entry.models) for entry in entries] + [3])
    width = max(0.42 * widest + 1.0, 1.9) * shape[1] + 0.9
    foot = Footnotes.of(results, width, INTERVALS)
    counts = {entry.name: run_counts(results, entry, entry.models) for entry in entries}
    names = [name_of(model, counts[entry.name][1]) for entry in entries for model in entry.models]
    below = names_height(names) + legend_height(width)
    height = 1.75 * shape[0] + foot.height + below + 0.5
    figure = Figure(figsize=(width, height))
    grid = figure.subplots(*shape, squeeze=False)
    for column, entry in enumerate(entries):
        note, notes = counts[entry.name]
        heading(grid[0, column], entry, note)
        for r, row in enumerate(rows):
            panel(grid[r, column], results, entry, entry.models, row)
            name_models(grid[r, column], entry.models, labels=r == len(rows) - 1, notes=notes)
    if not entries or not rows:
        nothing(grid[0, 0], "no results to compare")
    for r, row in enumerate(rows):
        grid[r, 0].set_ylabel(row.label)
    figure.align_ylabels(grid[:, 0])
    foot.finish(figure, left=0.95, top=0.45, bottom=below, right=0.985, wspace=0.4, hspace=0.14)
    draw_legend(figure, foot.height)
    return figure
