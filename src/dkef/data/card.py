"""The card of a dataset: what a reader should know of it before its results."""

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from dkef.core.arrays import Array
from dkef.data.copies import EXACT, NEAR
from dkef.data.source import Removed
from dkef.data.splits import Splits

CONDITION_ROWS = 10_000


class Copies(NamedTuple):
    """How many rows are copies of a training row, before any noise was added."""

    exact: int
    near: int


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
    valid_copies: Copies  # rows that stand among the training rows too
    test_copies: Copies
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
        valid_copies=count_copies(splits.valid_copies),
        test_copies=count_copies(splits.test_copies),
        digest=splits.digest,
    )


def condition_number(splits: Splits) -> float:
    """Largest over smallest eigenvalue of the raw covariance, from singular values: it may be beyond 1e16."""
    x = splits.whitening.invert(splits.train[:CONDITION_ROWS])
    s = np.linalg.svd(x - x.mean(axis=0), compute_uv=False)
    return float((s[0] / s[-1]) ** 2)


def count_copies(kinds: Array | None) -> Copies:
    """Numbers of exact and near copies among rows of these kinds [n]."""
    found = np.zeros(0) if kinds is None else kinds
    return Copies(int((found == EXACT).sum()), int((found == NEAR).sum()))
