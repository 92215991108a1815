"""data/sources.csv: where each raw file can be had and how it is recognised."""

import csv
import re
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Annotated, Any

from pydantic import Field

from dkef.config.typed import build, section
from dkef.core.errors import ConfigError, DkefError, one_line
from dkef.core.provenance import canonical

CATALOGUE = Path("data/sources.csv")


def _text(pattern: str, words: str) -> Any:
    return Field(pattern=pattern, description=words)


@section
@dataclass(frozen=True)
class RawFile:
    """One raw file; `urls` are tried in order, `archive#member` names a file in an archive."""

    file: Annotated[str, _text(r"^[A-Za-z0-9_-]+(/[A-Za-z0-9_-][A-Za-z0-9_.-]*)+$", "folder/name, below data/raw")]
    urls: tuple[Annotated[str, _text(r"^https?://\S+$", "an http(s) address")], ...]
    bytes: Annotated[int, Field(ge=1)] | None  # of the file itself, not of an archive around it
    sha256: Annotated[str, _text("^[0-9a-f]{64}$", "64 hexadecimal digits")] | None
    licence: Annotated[str, _text(r"\S", "its name")]
    doi: Annotated[str, _text(r"^(10\.\d+/\S+)?$", "10.number/name, or nothing")]
    page: Annotated[str, _text(r"^https://\S+$", "an https address")]  # what a person visits to download it by hand
    note: str = ""  # where size and digest come from, if not from the file's home; told where they do not fit

    @property
    def base_name(self) -> str:
        return PurePosixPath(self.file).name


COLUMNS = tuple(RawFile.__dataclass_fields__)
REQUIRED = COLUMNS[:-1]  # a table may do without notes


def read_catalogue(path: Path) -> dict[str, RawFile]:
    """All raw files by name."""
    try:
        with open(path, encoding="utf-8", newline="") as file:
            rows = list(csv.DictReader(file, strict=True))
    except FileNotFoundError:
        raise DkefError(f"{path} does not exist; run from the project's root") from None
    except (UnicodeDecodeError, csv.Error) as error:
        raise DkefError(f"{path} is not a table ({one_line(error)}); restore it from the repository") from None
    entries = [_entry(row, f"{path}, line {number}") for number, row in enumerate(rows, start=2)]
    catalogue = {entry.file: entry for entry in entries}
    if len(catalogue) < len(entries):
        raise DkefError(f"{path} names a file twice; keep one row for each file")
    return catalogue


def _entry(row: dict[str, str], where: str) -> RawFile:
    if tuple(row) not in (COLUMNS, REQUIRED) or None in row.values():
        raise DkefError(f"{where}: the columns must be {', '.join(REQUIRED)}, and note where there are any")
    size = int(row["bytes"]) if re.fullmatch("[0-9]{1,15}", row["bytes"]) else row["bytes"] or None
    values = row | {"urls": row["urls"].split(), "bytes": size, "sha256": row["sha256"] or None}
    try:
        return build(RawFile, values)
    except ConfigError as error:
        raise DkefError(f"{where}: {error}") from None


def fetch_slice(file: str) -> str:
    """What makes a raw file the right one; its addresses may change without asking for it again."""
    catalogue = read_catalogue(CATALOGUE)
    if file not in catalogue:
        raise ConfigError(f"{CATALOGUE} has no row for {file}; add one, or name the file under `paths`")
    return canonical({"file": file, "bytes": catalogue[file].bytes, "sha256": catalogue[file].sha256})
