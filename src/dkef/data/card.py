"""A look at a dataset: the numbers of its card, and of the figure of its pairwise marginals."""

from dataclasses import dataclass

import numpy as np

from dkef.data.source import Removed
from dkef.data.splits import Splits
from dkef.models.protocol import Array

CONDITION_ROWS = 10_000


@dataclass(frozen=True)
class Card:
    """What a reader should know of a dataset before its results."""

    title: str
    subset_of: str | None
    rows: int  # in the three splits together
    dimension: int
    train: int
    valid: int
    test: int
    columns: tuple[str, ...]
    removed: tuple[Removed, ...]
    whitened: bool
    log_det: float  # add it to a log-likelihood to have it in raw units
    condition_number: float  # of the covariance of the training rows in raw units
    shared_rows: int  # test rows that equal a training row exactly, after all preprocessing
    digest: str


def card(splits: Splits) -> Card:
    """The card of a dataset, from its splits."""
    sizes = (len(splits.train), len(splits.valid), len(splits.test))
    return Card(
        title=splits.title,
        subset_of=splits.subset_of,
        rows=sum(sizes),
        dimension=splits.dimension,
        train=sizes[0],
        valid=sizes[1],
        test=sizes[2],
        columns=splits.columns,
        removed=splits.removed,
        whitened=splits.whitened,
        log_det=splits.whitening.log_det,
        condition_number=condition_number(splits),
        shared_rows=shared_rows(splits.train, splits.test),
        digest=splits.digest,
    )


def condition_number(splits: Splits) -> float:
    """Largest over smallest eigenvalue of the raw covariance, from singular values: it may be beyond 1e16."""
    x = splits.whitening.invert(splits.train[:CONDITION_ROWS])
    s = np.linalg.svd(x - x.mean(axis=0), compute_uv=False)
    return float((s[0] / s[-1]) ** 2)


def shared_rows(train: Array, test: Array) -> int:
    """How many test rows also occur in the training part, to the last bit."""
    known = {row.tobytes() for row in np.ascontiguousarray(train)}
    return sum(row.tobytes() in known for row in np.ascontiguousarray(test))


@dataclass(frozen=True)
class Marginals:
    """Histograms of the first coordinates and of their pairs over the training rows, as densities."""

    labels: tuple[str, ...]
    edges: Array  # [k, bins + 1]
    singles: Array  # [k, bins]
    pairs: Array  # [k, k, bins, bins]; pairs[i, j] has coordinate i along its first axis, i < j


def marginals(splits: Splits, coordinates: int = 6, bins: int = 40, tail: float = 0.002) -> Marginals:
    """What a figure of pairwise marginals shows; the outermost `tail` of each coordinate on either side is cut."""
    x = splits.train[:, :coordinates]
    k = x.shape[1]
    kind = "component {}" if splits.whitened else "{}"
    names = range(1, k + 1) if splits.whitened else splits.columns
    low, high = np.quantile(x, [tail, 1 - tail], axis=0)
    edges = np.linspace(low, high, bins + 1).T
    singles = np.stack([np.histogram(x[:, i], edges[i], density=True)[0] for i in range(k)])
    pairs = np.zeros((k, k, bins, bins))
    for i in range(k):
        for j in range(i + 1, k):
            pairs[i, j] = np.histogram2d(x[:, i], x[:, j], [edges[i], edges[j]], density=True)[0]
    return Marginals(tuple(kind.format(name) for name in list(names)[:k]), edges, singles, pairs)
