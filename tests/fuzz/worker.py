"""A process that reads what it is given: it may hang, crash or take all memory without taking the campaign with it."""

import contextlib
import multiprocessing
import os
import resource
import tempfile
import time
import traceback
from dataclasses import dataclass
from multiprocessing.connection import Connection
from pathlib import Path

from tests.fuzz.targets import module_of

HANG_SECONDS = 10.0  # of processor time
WALL_SECONDS = 120.0
MEMORY = 1_000_000_000  # bytes that reading one file may add
START_SECONDS = 300.0
LONGEST_MESSAGE = 1000  # characters


@dataclass(frozen=True)
class Outcome:
    """loads | refused | finding, and for a finding where it comes from and the whole story."""

    verdict: str
    signature: str = ""
    story: str = ""


def _peak() -> int:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


def _fault(error: Exception) -> str | None:
    """What keeps a message from being one sentence that somebody reads."""
    message = Exception.__str__(error)  # before an error of ours turns line breaks into their escapes
    if len(message.splitlines()) != 1:
        return "line break"
    return "long message" if len(str(error)) > LONGEST_MESSAGE else None


def _read(target: str, kind: str, data: bytes, folder: Path) -> Outcome:
    from dkef.core.errors import DkefError
    from dkef.data.download import UnavailableError

    try:
        module_of(target).read(kind, data, folder)
    except (DkefError, UnavailableError) as error:
        # `fetch` puts an address that does not deliver into its own sentence.
        fault = _fault(error)
        return Outcome("finding", f"{fault} in {kind}", traceback.format_exc()) if fault else Outcome("refused")
    except Exception as error:
        frames = [frame for frame in traceback.extract_tb(error.__traceback__) if "/dkef/" in frame.filename]
        last = f"{Path(frames[-1].filename).name}:{frames[-1].lineno}" if frames else "?"
        return Outcome("finding", f"{type(error).__name__} at {last}", traceback.format_exc())
    return Outcome("loads")


def _serve(pipe: Connection, target: str) -> None:
    quiet = os.open(os.devnull, os.O_WRONLY)  # libraries that write to the terminal by themselves
    os.dup2(quiet, 1)
    os.dup2(quiet, 2)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        for kind, whole in module_of(target).whole_files():  # so that no import counts as a hang
            _read(target, kind, whole, folder)
        pipe.send("ready")
        while True:
            kind, data = pipe.recv()
            before = _peak()
            outcome = _read(target, kind, data, folder)
            grown = _peak() - before
            if grown > MEMORY:
                outcome = Outcome("finding", f"memory in {kind}", f"{grown / 1e6:.0f} MB")
            pipe.send(outcome)


class Worker:
    """Reads one case after the other; a case that kills or hangs it is a finding, and the next gets a new process."""

    def __init__(self, target: str) -> None:
        self.target = target
        self.context = multiprocessing.get_context("spawn")
        self.process = None

    def read(self, kind: str, data: bytes) -> Outcome:
        if self.process is None:
            self.start()
        try:
            self.pipe.send((kind, data))
            if not self.answers():
                self.stop()
                return Outcome("finding", f"hang in {kind}", f"no answer in {HANG_SECONDS:g} s")
            outcome: Outcome = self.pipe.recv()
        except (EOFError, OSError):
            self.process.join(10)
            code = self.process.exitcode
            self.stop()
            return Outcome("finding", f"exit code {code} in {kind}", f"the process ended with exit code {code}")
        if outcome.signature.startswith("memory"):
            self.stop()
        return outcome

    def answers(self) -> bool:
        """Wait for an answer, as long as the process has not worked too long on it; waiting for its turn is no work."""
        began, give_up = self.worked(), time.monotonic() + WALL_SECONDS
        while self.worked() - began < HANG_SECONDS and time.monotonic() < give_up:
            if self.pipe.poll(0.5):
                return True
        return self.pipe.poll(0)

    def worked(self) -> float:
        """Seconds of processor time so far."""
        try:
            fields = Path(f"/proc/{self.process.pid}/stat").read_text().rpartition(")")[2].split()
        except OSError:  # it has ended, which the pipe will tell
            return 0.0
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    def start(self) -> None:
        self.pipe, other = self.context.Pipe()
        self.process = self.context.Process(target=_serve, args=(other, self.target), daemon=True)
        self.process.start()
        other.close()
        if not self.pipe.poll(START_SECONDS) or self.pipe.recv() != "ready":
            raise RuntimeError(f"{self.target}: the reader of whole files does not start")

    def stop(self) -> None:
        if self.process is not None:
            with contextlib.suppress(ValueError):
                self.process.kill()
                self.process.join()
            self.process = None
