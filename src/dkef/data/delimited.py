"""Numbers from delimited text, plain or gzip, a chunk at a time, with one sentence for whatever is wrong with it."""

import csv
import gzip
import io
import zlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any, BinaryIO, cast

import numpy as np

from dkef.core.arrays import Array
from dkef.core.errors import DkefError, one_line
from dkef.data.problems import all_problems, as_number

CHUNK_ROWS = 50_000
# Preparing a table keeps at most three copies of it, so this keeps the whole stage below 1.5 GB.
MAX_TABLE_BYTES = 400_000_000


@dataclass(frozen=True)
class Layout:
    """How a file of numbers is written."""

    separator: str = ","  # "whitespace" stands for any run of blanks
    skip_lines: int = 0  # before the first row of numbers
    fields: int | None = None  # every row must have so many; None takes rows of any length
    max_rows: int | None = None  # stop after so many rows
    missing_allowed: bool = False  # as NaN


def open_raw(path: Path) -> BinaryIO:
    """Open a data file for reading, through gzip where its first bytes say so; refuse what is plainly not data."""
    try:
        with open(path, "rb") as file:
            start = file.read(512)
    except FileNotFoundError:
        raise DkefError(f"{path} does not exist; fetch it with `snakemake {path}` or put it there") from None
    except IsADirectoryError:
        raise DkefError(f"{path} is a folder; name a file") from None
    if not start.strip():
        raise DkefError(f"{path} is empty; delete it and fetch it again")
    if looks_like_html(start):
        raise DkefError(f"{path} is a web page, not data; delete it and fetch it again, or download it by hand")
    zipped = start[:2] == b"\x1f\x8b"
    return cast(BinaryIO, gzip.open(path, "rb")) if zipped else open(path, "rb")


def looks_like_html(start: bytes) -> bool:
    """Whether a file begins like a web page: what a server sends in place of a file that has moved."""
    text = start.removeprefix(b"\xef\xbb\xbf").lstrip().lower()
    return text.startswith((b"<!doctype", b"<html", b"<head", b"<?xml", b"<!--"))


def first_line(path: Path, separator: str) -> list[str]:
    """The fields of the first line, without quotes and surrounding blanks."""
    try:
        with open_raw(path) as stream:
            line = stream.readline().decode("utf-8-sig")
    except (EOFError, zlib.error, gzip.BadGzipFile, UnicodeDecodeError) as error:
        raise _broken(path, error) from None
    if separator == "whitespace":
        return line.split()
    try:
        return [field.strip() for field in next(csv.reader([line.strip()], delimiter=separator))]
    except (csv.Error, StopIteration) as error:
        raise _broken(path, error) from None


def read_chunks(path: Path, names: Sequence[str], fields: Sequence[int], layout: Layout) -> Iterator[Array]:
    """The fields at some positions of every row, as float64 [rows, len(fields)], CHUNK_ROWS rows at a time.

    `names` are the names of those fields, for messages.
    """
    import pandas as pd  # only where rows are read: sources are also imported while a workflow is planned

    try:
        with open_raw(path) as stream:
            for frame in pd.read_csv(stream, **_pandas_options(fields, layout)):
                if layout.fields not in (None, frame.shape[1]):
                    raise DkefError(
                        f"{path}: data rows have {frame.shape[1]} fields where the columns are "
                        f"{layout.fields}; check dataset.source.separator and the file"
                    )
                if not set(fields) <= set(frame.columns):
                    raise _too_short(path)
                chunk = frame[list(fields)].to_numpy()
                _require_finite(chunk, layout)
                yield chunk
    except pd.errors.EmptyDataError:
        raise DkefError(f"{path} has no rows after its first {layout.skip_lines} line(s)") from None
    except pd.errors.ParserError as error:
        raise DkefError(f"{path}: {one_line(error).rstrip('.')}; every row must have as many fields") from None
    except (EOFError, zlib.error, gzip.BadGzipFile, UnicodeDecodeError) as error:
        raise _broken(path, error) from None
    except ValueError as error:
        raise _bad_values(path, names, fields, layout, error) from None


def _too_short(path: Path) -> DkefError:
    """pandas counts the fields by the first row, and tells of missing ones in two ways."""
    return DkefError(f"{path}: the first data row is too short; every row must have as many fields")


def _pandas_options(fields: Sequence[int], layout: Layout) -> dict[str, Any]:
    strict = layout.fields is not None
    return {
        "sep": r"\s+" if layout.separator == "whitespace" else layout.separator,
        "header": None,
        "index_col": False,
        "skiprows": layout.skip_lines,
        "nrows": layout.max_rows,
        "usecols": None if strict else list(fields),  # pandas counts the fields of a row only without it
        "dtype": dict.fromkeys(fields, np.float64),
        "low_memory": False,  # dropped columns may hold anything; their types are not worth a warning
        "chunksize": CHUNK_ROWS,
    }


def read_numbers(path: Path, names: Sequence[str], fields: Sequence[int], layout: Layout) -> Array:
    """All rows at once; see read_chunks."""
    return gather(read_chunks(path, names, fields, layout), path)


def gather(chunks: Iterator[Array], path: Path) -> Array:
    """Join chunks of rows, as long as the whole stage stays within its memory."""
    kept, size = [], 0
    for chunk in chunks:
        kept.append(chunk)
        size += chunk.nbytes
        require_affordable(size, path)
    if not kept:
        raise DkefError(f"{path} has no rows")
    return np.concatenate(kept)


def require_affordable(size: int, path: Path) -> None:
    """Stop before the numbers of a table take more bytes than the stage can afford."""
    if size > MAX_TABLE_BYTES:
        raise DkefError(
            f"{path} holds more than {MAX_TABLE_BYTES // 10**6} MB of numbers in the chosen columns; choose fewer rows "
            "or columns in dataset.source"
        )


def _require_finite(chunk: Array, layout: Layout) -> None:
    bad = np.isinf(chunk) if layout.missing_allowed else ~np.isfinite(chunk)
    if bad.any():
        raise ValueError("a value is not finite")


def _broken(path: Path, error: Exception) -> DkefError:
    cause = "is cut off" if isinstance(error, EOFError) else "is damaged"
    return DkefError(f"{path} {cause} ({one_line(error)}); delete it and fetch it again")


def _bad_values(
    path: Path, names: Sequence[str], fields: Sequence[int], layout: Layout, error: ValueError
) -> DkefError:
    """Every column with something that is not a finite number, by a slow second reading."""
    if "Usecols do not match" in str(error):
        return _too_short(path)
    with open_raw(path) as stream:
        lines = islice(io.TextIOWrapper(stream, encoding="utf-8", errors="replace"), layout.skip_lines, None)
        plain = layout.separator == "whitespace"
        rows = (line.split() for line in lines) if plain else csv.reader(lines, delimiter=layout.separator)
        try:
            found = all_problems(islice(rows, layout.max_rows), names, fields, layout.missing_allowed)
        except (csv.Error, EOFError, zlib.error, gzip.BadGzipFile) as problem:
            return _broken(path, problem)
    if not found:
        return DkefError(f"{path} cannot be read as numbers: {one_line(error)}")
    rows_too = any("missing value" in problem for problem in found)
    advice = "drop the columns in dataset.source.drop or correct the file"
    return DkefError(f"{path}: {'; '.join(found)}; {advice}{ROWS_TOO if rows_too else ''}")


ROWS_TOO = ", or set drop_incomplete_rows: true"


def is_number(text: str) -> bool:
    """Whether a field can be read as a number; an empty one can, as a missing one."""
    return as_number(text) is not None
