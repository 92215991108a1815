"""One choice varied, everything else held: all metrics of all variants, set by set."""

from matplotlib.figure import Figure

from dkef.figures.benchmarks import Row, name_models, panel
from dkef.figures.inputs import Inputs
from dkef.figures.panels import footnotes, heading, nothing

ROWS = (
    Row("score_loss", "score loss $\\hat J$\n(lower is better)"),
    Row("fssd2", "FSSD$^2$\n(lower is better)", base=0.0),
    Row("fisher_divergence", "Fisher divergence\n(lower is better)", base=0.0),
    Row("log_likelihood", "log-likelihood\n(higher is better)"),
)


def draw(inputs: Inputs) -> Figure:
    """A column a dataset, a row a metric that the experiment has, a bar a variant in the experiment's own order."""
    entries = inputs.request.ordered()
    present = set(inputs.metrics["metric"])
    rows = [row for row in ROWS if row.metric in present]
    shape = max(len(rows), 1), max(len(entries), 1)
    widest = max([len(entry.models) for entry in entries] + [3])
    figure = Figure(figsize=(max(0.42 * widest + 1.0, 1.9) * shape[1] + 0.9, 1.75 * shape[0] + 1.7))
    grid = figure.subplots(*shape, squeeze=False)
    for column, entry in enumerate(entries):
        heading(grid[0, column], entry)
        for r, row in enumerate(rows):
            panel(grid[r, column], inputs, entry, list(entry.models), row)
            name_models(grid[r, column], list(entry.models), labels=r == len(rows) - 1)
    if not entries or not rows:
        nothing(grid[0, 0], "no results to compare")
    for r, row in enumerate(rows):
        grid[r, 0].set_ylabel(row.label)
    figure.align_ylabels(grid[:, 0])
    width, height = figure.get_size_inches()
    figure.suptitle(inputs.request.title, fontsize=9, y=1 - 0.05 / height)
    figure.subplots_adjust(
        left=0.95 / width, right=0.985, top=1 - 0.62 / height, bottom=1.25 / height, wspace=0.4, hspace=0.14
    )
    footnotes(figure, inputs, "Bars: median over valid runs; crosses: single runs; \u2715 n: invalid runs.", y=0.01)
    return figure
