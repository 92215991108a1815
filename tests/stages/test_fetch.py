"""The fetch stage finds its file in the catalogue and looks through the mirrors in order."""

import hashlib
import json
from pathlib import Path

import pytest

from dkef.core.errors import DkefError
from dkef.stages.fetch import main

GOOD = b"a;b\n" + b"1;2\n" * 5000
SHA = hashlib.sha256(GOOD).hexdigest()
NAME = "set/x.csv"


def test_main_reads_catalogue_and_mirrors(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    first, second = tmp_path / "first", tmp_path / "second"
    first.mkdir()
    (second / "set").mkdir(parents=True)
    (second / NAME).write_bytes(GOOD)
    sources = tmp_path / "sources.csv"
    sources.write_text(
        f"file,urls,bytes,sha256,licence,doi,page\n{NAME},,{len(GOOD)},{SHA},CC BY 4.0,10.1/x,https://example.org\n"
    )
    monkeypatch.setenv("DKEF_DATA_MIRROR", f"{first}:{second}")
    out = tmp_path / "raw" / NAME
    main(["--config", json.dumps({"file": NAME}), "--out", str(out), "--sources", str(sources)])
    assert out.read_bytes() == GOOD
    with pytest.raises(DkefError, match=rf"set/y\.csv is not in .*known are {NAME}"):
        main(["--config", json.dumps({"file": "set/y.csv"}), "--out", str(out), "--sources", str(sources)])
    monkeypatch.setenv("DKEF_DATA_MIRROR", str(tmp_path / "typo"))
    with pytest.raises(DkefError, match=r"DKEF_DATA_MIRROR names .*typo, which is not a folder"):
        main(["--config", json.dumps({"file": NAME}), "--out", str(out), "--sources", str(sources)])
