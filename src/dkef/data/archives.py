"""One member out of a zip or tar archive. Its name only selects it: nothing is ever written where an archive says."""

import gzip
import lzma
import shutil
import struct
import tarfile
import zipfile
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO

from dkef.core.errors import one_line
from dkef.core.files import FULL
from dkef.data.delimited import looks_like_html
from dkef.data.download import UnavailableError

# What the standard library says to archives that are cut off, flipped, encrypted or packed in unknown ways.
DAMAGED = (
    zipfile.BadZipFile, tarfile.TarError, zlib.error, lzma.LZMAError, struct.error, EOFError, OSError, ValueError,
    RuntimeError, OverflowError, IndexError,
)  # fmt: skip


def extract(archive: Path, member: str, target: Path, compress: bool = False) -> None:
    """Write a member to `target`, through gzip if `compress`."""
    with open(archive, "rb") as file:
        if looks_like_html(file.read(512)):
            raise UnavailableError("sends a web page instead of an archive")
    try:
        with _open_member(archive, member) as source, open(target, "wb") as file:
            if compress:
                # No time and no name in the header: equal members give equal bytes.
                with gzip.GzipFile(filename="", fileobj=file, mode="wb", compresslevel=6, mtime=0) as packed:
                    shutil.copyfileobj(source, packed, 1 << 20)
            else:
                shutil.copyfileobj(source, file, 1 << 20)
    except DAMAGED as error:
        if isinstance(error, OSError) and error.errno in FULL:
            raise
        raise UnavailableError(f"sends a damaged archive ({one_line(error)})") from None


@contextmanager
def _open_member(archive: Path, member: str) -> Iterator[IO[bytes]]:
    if zipfile.is_zipfile(archive):
        with zipfile.ZipFile(archive) as packed:
            for info in packed.infolist():
                if _matches(info.filename, member) and not info.is_dir():
                    with packed.open(info) as source:
                        yield source
                    return
    else:
        with tarfile.open(archive, "r:*") as tar:
            for entry in tar:
                if _matches(entry.name, member) and entry.isreg():
                    tar_source = tar.extractfile(entry)
                    assert tar_source is not None, "a regular member has contents"
                    with tar_source:
                        yield tar_source
                    return
    raise UnavailableError(f"sends an archive without {member}")


def _matches(name: str, member: str) -> bool:
    """Archives differ in the folders above a file."""
    return name == member or name.endswith("/" + member)
