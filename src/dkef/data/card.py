"""The card of a dataset: what a reader should know of it before its results."""

from dataclasses import dataclass

import numpy as np

from dkef.core.arrays import Array
from dkef.data.source import Removed
from dkef.data.splits import Splits

CONDITION_ROWS = 10_000


@dataclass(frozen=True)
class Card:
    """One record a dataset and seed; `dataclasses.asdict` makes it plain."""

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
