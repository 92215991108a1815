"""Do rows fall into separate parts? Score matching cannot weigh those against each other; a mixture can."""

import numpy as np
from scipy.sparse.csgraph import connected_components

from dkef.core.arrays import Array
from dkef.core.errors import DkefError
from dkef.data.whitening import Whitening

NEIGHBOURS = 10  # of the graph in which a mixture finds its clusters
MOST_ROWS = 5000  # looked at; the gaps that matter show in as many
MOST_PARTS = 10
LEAST_SHARE = 0.05  # of the rows, and
LEAST_ROWS, ROWS_PER_COLUMN = 100, 10  # so that each part can be fitted and validated


def separate_parts(x: Array) -> tuple[int, ...]:
    """Numbers of rows in the parts of x [n, d] that no near neighbours connect; all in one where it is not clear.

    It is not clear with tiny parts (a few outliers, copies of a row), with very many, and with parts that have a
    constant column or too few rows to be fitted each for itself.
    """
    from sklearn.neighbors import kneighbors_graph

    x = x[:MOST_ROWS]
    whole = (len(x),)
    if len(x) <= NEIGHBOURS:
        return whole
    graph = kneighbors_graph(x, NEIGHBOURS, include_self=True)
    _, labels = connected_components(graph, directed=False)
    sizes = np.bincount(labels)
    least = max(LEAST_SHARE * len(x), LEAST_ROWS, ROWS_PER_COLUMN * x.shape[1])
    if len(sizes) > MOST_PARTS or sizes.min() < least:
        return whole
    clear = all(_has_spread(x[labels == label]) for label in range(len(sizes)))
    return tuple(map(int, sizes)) if clear else whole


def _has_spread(rows: Array) -> bool:
    """Whether no column is constant or a combination of others, so that a density of its own can be fitted."""
    if (rows.min(axis=0) == rows.max(axis=0)).any():
        return False
    try:
        Whitening.fit(rows, rows.mean(axis=0))
    except DkefError:
        return False
    return True
