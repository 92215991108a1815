"""Raw files, from a local mirror or their public home: checked, whole or not at all."""

import glob
import logging
import os
import shutil
from collections.abc import Sequence
from pathlib import Path

from dkef.core.errors import DkefError
from dkef.core.files import file_digest, note_of, noted_digest, remove_abandoned, whole_file, write_text
from dkef.data.archives import extract
from dkef.data.catalogue import RawFile
from dkef.data.delimited import looks_like_html
from dkef.data.download import Patience, UnavailableError, download

log = logging.getLogger("dkef.data.fetch")

# A place of one's own for files brought by hand: Snakemake deletes what it is about to make again in data/raw.
OWN_MIRROR = Path("data/mirror")


def mirrors() -> list[Path]:
    """Folders with the layout of data/raw that are searched before the network."""
    named = [Path(entry) for entry in os.environ.get("DKEF_DATA_MIRROR", "").split(os.pathsep) if entry]
    for folder in named:
        if not folder.is_dir():
            raise DkefError(f"DKEF_DATA_MIRROR names {folder}, which is not a folder; correct or unset it")
    return [*named, OWN_MIRROR]


def fetch_file(entry: RawFile, out: Path, folders: Sequence[Path], patience: Patience) -> None:
    """Bring one raw file to `out`: already there, else from a mirror, else from its addresses in order."""
    remove_abandoned(out.parent, glob.escape(out.name))  # also where the file was brought by hand since
    expected = entry.sha256 or noted_digest(out)  # of the first copy, for files without a published one
    if out.exists():
        _require_intact(out, entry, expected)
        log.info("%s is in place", out)
        _note(out, expected)
        return
    found = next((folder / entry.file for folder in folders if (folder / entry.file).is_file()), None)
    if found is not None:
        _require_intact(found, entry, expected)
        with whole_file(out) as scratch:
            shutil.copyfile(found, scratch)
        log.info("%s copied from %s", out, found)
    else:
        _from_network(entry, out, expected, patience)
    _note(out, expected)


def _note(out: Path, expected: str | None) -> None:
    """Leave the digest beside a file that was checked, for those who read it later."""
    digest = expected or file_digest(out)
    if noted_digest(out) != digest:
        write_text(note_of(out), f"{digest}  {out.name}\n")


def _from_network(entry: RawFile, out: Path, expected: str | None, patience: Patience) -> None:
    reasons = []
    for url in entry.urls:
        try:
            with whole_file(out) as scratch:
                _from_url(url, entry, scratch, patience)
                if problem := misfit(scratch, entry, expected):
                    raise UnavailableError(f"sends {problem}")
            return
        except UnavailableError as problem:
            reasons.append(f"{url} {problem}")
            log.info("%s %s", url, problem)
    raise DkefError(_by_hand(entry, out, reasons))


def _from_url(url: str, entry: RawFile, target: Path, patience: Patience) -> None:
    address, _, member = url.partition("#")
    if not member:
        download(address, target, patience, log)
        return
    archive = target.with_name(f"{target.name}.archive")
    try:
        download(address, archive, patience, log)
        compress = entry.file.endswith(".gz") and not member.endswith(".gz")
        extract(archive, member, target, compress)
    finally:
        archive.unlink(missing_ok=True)


def misfit(path: Path, entry: RawFile, expected: str | None) -> str | None:
    """What is wrong with a file that should be `entry`, if anything."""
    note = f" ({entry.note})" if entry.note else ""
    size = path.stat().st_size
    with open(path, "rb") as file:
        start = file.read(512)
    if looks_like_html(start):
        return "a web page instead of the file"
    if not size:
        return "an empty file"
    if entry.bytes is not None and size != entry.bytes:
        return f"{size} bytes where {entry.bytes} are expected{note}"
    if entry.file.endswith(".gz") and start[:2] != b"\x1f\x8b":
        return "something that is not gzip"
    if expected is not None and (found := file_digest(path)) != expected:
        return f"a file with sha256 {found} where {expected} is expected{note}"
    return None


def _require_intact(path: Path, entry: RawFile, expected: str | None) -> None:
    if problem := misfit(path, entry, expected):
        noted = (
            "" if entry.sha256 else "; if the new file is right, delete the .sha256 file beside the old one in data/raw"
        )
        raise DkefError(f"{path} is {problem}; delete it or replace it by the file from {entry.page}{noted}")


def _by_hand(entry: RawFile, out: Path, reasons: Sequence[str]) -> str:
    place = OWN_MIRROR / entry.file
    if not entry.urls:
        return (
            f"{out} has no public address: it is in the data mirror only; name a folder that holds {entry.file} in "
            f"DKEF_DATA_MIRROR, or put the file at {place}"
        )
    return (
        f"{out} could not be fetched ({'; '.join(reasons)}); visit {entry.page}, take {entry.base_name} and put it in "
        f"{place.parent}/, or in {Path(entry.file).parent}/ below a folder that DKEF_DATA_MIRROR names, then run again"
    )
