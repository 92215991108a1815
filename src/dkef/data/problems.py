"""All that is wrong with the columns of a text file, by a slow second reading, so that one edit is enough."""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

# What pandas takes for a missing value, beside an empty field.
MISSING = frozenset(
    [
        "#N/A",
        "#N/A N/A",
        "#NA",
        "-1.#IND",
        "-1.#QNAN",
        "-NaN",
        "-nan",
        "1.#IND",
        "1.#QNAN",
        "<NA>",
        "N/A",
        "NA",
        "NULL",
        "NaN",
        "None",
        "n/a",
        "nan",
        "null",
    ]
)


@dataclass
class Column:
    """What was found in a column so far; rows are counted from one."""

    name: str
    text: tuple[str, int] | None = None  # the first that is not a number
    infinite: int | None = None  # the first row with one
    missing: int | None = None  # the first row without a value
    all_missing: int = 0
    low: float = math.inf
    high: float = -math.inf

    def add(self, field: str, row: int) -> None:
        value = as_number(field)
        if value is None:
            self.text = self.text or (field, row)
        elif math.isnan(value):
            self.missing = self.missing or row
            self.all_missing += 1
        elif math.isinf(value):
            self.infinite = self.infinite or row
        else:
            self.low, self.high = min(self.low, value), max(self.high, value)

    def problems(self, missing_allowed: bool) -> list[str]:
        found = []
        if self.text:
            field, row = self.text
            found.append(f"text {field[:60]!r} in column {self.name!r}, data row {row}, where a number is needed")
        if self.infinite:
            found.append(f"an infinite value in column {self.name!r}, data row {self.infinite}")
        if self.missing and not missing_allowed:
            more = f" and {self.all_missing - 1} more" if self.all_missing > 1 else ""
            found.append(f"a missing value (NaN) in column {self.name!r}, data row {self.missing}{more}")
        return found

    @property
    def constant(self) -> bool:
        return self.low == self.high and not (self.text or self.infinite)


def all_problems(
    rows: Iterable[list[str]], names: Sequence[str], fields: Sequence[int], missing_allowed: bool
) -> list[str]:
    """What is wrong with each of some columns; nothing where no value is, whether or not a column is constant."""
    columns = [Column(name) for name in names]
    number = 0
    for number, row in enumerate((row for row in rows if row), start=1):
        for column, field in zip(columns, fields, strict=True):
            column.add(row[field] if field < len(row) else "", number)
    found = [problem for column in columns for problem in column.problems(missing_allowed)]
    if found and number > 1:
        found += [f"column {column.name!r} is constant ({column.low:g})" for column in columns if column.constant]
    return found


def as_number(text: str) -> float | None:
    """A field as a number, an empty one as NaN; None where it is neither."""
    try:
        return float(text)
    except ValueError:
        return math.nan if text.strip() in MISSING | {""} else None
