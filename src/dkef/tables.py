"""CSV tables in which every number survives exactly and equal tables are equal bytes."""

import csv
import io
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import pandas as pd

from dkef.errors import DkefError
from dkef.files import write_text


def write_table(path: Path, columns: Sequence[str], rows: Iterable[Mapping[str, Any]]) -> None:
    """Write rows under the given columns; None becomes an empty cell, a float its shortest exact text."""
    text = io.StringIO()
    writer = csv.DictWriter(text, columns, lineterminator="\n")
    writer.writeheader()
    writer.writerows({key: _cell(row[key]) for key in columns} for row in rows)
    write_text(path, text.getvalue())


def read_table(path: Path, columns: Sequence[str], numbers: Sequence[str] = ()) -> pd.DataFrame:
    """Read a table that must have exactly these columns, as text except for `numbers`; an empty cell there is NaN.

    Python's own float() reads every number back to the last bit, which the default parser of pandas does not promise.
    """
    try:
        table = pd.read_csv(path, dtype=str, keep_default_na=False)
    except FileNotFoundError:
        raise DkefError(f"{path} does not exist; run the stage that writes it") from None
    except (pd.errors.ParserError, pd.errors.EmptyDataError, UnicodeDecodeError) as error:
        raise DkefError(f"{path} is not a table ({error}); delete it and run its stage again") from None
    if list(table.columns) != list(columns):
        raise DkefError(f"{path} has the columns {', '.join(table.columns)}; expected are {', '.join(columns)}")
    for name in numbers:
        table[name] = [float(text) if text else float("nan") for text in table[name]]
    return table


def _cell(value: Any) -> str:
    if value is None:
        return ""
    return repr(float(value)) if isinstance(value, float) else str(value)
