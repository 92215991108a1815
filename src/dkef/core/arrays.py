"""The type of every array in this package, how to work on many rows in blocks, and sums of exponentials."""

from collections.abc import Callable, Iterable, Iterator
from typing import Any

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[Any]


def blocks(n: int, rows: int) -> Iterator[slice]:
    """0..n in consecutive slices of at most `rows`."""
    return (slice(start, min(start + rows, n)) for start in range(0, n, rows))


def in_blocks(function: Callable[[Array], Iterable[npt.ArrayLike]], x: Array, rows: int) -> tuple[Array, ...]:
    """The arrays that a function gives for x [n, d], computed for some rows at a time; all in float64."""
    x = np.asarray(x, dtype=np.float64)
    parts = [function(x[own]) for own in blocks(len(x), rows)] or [function(x)]  # even of no rows
    return tuple(np.concatenate(column, dtype=np.float64) for column in zip(*parts, strict=True))


def log_sum_exp(x: npt.ArrayLike, axis: int | None = None, keepdims: bool = False) -> Any:
    """log sum exp(x) over an axis, or over all of x; -inf of no terms, and where all are.

    SciPy has it too, but takes a tenth of a second to load: as long as a short job may compute.
    """
    x = np.asarray(x)
    largest = x.max(axis=axis, keepdims=True, initial=-np.inf)
    shift = np.where(np.isfinite(largest), largest, 0)
    with np.errstate(divide="ignore"):
        total = shift + np.log(np.exp(x - shift).sum(axis=axis, keepdims=True))
    return total if keepdims else total.squeeze(axis)[()]
