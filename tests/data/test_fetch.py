import gzip
import hashlib
import io
import logging
import socket
import tarfile
import threading
import time
import zipfile
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from dkef.core.errors import DkefError
from dkef.core.files import file_digest, pid_space
from dkef.data.catalogue import RawFile
from dkef.data.download import Patience, Progress
from dkef.data.fetch import fetch_file, misfit

GOOD = b"a;b\n" + b"1;2\n" * 5000
SHA = hashlib.sha256(GOOD).hexdigest()
IMPATIENT = Patience(attempts=2, timeout=0.3, pause=0.01, report=0.0)
NAME = "set/x.csv"


def zipped(members: dict[str, bytes]) -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, data in members.items():
            archive.writestr(name, data)
    return buffer.getvalue()


def tarred(members: dict[str, bytes]) -> bytes:
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w:gz") as archive:
        for name, data in members.items():
            info = tarfile.TarInfo(name)
            info.size = len(data)
            archive.addfile(info, io.BytesIO(data))
    return buffer.getvalue()


ARCHIVE = zipped({"readme.txt": b"hello", "folder/x.csv": GOOD, "../../evil": b"escaped"})
BODIES = {
    "/good": GOOD,
    "/wrong": GOOD.replace(b"1;2", b"1;3"),
    "/page": b"<!DOCTYPE html><html>this file has moved</html>",
    "/short": GOOD[:-1],
    "/empty": b"",
    "/x.zip": ARCHIVE,
    "/cut.zip": ARCHIVE[:100] + bytes(50) + ARCHIVE[150:],
    "/half.zip": ARCHIVE[: len(ARCHIVE) // 2],
    "/x.tar.gz": tarred({"data/set/x.csv": GOOD}),
    "/half.tar.gz": tarred({"data/set/x.csv": GOOD + bytes(range(256)) * 400})[:500],
}


@dataclass
class Server:
    address: str
    asked: Counter[str] = field(default_factory=Counter)


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[Server]:
    """A server with an address for every way a download can go wrong; counts the requests to each."""
    monkeypatch.setenv("no_proxy", "*")
    closing = threading.Event()

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            known.asked[self.path] += 1
            if self.path == "/404":
                self.send_error(404)
            elif self.path == "/502" or (self.path == "/502-once" and known.asked[self.path] == 1):
                self.send_error(502)
            elif self.path == "/hang":
                closing.wait(5)
            elif self.path == "/stall":
                self.send(GOOD[:1000], len(GOOD))
                closing.wait(5)
            elif self.path == "/truncate":
                self.send(GOOD[:1000], len(GOOD))
            elif self.path == "/502-once":
                self.send(GOOD, len(GOOD))
            elif self.path == "/reset":
                self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")
                self.connection.close()
            else:
                self.send(BODIES[self.path], len(BODIES[self.path]))

        def send(self, body: bytes, length: int) -> None:
            self.send_response(200)
            self.send_header("Content-Length", str(length))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, format: str, *args: object) -> None:
            pass

    http = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    http.handle_error = lambda request, client_address: None  # type: ignore[method-assign]
    known = Server(f"http://127.0.0.1:{http.server_port}")
    thread = threading.Thread(target=http.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)
    thread.start()
    yield known
    closing.set()
    http.shutdown()
    http.server_close()


def entry(server: Server, *paths: str, sha256: str | None = SHA, size: int | None = None, file: str = NAME) -> RawFile:
    urls = tuple(server.address + path for path in paths)
    return RawFile(file, urls, size, sha256, "CC BY 4.0", "10.1/x", "https://example.org/page")


def files_below(folder: Path) -> list[str]:
    return sorted(str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file())


def test_bad_addresses_are_passed_over_until_a_good_one(server: Server, tmp_path: Path) -> None:
    bad = ("/404", "/502", "/hang", "/stall", "/truncate", "/reset", "/wrong", "/page", "/short", "/empty")
    out = tmp_path / NAME
    fetch_file(entry(server, *bad, "/good", "/never", size=len(GOOD)), out, [], IMPATIENT)
    assert out.read_bytes() == GOOD
    assert files_below(tmp_path) == [NAME, f"{NAME}.sha256"]
    # What may be a passing trouble is tried again; a clear answer is not.
    again = {"/502": 2, "/hang": 2, "/stall": 2, "/truncate": 2, "/reset": 2}
    assert server.asked == Counter({path: again.get(path, 1) for path in (*bad, "/good")})


@pytest.mark.parametrize(
    ("path", "reason"),
    [
        ("/404", "answers 404 Not Found"),
        ("/502", "answers 502 Bad Gateway"),
        ("/hang", r"sends nothing for 0\.3 s"),
        ("/stall", r"sends nothing for 0\.3 s"),
        ("/truncate", "breaks off"),
        ("/reset", "breaks off|cannot be reached"),
        ("/wrong", f"sends a file with sha256 {hashlib.sha256(BODIES['/wrong']).hexdigest()} where {SHA} is expected"),
        ("/page", "sends a web page instead of the file"),
        ("/short", "sends 20003 bytes where 20004 are expected"),
        ("/empty", "sends an empty file"),
        ("/x.zip#none.csv", r"sends an archive without none\.csv"),
        ("/page#x.csv", "sends a web page instead of an archive"),
        ("/cut.zip#x.csv", "sends a damaged archive"),
        ("/half.zip#x.csv", "sends a damaged archive"),
        ("/half.tar.gz#data/set/x.csv", "sends a damaged archive"),
    ],
)
def test_each_failure_is_named_with_the_way_to_help_oneself(
    server: Server, tmp_path: Path, path: str, reason: str
) -> None:
    with pytest.raises(DkefError, match=reason) as caught:
        fetch_file(entry(server, path, size=len(GOOD)), tmp_path / NAME, [], IMPATIENT)
    message = str(caught.value)
    assert "visit https://example.org/page, take x.csv and put it in data/mirror/set/" in message
    assert "\\n" not in message  # a line break shows as its escape
    assert files_below(tmp_path) == []


def test_a_passing_trouble_is_survived_by_asking_again(server: Server, tmp_path: Path) -> None:
    start = time.monotonic()
    fetch_file(entry(server, "/502-once"), tmp_path / NAME, [], Patience(attempts=2, pause=0.2))
    assert (tmp_path / NAME).read_bytes() == GOOD
    assert time.monotonic() - start >= 0.2  # it has waited before


@pytest.mark.parametrize("path", ["/x.zip#x.csv", "/x.tar.gz#data/set/x.csv"])
def test_a_member_is_taken_out_of_an_archive_and_nothing_else(server: Server, tmp_path: Path, path: str) -> None:
    out = tmp_path / "a/b" / NAME
    fetch_file(entry(server, path), out, [], IMPATIENT)
    assert out.read_bytes() == GOOD
    assert files_below(tmp_path) == [f"a/b/{NAME}", f"a/b/{NAME}.sha256"]


def test_a_plain_member_is_compressed_where_the_raw_file_is_gzip(server: Server, tmp_path: Path) -> None:
    hashes = []
    for folder in ("one", "two"):
        out = tmp_path / folder / "x.csv.gz"
        fetch_file(entry(server, "/x.tar.gz#x.csv", sha256=None, file="set/x.csv.gz"), out, [], IMPATIENT)
        assert gzip.decompress(out.read_bytes()) == GOOD
        hashes.append(file_digest(out))
    assert hashes[0] == hashes[1]


def test_plain_bytes_are_not_taken_for_a_gzip_file(server: Server, tmp_path: Path) -> None:
    with pytest.raises(DkefError, match="something that is not gzip"):
        fetch_file(entry(server, "/good", sha256=None, file="set/x.gz"), tmp_path / "x.gz", [], IMPATIENT)


def test_with_the_file_in_place_or_in_a_mirror_no_request_is_made(server: Server, tmp_path: Path) -> None:
    mirror, out = tmp_path / "mirror", tmp_path / "raw" / NAME
    (mirror / "set").mkdir(parents=True)
    (mirror / NAME).write_bytes(GOOD)
    fetch_file(entry(server, "/good"), out, [tmp_path / "nothing", mirror], IMPATIENT)
    assert out.read_bytes() == GOOD
    fetch_file(entry(server, "/good"), out, [], IMPATIENT)
    assert not server.asked


def test_what_a_killed_download_left_goes_even_where_the_file_came_by_hand(server: Server, tmp_path: Path) -> None:
    out = tmp_path / NAME
    out.parent.mkdir()
    out.write_bytes(GOOD)
    scratch = f".{out.name}.{2**22 + 1}@{pid_space()}.partial"  # no process of Linux has such a number
    for left in (scratch, f"{scratch}.archive"):
        out.with_name(left).write_bytes(GOOD[:99])
    fetch_file(entry(server, "/good"), out, [], IMPATIENT)
    assert files_below(tmp_path) == [NAME, f"{NAME}.sha256"]


def test_a_wrong_file_in_a_mirror_or_in_place_is_an_error(server: Server, tmp_path: Path) -> None:
    (tmp_path / "set").mkdir()
    (tmp_path / NAME).write_bytes(b"something else")
    for out, folders in ((tmp_path / "out", [tmp_path]), (tmp_path / NAME, [])):
        with pytest.raises(DkefError, match=rf"x\.csv is a file with sha256 .* where {SHA} is expected; delete it"):
            fetch_file(entry(server, "/good"), out, folders, IMPATIENT)
    assert not (tmp_path / "out").exists()
    assert not server.asked


def test_an_unpublished_hash_is_recorded_at_first_and_binding_from_then_on(server: Server, tmp_path: Path) -> None:
    out = tmp_path / NAME
    fetch_file(entry(server, "/good", sha256=None), out, [], IMPATIENT)
    assert (tmp_path / "set/x.csv.sha256").read_text() == f"{SHA}  x.csv\n"
    out.unlink()
    with pytest.raises(DkefError, match=f"sends a file with sha256 .* where {SHA} is expected"):
        fetch_file(entry(server, "/wrong", sha256=None), out, [], IMPATIENT)
    assert not out.exists()
    fetch_file(entry(server, "/wrong", "/good", sha256=None), out, [], IMPATIENT)
    assert out.read_bytes() == GOOD
    out.write_bytes(b"changed by hand")
    with pytest.raises(DkefError, match=r"if the new file is right, delete the \.sha256 file"):
        fetch_file(entry(server, "/good", sha256=None), out, [], IMPATIENT)


def test_no_network_names_page_file_and_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("no_proxy", "*")
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        nobody = Server(f"http://127.0.0.1:{unused.getsockname()[1]}")
    with pytest.raises(
        DkefError, match=r"cannot be reached.*visit https://example\.org/page, take x\.csv and put it in"
    ):
        fetch_file(entry(nobody, "/good"), tmp_path / NAME, [], IMPATIENT)


def test_a_file_without_address_is_said_to_be_in_the_mirror_only(tmp_path: Path) -> None:
    alone = RawFile(NAME, (), None, SHA, "CC0", "", "https://example.org")
    with pytest.raises(DkefError, match=r"has no public address: it is in the data mirror only.*DKEF_DATA_MIRROR"):
        fetch_file(alone, tmp_path / NAME, [], IMPATIENT)


def test_progress_tells_rate_and_time_left(caplog: pytest.LogCaptureFixture) -> None:
    progress = Progress("somewhere", 4_000_000, every=0.0, log=logging.getLogger("dkef.test"))
    progress.done = 1_000_000
    assert progress.line(seconds=2.0) == "1.0 of 4.0 MB, 0.50 MB/s, 6 s left"
    progress.total = None
    assert progress.line(seconds=2.0) == "1.0 MB, 0.50 MB/s"
    with caplog.at_level(logging.INFO, "dkef.test"):
        progress.add(500)
    assert "MB/s" in caplog.text


def test_a_mismatch_is_explained_by_the_note_of_the_catalogue(tmp_path: Path) -> None:
    note = "size and sha256 are those of a public Git LFS pointer"
    for size, sha256 in ((5, None), (4, "0" * 64)):
        entry = RawFile("folder/x.txt", (), size, sha256, "CC BY 4.0", "10.1/x", "https://example.org/page", note)
        (tmp_path / "x.txt").write_text("abcd")
        problem = misfit(tmp_path / "x.txt", entry, sha256)
        assert problem is not None
        assert problem.endswith(f"({note})")
