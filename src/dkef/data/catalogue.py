"""data/sources.csv: where each raw file can be had and how it is recognised."""

import csv
import re
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from dkef.core.errors import DkefError, one_line

COLUMNS = ("file", "urls", "bytes", "sha256", "licence", "doi", "page")


@dataclass(frozen=True)
class RawFile:
    """One raw file; `urls` are tried in order, `archive#member` names a file in an archive."""

    file: str
    urls: tuple[str, ...]
    bytes: int | None  # of the file itself, not of an archive around it
    sha256: str | None
    licence: str
    doi: str
    page: str  # what a person visits to download it by hand

    @property
    def base_name(self) -> str:
        return PurePosixPath(self.file).name


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
    if tuple(row) != COLUMNS or None in row.values():
        raise DkefError(f"{where}: the columns must be {', '.join(COLUMNS)}")
    file = PurePosixPath(row["file"])
    if file.is_absolute() or ".." in file.parts or len(file.parts) < 2:
        raise DkefError(f"{where}: file {row['file']!r} must be folder/name, below data/raw")
    if row["bytes"] and not re.fullmatch("[0-9]{1,15}", row["bytes"]):
        raise DkefError(f"{where}: bytes {row['bytes']!r} is not a whole number")
    if row["sha256"] and not re.fullmatch("[0-9a-f]{64}", row["sha256"]):
        raise DkefError(f"{where}: sha256 {row['sha256']!r} is not 64 hexadecimal digits")
    urls = tuple(row["urls"].split())
    for url in urls:
        if not url.startswith(("https://", "http://")):
            raise DkefError(f"{where}: {url!r} is not an http(s) address")
    return RawFile(
        row["file"], urls, int(row["bytes"]) if row["bytes"] else None, row["sha256"] or None,
        row["licence"], row["doi"], row["page"],
    )  # fmt: skip
