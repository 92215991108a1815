"""Rows that somebody passes in: lists, arrays and data frames become [n, d] in float64, or one sentence."""

from pathlib import Path
from typing import Any

import numpy as np

from dkef.core.arrays import Array
from dkef.core.errors import DkefError, one_line


class RowsError(DkefError, ValueError):
    """Rows that no density can be fitted to or evaluated at."""


def as_rows(x: Any, who: str) -> Array:
    """x as [n, d] in float64, every value finite; `who` begins the sentence if it cannot be."""
    if isinstance(x, str | Path):
        raise RowsError(f"{who}: the rows are the text {str(x)!r}; read the file first, such as by pandas.read_csv")
    if np.ma.isMaskedArray(x) and np.ma.getmaskarray(x).any():
        raise RowsError(f"{who}: the rows have masked values; remove or fill such rows")
    if hasattr(x, "toarray"):
        raise RowsError(f"{who}: the rows are a sparse matrix; pass an array, such as x.toarray()")
    _require_numeric_columns(x, who)
    try:
        given = np.asarray(x)
        if given.dtype.kind == "c":
            raise RowsError(f"{who}: the rows hold complex numbers; pass real and imaginary parts as columns")
        rows = given.astype(np.float64, order="C")  # sums round alike whatever the rows came in
    except (TypeError, ValueError) as error:
        if isinstance(error, RowsError):
            raise
        raise RowsError(f"{who}: the rows are not a table of numbers ({one_line(error)})") from None
    if rows.ndim != 2:
        raise RowsError(f"{who}: {_wrong_shape(rows)}")
    _require_finite(rows, column_names(x, rows.shape[1]), who)
    return rows


def column_names(x: Any, d: int) -> tuple[str, ...]:
    """Names of the columns of a data frame, or numbers from 0."""
    names = getattr(x, "columns", None)
    return tuple(map(str, names)) if names is not None else tuple(map(str, range(d)))


def require_dimension(rows: Array, d: int, who: str) -> None:
    if rows.shape[1] != d:
        raise RowsError(f"{who}: the rows have {_count(rows.shape[1], 'column')}, the density was fitted to {d}")


def require_whole(who: str, name: str, value: Any, least: int) -> None:
    """Stop unless an argument is a whole number that is large enough."""
    if isinstance(value, bool) or not isinstance(value, int | np.integer) or value < least:
        raise DkefError(f"{who}: {name} is {one_line(repr(value))}; allowed is a whole number >= {least}")


def require_fittable(rows: Array, names: tuple[str, ...], who: str) -> None:
    """Stop where no density can be fitted: too few rows, or columns that say nothing of their own."""
    n, d = rows.shape
    if n < d + 2:
        raise RowsError(
            f"{who}: {_count(n, 'row')} for {_count(d, 'column')} are too few; {d + 2} are the least that can be "
            "fitted and validated"
        )
    if constant := [name for name, column in zip(names, rows.T, strict=True) if column.min() == column.max()]:
        raise RowsError(f"{who}: constant in every row: {_listed(constant)}; drop what is constant")
    seen: dict[bytes, str] = {}
    for name, column in zip(names, rows.T, strict=True):
        twin = seen.setdefault(column.tobytes(), name)
        if twin != name:
            raise RowsError(f"{who}: columns {twin!r} and {name!r} are equal in every row; drop one")


def _require_numeric_columns(x: Any, who: str) -> None:
    """Name every column of text in a data frame, of which there may be several."""
    if not hasattr(x, "dtypes") or not hasattr(x, "columns"):
        return
    text = [str(name) for name, dtype in zip(x.columns, x.dtypes, strict=True) if dtype.kind not in "biuf"]
    if text:
        raise RowsError(f"{who}: not numbers: {_listed(text)}; drop or encode what is not a number")


def _require_finite(rows: Array, names: tuple[str, ...], who: str) -> None:
    bad = np.argwhere(~np.isfinite(rows))
    if len(bad):
        row, column = bad[0]
        found = "NaN" if np.isnan(rows[row, column]) else "an infinite value"
        more = f", the first of {len(bad)} such values" if len(bad) > 1 else ""
        raise RowsError(
            f"{who}: column {names[column]!r} has {found} in row {row} (from 0){more}; remove or fill such rows"
        )


def _wrong_shape(rows: Array) -> str:
    if rows.ndim == 1:
        return (
            f"the rows have one dimension ({_count(len(rows), 'number')}) where rows and columns are needed; use "
            "x.reshape(-1, 1) for one column, x.reshape(1, -1) for one row"
        )
    return f"the rows have the shape {rows.shape} where [rows, columns] is needed"


def _listed(names: list[str]) -> str:
    return f"{'column' if len(names) == 1 else 'columns'} {', '.join(map(repr, names))}"


def _count(n: int, what: str) -> str:
    return f"{n} {what}" if n == 1 else f"{n} {what}s"
