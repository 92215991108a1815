"""Time and memory of one training step against the dimension: where do random directions begin to pay?"""

import re
from collections.abc import Mapping

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from dkef.report.figures.look import Look
from dkef.report.figures.panels import Footnotes, nothing
from dkef.results.lookup import Results
from dkef.results.tables import OBJECTIVE_SCALING

LOOKS = {
    "exact": Look("exact, all coordinates", "#222222", "*"),
    "sliced_10": Look("sliced, 10 directions", "#009E73", "s"),
    "sliced_1": Look("sliced, 1 direction", "#0072B2", "o"),
}
NAME = re.compile(r"objectives_(?P<what>step_ms|products_ms|peak_mb)_(?P<kind>\w+)_d(?P<d>\d+)_w(?P<w>\d+)")
NOTE = (
    "One component, 300 inducing points, three layers with a skip, 100 + 100 rows, float32, one thread. Dotted: the "
    "matrix products of the step at the speed of one large product. Memory is the peak of the process, with TensorFlow."
)
Lines = dict[tuple[str, str, int], dict[int, float]]  # by quantity, kind and width: values by dimension


def draw(results: Results) -> Figure:
    """A column a width: milliseconds above, memory below."""
    lines = lines_of(results.tables.get(OBJECTIVE_SCALING.name, {}))
    widths = sorted({w for _, _, w in lines})
    width = max(2.5 * len(widths) + 0.6, 5.2)
    foot = Footnotes.of(results, width, NOTE)
    figure = Figure(figsize=(width, foot.height + 5.4))
    grid = figure.subplots(2, max(len(widths), 1), squeeze=False, sharex=True, sharey="row")
    if not widths:
        nothing(grid[0, 0], "no benchmark of objectives")
    for column, w in enumerate(widths):
        grid[0, column].set_title(f"width {w}")
        for kind, look in LOOKS.items():
            _line(grid[0, column], lines.get(("step_ms", kind, w), {}), look, "-")
            _line(grid[0, column], lines.get(("products_ms", kind, w), {}), look, ":")
            _line(grid[1, column], lines.get(("peak_mb", kind, w), {}), look, "-")
        grid[0, column].set_yscale("log")
        grid[1, column].set_xlabel("dimension")
    grid[1, 0].set_ylim(bottom=0)  # after all columns: a limit that is set before fixes the other one, too
    grid[0, 0].set_ylabel("processor time of a step, ms")
    grid[1, 0].set_ylabel("peak memory, MB")
    foot.finish(figure, left=0.75, top=0.35, bottom=0.9, right=0.98, wspace=0.12, hspace=0.1)
    foot.legend(figure, LOOKS.values(), 3)
    return figure


def lines_of(figures: Mapping[str, float]) -> Lines:
    """The benchmark's flat names as lines."""
    lines: Lines = {}
    for name, value in figures.items():
        if match := NAME.fullmatch(name):
            line = lines.setdefault((match["what"], match["kind"], int(match["w"])), {})
            line[int(match["d"])] = value
    return lines


def _line(axes: Axes, line: Mapping[int, float], look: Look, style: str) -> None:
    at = sorted(line)
    marker = look.marker if style == "-" else None
    axes.plot(at, [line[d] for d in at], color=look.color, linestyle=style, marker=marker, markersize=4)
    axes.set_xscale("log")
    axes.set_xticks(at, [str(d) for d in at])
    axes.minorticks_off()
