"""Draw a figure in the common style and save it.

The same inputs give the same bytes: no date, no version of the drawing library and no random name goes into a file.
"""

from pathlib import Path

import matplotlib as mpl
from matplotlib.figure import Figure

from dkef.core.errors import DkefError
from dkef.core.files import whole_file
from dkef.report.figures.catalogue import find
from dkef.report.figures.look import STYLE
from dkef.results.lookup import Results

# What a format would otherwise fill with a date or a program's name.
METADATA: dict[str, dict[str, None]] = {
    ".pdf": {"CreationDate": None, "ModDate": None, "Producer": None, "Creator": None},
    ".png": {"Software": None},
}


def draw(name: str, results: Results) -> Figure:
    """The figure of a name, drawn in the common style."""
    with mpl.rc_context():
        mpl.rcdefaults()
        mpl.rcParams.update(STYLE)
        figure: Figure = find(name).drawing()(results)
        return figure


def save(figure: Figure, path: Path) -> None:
    """Write a figure as PDF or PNG, by the path's ending."""
    if path.suffix not in METADATA:
        raise DkefError(f"{path}: figures are written as {' or '.join(METADATA)}")
    with mpl.rc_context(STYLE), whole_file(path) as scratch:
        figure.savefig(scratch, format=path.suffix[1:], metadata=METADATA[path.suffix])
