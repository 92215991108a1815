"""Target `raw`: data files of every format, archives and the catalogue, read as the fetch and preprocess stages do."""

import gzip
import io
import tarfile
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
from hypothesis import strategies as st

from dkef.config.schema.dataset import Dataset, Preprocessing
from dkef.core.streams import rng_for
from dkef.data.archives import extract
from dkef.data.catalogue import read_catalogue
from dkef.data.particles import FEATURES, Hepmass, MiniBoone
from dkef.data.prepare import prepare
from dkef.data.tables import Csv, Npy
from tests.fuzz.mutations import BINARY, TEXT, edited

CATALOGUE = b"""file,urls,bytes,sha256,licence,doi,page
set/x.csv,https://example.org/a.zip#x.csv http://example.org/x.csv,120,%s,CC BY 4.0,10.1/x,https://example.org
set/y.csv.gz,,,,CC0,,https://example.org/y
""" % (b"ab" * 32)


def _table(rows: int, columns: int, separator: str = ",") -> list[str]:
    x = rng_for("fuzz", rows, columns).normal(size=(rows, columns)).round(3)
    return [separator.join(map(str, row)) for row in x.tolist()]


def _text(*lines: str) -> bytes:
    return ("\n".join(lines) + "\n").encode()


def _npy(array: Any) -> bytes:
    buffer = io.BytesIO()
    np.save(buffer, array)
    return buffer.getvalue()


def _zip(names: dict[str, bytes]) -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as packed:
        for name, data in names.items():
            packed.writestr(zipfile.ZipInfo(name), data)
    return buffer.getvalue()


def _tar(names: dict[str, bytes], mode: str) -> bytes:
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode=mode) as packed:
        for name, data in names.items():
            entry = tarfile.TarInfo(name)
            entry.size = len(data)
            packed.addfile(entry, io.BytesIO(data))
    return buffer.getvalue()


CSV = _text("a,b,c", *_table(40, 3))
MEMBERS = {"../up.csv": b"1,2\n", "deep/x.csv": CSV}
HEPMASS = _text(",".join(["# label", *FEATURES]), *("1.0," + line for line in _table(60, 27)))
SEEDS: dict[str, list[bytes]] = {
    "csv": [
        CSV,
        _text('"a";"b"', *_table(20, 2, ";")).replace(b";", b","),
        b"\xef\xbb\xbf" + CSV.replace(b"\n", b"\r\n"),
    ],
    "gzip": [gzip.compress(CSV, mtime=0)],
    "whitespace": [_text(*_table(30, 3, "  "))],
    "npy": [_npy(np.arange(60.0).reshape(20, 3) ** 1.5), _npy(np.ones((4, 2), dtype=np.int32)), _npy(np.array(["x"]))],
    "miniboone": [_text(" 60 5", *_table(65, 50, "  "))],
    "hepmass": [gzip.compress(HEPMASS, mtime=0), HEPMASS],
    "archive": [_zip(MEMBERS), _tar(MEMBERS, "w:gz"), _tar(MEMBERS, "w"), _tar(MEMBERS, "w:xz")],
    "catalogue": [CATALOGUE],
}
PACKED = ("gzip", "npy", "archive")


def whole_files() -> list[tuple[str, bytes]]:
    return [(kind, SEEDS[kind][0]) for kind in SEEDS]


@st.composite
def cases(draw: Any) -> tuple[str, bytes]:
    kind = draw(st.sampled_from(sorted(SEEDS)))
    whole = draw(st.sampled_from(SEEDS[kind]))
    if kind in ("gzip", "hepmass") and whole[:2] == b"\x1f\x8b" and draw(st.booleans()):
        # Damage inside an intact wrapping.
        return kind, gzip.compress(draw(edited(gzip.decompress(whole), TEXT)), mtime=0)
    return kind, draw(edited(whole, BINARY if kind in PACKED else TEXT))


def read(kind: str, data: bytes, folder: Path) -> None:
    path = folder / "file"
    path.write_bytes(data)
    if kind == "archive":
        extract(path, "x.csv", folder / "member", compress=len(data) % 2 == 0)
        return
    if kind == "catalogue":
        read_catalogue(path)
        return
    source: Any = {
        "csv": Csv(paths=[str(path)]),
        "gzip": Csv(paths=[str(path)], max_rows=30),
        "whitespace": Csv(paths=[str(path)], names=["a", "b", "c"], separator="whitespace"),
        "npy": Npy(paths=[str(path)]),
        "miniboone": MiniBoone("file"),
        "hepmass": Hepmass("file", "file", drop={"f5": "discrete"}),
    }[kind]
    table = source.read(folder, rng_for("fuzz"))
    steps = Preprocessing(dequantise_gaps=1.0, drop_duplicate_rows=True)
    prepare(table, Dataset("Fuzzed", None, steps), lambda purpose: rng_for(purpose, "fuzz"))
