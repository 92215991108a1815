"""CSV tables in which every number survives exactly and equal tables are equal bytes."""

import csv
import io
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dkef.core.errors import DkefError, one_line
from dkef.core.files import AGAIN, require_noted, write_noted

if TYPE_CHECKING:  # a third of a second, and most jobs only write
    import pandas as pd


def write_table(path: Path, columns: Sequence[str], rows: Iterable[Mapping[str, Any]]) -> None:
    """Write rows under the given columns; None becomes an empty cell, a float its shortest exact text."""
    text = io.StringIO()
    writer = csv.DictWriter(text, columns, lineterminator="\n")
    writer.writeheader()
    writer.writerows({key: _cell(row[key]) for key in columns} for row in rows)
    write_noted(path, text.getvalue())


def read_table(path: Path, columns: Sequence[str], numbers: Sequence[str] = ()) -> "pd.DataFrame":
    """Read a table that must have exactly these columns, as text except for `numbers`."""
    import pandas as pd

    require_noted(path)
    try:
        table = pd.read_csv(path, dtype=str, keep_default_na=False)
    except FileNotFoundError:
        raise DkefError(f"{path} does not exist; run the stage that writes it") from None
    except (pd.errors.ParserError, pd.errors.EmptyDataError, UnicodeDecodeError, ValueError) as error:
        raise DkefError(f"{path} is not a table ({one_line(error)}); {AGAIN}") from None
    if list(table.columns) != list(columns):
        found = one_line(", ".join(map(str, table.columns)))
        raise DkefError(f"{path} has the columns {found}; expected are {', '.join(columns)}")
    try:
        return table.assign(**{name: as_numbers(table[name]) for name in numbers})
    except DkefError as error:
        raise DkefError(f"{path}: {error}; {AGAIN}") from None


def concatenate(
    paths: Iterable[Path], columns: Sequence[str], keys: Mapping[str, Callable[[str], Any]]
) -> "pd.DataFrame":
    """All rows of some tables as the texts they are, ordered by keys: columns, and how to order their texts.

    The order does not depend on that of the paths, and two rows with the same keys are refused.
    """
    import pandas as pd

    table = pd.concat([read_table(path, columns) for path in paths], ignore_index=True)
    try:
        order = pd.DataFrame({name: table[name].map(value) for name, value in keys.items()})
    except (KeyError, ValueError) as error:
        raise DkefError(
            f"one of the {len(list(paths))} tables has an unknown key ({one_line(error)}); {AGAIN}"
        ) from None
    if order.duplicated().any():
        twice = table.loc[order.duplicated(), list(keys)].iloc[0]
        raise DkefError(f"two rows for {', '.join(f'{key} {one_line(text)}' for key, text in twice.items())}")
    return table.loc[order.sort_values(list(keys)).index].reset_index(drop=True)


def as_numbers(texts: Iterable[str]) -> list[float]:
    """Numbers from their texts, to the last bit, which the parser of pandas does not promise; "" becomes NaN."""
    try:
        return [float(text) if text else float("nan") for text in texts]
    except ValueError as error:
        raise DkefError(f"text stands where a number is needed ({one_line(error)})") from None


def _cell(value: Any) -> str:
    if value is None:
        return ""
    return repr(float(value)) if isinstance(value, float) else str(value)
