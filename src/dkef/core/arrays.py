"""The type of every array in this package, and how to work on many rows in blocks."""

from collections.abc import Iterator
from typing import Any

import numpy.typing as npt

Array = npt.NDArray[Any]


def blocks(n: int, rows: int) -> Iterator[slice]:
    """0..n in consecutive slices of at most `rows`."""
    return (slice(start, min(start + rows, n)) for start in range(0, n, rows))
