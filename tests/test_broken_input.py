"""What the fuzzers found (tests/fuzz): each is refused with one sentence that names the file."""

import io
import struct
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from dkef.config.compose import compose_cell
from dkef.config.experiment import load_experiment
from dkef.config.schema.metrics import Comparison
from dkef.core.errors import ConfigError, DkefError
from dkef.core.streams import rng_for
from dkef.data.archives import extract
from dkef.data.catalogue import read_catalogue
from dkef.data.download import UnavailableError
from dkef.data.tables import Csv, Npy
from dkef.metrics.agreement import agreement_rows
from dkef.metrics.case import read_normaliser
from dkef.models.storage import read_log_z
from dkef.report.pages.html import html_of
from dkef.results.experiment import ExperimentInfo
from dkef.results.gather import gather_metrics, gather_sensitivity
from dkef.results.lookup import Results
from dkef.results.read import read_benchmark, read_frame, read_trace
from dkef.results.tables import CLAIMS, METRICS, SENSITIVITY

ORDERS = ",".join(SENSITIVITY.columns).encode() + b"\n"
HEADER = ",".join(METRICS.columns).encode() + b"\n"


def csv(path: Path) -> Any:
    return Csv(paths=[str(path)]).read(path.parent, rng_for("test"))


def blanks(path: Path) -> Any:
    return Csv(paths=[str(path)], names=["a", "b"], separator="whitespace").read(path.parent, rng_for("test"))


def npy(path: Path) -> Any:
    return Npy(paths=[str(path)]).read(path.parent, rng_for("test"))


def npy_file(header: bytes) -> bytes:
    return b"\x93NUMPY\x01\x00" + struct.pack("<H", len(header)) + header


def empty_array() -> bytes:
    buffer = io.BytesIO()
    np.save(buffer, np.zeros((0, 3)))
    return buffer.getvalue()


def orders(path: Path) -> Any:
    return list(agreement_rows(gather_sensitivity([path]), Comparison()))


def verdicts(path: Path) -> Any:
    return html_of("claims", Results(ExperimentInfo("test", "", ()), {"claims": read_frame(CLAIMS, path)}))


def read_metrics(path: Path) -> Any:
    return read_frame(METRICS, path)


CASES: list[tuple[Callable[[Path], Any], bytes]] = [
    (csv, b'a,b\rc\n1,2\n'),  # a line end of another system inside the header
    (csv, b"a,b\n1,x\n\xe5,2\n"),  # text for a number, and then bytes that are no text
    (blanks, b"1 =2\n\xce 3\n"),
    (npy, npy_file(b"{'descr': '<f8', 'fortran_order': False, 'shape': (20, 3")),  # a literal without its end
    (npy, npy_file(b"{'descr': '<f8', 'fortran_order': False, 'shape': (2" + b"(" * 300)),
    (npy, empty_array()),
    (read_catalogue, b"file,urls,bytes,sha256,licence,doi,page\n\xce\xff,,,,,,\n"),
    (read_catalogue, b'file,urls,bytes,sha256,licence,doi,page\n"a"b,,,,,,\n'),
    (read_metrics, HEADER + b"ring,gaussian,zero,score_loss,1,1,ok,a,b\n"),  # the seed
    (read_metrics, HEADER + b"ring,gaussian,nan,score_loss,1,1,ok,a,b\n"),
    (read_metrics, HEADER + b"ring,gaussian,0,score_loss,1.2.3,1,ok,a,b\n"),
    (read_metrics, HEADER + b"ring,gaussian,0,score_loss,'\"\n\n\",1,ok,a,b,c,d,e\n"),
    (read_metrics, b'"data\nset",b\n1,2\n'),  # a column's name of two lines
    (lambda path: gather_metrics([path]), HEADER + b"ring,gaussian,0,no_such_metric,1,1,ok,a,b\n"),
    (lambda path: gather_metrics([path]), HEADER + b"ring,gaussian,x,score_loss,1,1,ok,a,b\n"),
    (lambda path: gather_metrics([path]), HEADER + b"ring,gaussian,0,score_loss,!!python/object:os.system,1,ok,a,b\n"),
    (read_log_z, b'{"log_z": 1%s}' % (b"0" * 400)),
    (read_log_z, b'{"log_z": NaN}'),
    (read_log_z, b'{"log_z": true}'),
    (read_log_z, b"{}"),
    (read_log_z, b'{"log_z": ' + b"1" * 5000 + b"}"),  # more digits than Python takes
    (read_normaliser, b'{"log_z": 1.5}'),  # without a status
    (read_normaliser, b'{"log_z": "high", "status": "ok"}'),
    (read_normaliser, b'{"log_z": 1%s, "status": "ok"}' % (b"0" * 400)),
    (orders, ORDERS + b'"ri\nng",dkef,0,fssd2,3.0,100,1,1,ok,a,b\n'),  # a name of two lines
    (orders, ORDERS + b"ring,dkef,0,fssd2,1.0,100,1,1,ok,a,b\nring,dkef,0,ksd2,1.0,,1,1,ok,a,b\n"
             b"ring,dkef,0,fssd2,2.0,100,1,1,ok,a,b\n"),  # no ksd2 to compare the last with
    (read_trace, b"a,b\n1,2\n3,4,5,6\n"),
    (verdicts, ",".join(CLAIMS.columns).encode() + b"\n" + b"x," * (len(CLAIMS.columns) - 1) + b"x\n"),
    (read_benchmark, b"[1]"),
    (read_benchmark, b"\xff"),
    (read_benchmark, b"\n"),
]  # fmt: skip


@pytest.mark.parametrize(("reader", "data"), CASES)
def test_broken_files_are_refused_with_one_sentence(tmp_path: Path, reader: Callable[[Path], Any], data: bytes) -> None:
    path = tmp_path / "set" / "model" / "seed0" / "file"
    path.parent.mkdir(parents=True)
    path.write_bytes(data)
    with pytest.raises(DkefError) as caught:
        reader(path)
    assert "\\n" not in str(caught.value)  # a line break shows as its escape
    assert len(str(caught.value)) < 1000


def test_an_archive_whose_directory_points_nowhere_is_damaged(tmp_path: Path) -> None:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as packed:
        packed.writestr("x.csv", b"1,2\n" * 50)
    data = bytearray(buffer.getvalue())
    at = data.find(b"PK\x01\x02")
    data[at + 42 : at + 46] = b"\xff\xff\xff\xff"  # where the member begins
    (tmp_path / "x.zip").write_bytes(bytes(data))
    with pytest.raises(UnavailableError, match="damaged archive"):
        extract(tmp_path / "x.zip", "x.csv", tmp_path / "x.csv")


@pytest.mark.parametrize("override", ["model.width=\n20", "~model.\n", "a\n=b", "dataset=\n"])
def test_a_broken_override_is_one_sentence(override: str) -> None:
    with pytest.raises(DkefError) as caught:
        compose_cell(("model=made", override))
    assert "\\n" not in str(caught.value)  # a line break shows as its escape


def test_very_many_overrides_are_not_all_told() -> None:
    with pytest.raises(DkefError) as caught:
        compose_cell(("model=made", *["+model.new=3"] * 200, "a b=c"))
    assert len(str(caught.value)) < 1000


def test_a_message_that_quotes_very_much_keeps_where_it_was_and_what_to_do() -> None:
    told = str(DkefError(f"data/sources.csv, line 2: sha256 {'9' * 5000} is not 64 hexadecimal digits"))
    assert len(told) < 1000
    assert told.startswith("data/sources.csv, line 2: sha256 999")
    assert told.endswith("999 is not 64 hexadecimal digits")


@pytest.mark.parametrize("text", [b"_target_: \xf4\n", b"a: [1\n", b"- 1\n", b"3\n", b"a: *b\n", b"? {a: 1}\n: 2\n"])
def test_a_broken_yaml_is_one_sentence(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, text: bytes) -> None:
    (tmp_path / "model").mkdir()
    (tmp_path / "model" / "broken.yaml").write_bytes(text)
    monkeypatch.setenv("DKEF_CONFIG_PATH", str(tmp_path))
    with pytest.raises(DkefError) as caught:
        compose_cell(("model=broken",))
    assert "\\n" not in str(caught.value)  # a line break shows as its escape


def test_a_reference_to_nothing_in_an_experiment_is_one_sentence(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "experiment").mkdir()
    (tmp_path / "experiment" / "astray.yaml").write_text("title: ${nowhere}\nsuites: {}\nfigures: []\n")
    monkeypatch.setenv("DKEF_CONFIG_PATH", str(tmp_path))
    with pytest.raises(ConfigError, match=rf"{tmp_path}/experiment/astray\.yaml: .*nowhere"):
        load_experiment("astray")


def test_what_a_file_says_cannot_break_the_line_or_steer_the_terminal() -> None:
    """Found by fuzzing: a key with a record separator in it was quoted as it stood."""
    assert str(DkefError("a key \n\x1e\x1b[31m\u2028 of é")) == "a key \\n\\x1e\\x1b[31m\\u2028 of é"
