"""One choice varied, everything else held: all metrics of all variants, set by set."""

from matplotlib.figure import Figure

from dkef.report.figures.benchmarks import Row, name_models, panel
from dkef.report.figures.panels import Footnotes, heading, nothing
from dkef.results.lookup import Results
from dkef.results.names import label_of
from dkef.results.tables import METRICS

NOTE = "Bars: median; crosses: single runs; circles: log Z not to be trusted; \u2715 n: invalid runs."
ROWS = (
    Row("score_loss", "score loss $\\hat J$\n(lower is better)"),
    Row("fssd2", "FSSD$^2$\n(lower is better)", base=0.0),
    Row("fisher_divergence", "Fisher divergence\n(lower is better)", base=0.0),
    Row("log_likelihood", "log-likelihood\n(higher is better)"),
)


def draw(results: Results) -> Figure:
    """A column a dataset, a row a metric that the experiment has, a bar a variant in the experiment's own order."""
    entries = results.info.ordered()
    present = set(results.frame(METRICS)["metric"])
    rows = [row for row in ROWS if row.metric in present]
    shape = max(len(rows), 1), max(len(entries), 1)
    widest = max([len(entry.models) for entry in entries] + [3])
    width = max(0.42 * widest + 1.0, 1.9) * shape[1] + 0.9
    foot = Footnotes.of(results, width, NOTE)
    names = max((len(label_of(model)) for entry in entries for model in entry.models), default=0)
    names_height = max(0.95, 0.25 + 0.037 * names)  # they stand at 45 degrees
    height = 1.75 * shape[0] + foot.height + names_height + 0.5
    figure = Figure(figsize=(width, height))
    grid = figure.subplots(*shape, squeeze=False)
    for column, entry in enumerate(entries):
        heading(grid[0, column], entry)
        for r, row in enumerate(rows):
            panel(grid[r, column], results, entry, list(entry.models), row)
            name_models(grid[r, column], list(entry.models), labels=r == len(rows) - 1)
    if not entries or not rows:
        nothing(grid[0, 0], "no results to compare")
    for r, row in enumerate(rows):
        grid[r, 0].set_ylabel(row.label)
    figure.align_ylabels(grid[:, 0])
    foot.finish(figure, left=0.95, top=0.45, bottom=names_height, right=0.985, wspace=0.4, hspace=0.14)
    return figure
