"""From a raw table to splits, in the paper's order: columns, duplicates, shuffle, split, noise, whitening."""

import math
from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from dkef.config.schema.dataset import Dataset, Preprocessing
from dkef.core.arrays import Array
from dkef.core.errors import DkefError
from dkef.core.provenance import array_digest, canonical, config_digest
from dkef.data.copies import copies_among, groups_of_copies
from dkef.data.source import RawTable, Removed
from dkef.data.splits import Splits
from dkef.data.whitening import Whitening

Streams = Callable[[str], np.random.Generator]


def prepare(table: RawTable, dataset: Dataset, stream: Streams) -> Splits:
    """Splits of a raw table; `stream` gives the random numbers for "shuffle" and for "dequantise".

    The authors also permute the columns before whitening. That changes no more than the signs of the whitened
    coordinates, which Whitening fixes, so the columns stay in place here.
    """
    steps = dataset.preprocessing
    check_values(table)
    if steps.max_correlation is not None:
        table = drop_correlated(table, steps.max_correlation)
    check_distinct_columns(table)
    rows, removed = distinct_rows(table.values) if steps.drop_duplicate_rows else (np.arange(len(table.values)), ())
    rows, sizes = arrange(rows, table, steps, stream("shuffle"))
    ends = (sizes.train, sizes.train + sizes.valid)
    x, columns, removed = table.values[rows], table.columns, table.removed + removed
    del table  # the largest sets count their copies in memory
    raw_train, raw_valid, raw_test = np.split(x, ends)
    valid_copies, test_copies = (copies_among(raw_train, part) for part in (raw_valid, raw_test))
    if steps.dequantise_gaps > 0:
        x = dequantise(x, steps.dequantise_gaps, stream("dequantise"))
    how = [steps.whiten, steps.whiten_on, steps.whiten_rows] if steps.whiten else [False]
    digest = config_digest(canonical([array_digest(x, rows), ends, how]))
    whitening = choose_whitening(x, sizes, steps)
    train, valid, test = (whitening.apply(part) if steps.whiten else part for part in np.split(x, ends))
    train_rows, valid_rows, test_rows = np.split(rows, ends)
    return Splits(
        title=dataset.title,
        train=train,
        valid=valid,
        test=test,
        train_rows=train_rows,
        valid_rows=valid_rows,
        test_rows=test_rows,
        whitening=whitening,
        whitened=steps.whiten,
        columns=columns,
        removed=removed,
        digest=digest,
        subset_of=dataset.subset_of,
        valid_copies=valid_copies,
        test_copies=test_copies,
    )


def check_values(table: RawTable) -> None:
    """Stop where values are not finite or columns never change, and say all of it."""
    x, problems = table.values, []
    for column, name in zip(x.T, table.columns, strict=True):
        bad = np.flatnonzero(~np.isfinite(column))
        if len(bad):
            found = "a missing value (NaN)" if np.isnan(column[bad[0]]) else "an infinite value"
            problems.append(f"column {name!r} has {found} in row {bad[0] + 1}; remove the row or drop the column")
        elif column.min() == column.max():
            problems.append(f"column {name!r} is constant ({column[0]:g} in every row); drop it in dataset.source.drop")
    if problems:
        raise DkefError("; ".join(problems))


def check_distinct_columns(table: RawTable) -> None:
    """Stop where two columns hold the same numbers."""
    seen: dict[str, str] = {}
    for column, name in zip(table.values.T, table.columns, strict=True):
        twin = seen.setdefault(array_digest(column), name)
        if twin != name:
            raise DkefError(f"columns {twin!r} and {name!r} are equal in every row; drop one in dataset.source.drop")


def drop_correlated(table: RawTable, limit: float) -> RawTable:
    """Delete, again and again, the first column that has |correlation| > limit with any other."""
    correlation = np.abs(np.corrcoef(table.values, rowvar=False))
    np.fill_diagonal(correlation, 0.0)
    left, removed = list(range(len(table.columns))), []
    while True:
        among = correlation[np.ix_(left, left)]
        crowded = np.flatnonzero((among > limit).any(axis=1))
        if not len(crowded):
            break
        first = crowded[0]
        partner = table.columns[left[among[first].argmax()]]
        reason = f"correlation {among[first].max():.3f} with {partner}, above {limit:g}"
        removed.append(Removed("column", table.columns[left[first]], reason))
        del left[first]
    columns = tuple(table.columns[i] for i in left)
    return RawTable(table.values[:, left], columns, table.removed + tuple(removed))


def distinct_rows(x: Array) -> tuple[Array, tuple[Removed, ...]]:
    """Index of the first copy of every distinct row, in order, and how many copies go."""
    first = np.sort(np.unique(x, axis=0, return_index=True)[1])
    copies = len(x) - len(first)
    return first, (Removed("rows", str(copies), "copies of earlier rows"),) if copies else ()


def median_gaps(x: Array) -> Array:
    """Median distance between neighbouring distinct values of each column; [d]."""
    gaps = []
    for column in x.T:
        steps = np.diff(np.sort(column))
        # Decimal numbers that are equal on paper may differ in their last bits: not a gap.
        dust = 1e-12 * np.abs(column).max()
        gaps.append(np.median(steps[steps > dust]))
    return np.array(gaps)


def dequantise(x: Array, support: float, rng: np.random.Generator) -> Array:
    """Add uniform noise whose support, centred at 0, is so many median gaps wide: 1 in the paper, 2 in the code."""
    noisy: Array = x + support * median_gaps(x) * (rng.random(x.shape) - 0.5)
    return noisy


class Sizes(NamedTuple):
    train: int
    valid: int
    test: int


def arrange(rows: Array, table: RawTable, steps: Preprocessing, rng: np.random.Generator) -> tuple[Array, Sizes]:
    """Row numbers in the order train, valid, test, and how many of them each part gets."""
    n, d = len(rows), table.values.shape[1]
    if steps.split_by == "source":
        if table.test_rows is None:
            raise DkefError(
                "dataset.preprocessing.split_by is source, but this source sets no test rows aside; "
                "allowed for it are rows and distinct_rows"
            )
        own_test = int((rows >= len(table.values) - table.test_rows).sum())
        return rows, split_sizes(n, d, steps, own_test)
    sizes = split_sizes(n, d, steps)
    if steps.split_by == "rows":
        return rng.permutation(rows), sizes
    return _by_distinct_rows(rows, table.values, sizes, rng)


def _by_distinct_rows(rows: Array, x: Array, sizes: Sizes, rng: np.random.Generator) -> tuple[Array, Sizes]:
    """A random order in which all copies of a row are on one side of each cut, and the sizes that it gives.

    The cuts move towards the start to the next edge between two groups, hence by fewer rows than a group has.
    """
    groups = groups_of_copies(x[rows])
    place = rng.permutation(groups.max() + 1)[groups]  # of its group in the new order, for each row
    order = np.argsort(place, kind="stable")
    starts = np.flatnonzero(np.diff(place[order], prepend=-1))
    test = int(starts[starts <= sizes.train + sizes.valid].max())
    valid = int(starts[starts <= max(0, min(sizes.train, test - 1))].max())
    if (left := int((starts < valid).sum())) <= x.shape[1]:
        raise DkefError(
            f"the {len(starts)} distinct rows are too few for split_by: distinct_rows, which leaves {left} of them for "
            f"training where {x.shape[1]} columns need {x.shape[1] + 1}; use split_by: rows or more rows"
        )
    parts = [
        rng.permutation(part) for part in np.split(rows[order], (valid, test))
    ]  # copies need not stand side by side
    return np.concatenate(parts), Sizes(*map(len, parts))


def split_sizes(n: int, d: int, steps: Preprocessing, own_test: int | None = None) -> Sizes:
    """How many of n rows each part gets; own_test is the number of test rows where the source decides it."""
    wanted = own_test if own_test is not None else steps.test_rows
    test = wanted if wanted is not None else _share(steps.test_fraction, n)
    valid = min(_share(steps.valid_fraction, n - test), steps.valid_max)
    train = n - test - valid
    if test < 1 or valid < 1 or train <= d:
        raise DkefError(
            f"{n} rows are too few: the split gives {max(train, 0)} training, {max(valid, 0)} validation and {test} "
            f"test rows, and {d} columns need at least {d + 1}, 1 and 1; use more rows or other split fractions"
        )
    return Sizes(train, valid, test)


def _share(fraction: float, n: int) -> int:
    """Whole part of fraction * n, where 0.29 * 100 = 28.999... counts as 29."""
    return math.floor(fraction * n + 1e-9)


def choose_whitening(x: Array, sizes: Sizes, steps: Preprocessing) -> Whitening:
    """Whitening from the first rows of the shuffled table: of the training part, or (as in the code) of all of it."""
    if not steps.whiten:
        return Whitening.identity(x.shape[1])
    rows = x if steps.whiten_on == "all" else x[: sizes.train]
    return Whitening.fit(rows[: steps.whiten_rows], rows.mean(axis=0))
