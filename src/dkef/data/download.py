"""One download: time-outs, retries with back-off, the whole length or nothing, and a line about its progress."""

import http.client
import logging
import ssl
import time
import urllib.error
import urllib.request
from dataclasses import dataclass
from pathlib import Path

from dkef import __version__

BLOCK = 1 << 18
MAX_WAIT = 60.0


class UnavailableError(Exception):
    """An address does not give the file; the reason, and whether asking again may help."""

    def __init__(self, reason: str, again: bool = False) -> None:
        super().__init__(reason)
        self.again = again


@dataclass(frozen=True)
class Patience:
    """How long to insist."""

    attempts: int = 4
    timeout: float = 60.0  # seconds without a byte
    pause: float = 2.0  # before the second attempt; doubles from there
    report: float = 10.0  # seconds between log lines


def download(url: str, target: Path, patience: Patience, log: logging.Logger) -> None:
    """Write what an address sends to `target`, in as many attempts as patience allows."""
    for attempt in range(1, patience.attempts + 1):
        try:
            _attempt(url, target, patience, log)
            return
        except UnavailableError as problem:
            if not problem.again or attempt == patience.attempts:
                raise
            pause = min(patience.pause * 2 ** (attempt - 1), MAX_WAIT)
            log.info("%s: %s; attempt %d of %d in %.0f s", url, problem, attempt + 1, patience.attempts, pause)
            time.sleep(pause)


def _attempt(url: str, target: Path, patience: Patience, log: logging.Logger) -> None:
    request = urllib.request.Request(url, headers={"User-Agent": f"dkef/{__version__}"})
    try:
        with urllib.request.urlopen(request, timeout=patience.timeout) as response, open(target, "wb") as file:
            length = response.headers.get("Content-Length")
            progress = Progress(url, int(length) if length and length.isdigit() else None, patience.report, log)
            while block := response.read(BLOCK):
                file.write(block)
                progress.add(len(block))
    except urllib.error.HTTPError as error:
        again = error.code >= 500 or error.code in (408, 429)
        raise UnavailableError(f"answers {error.code} {error.reason}", again) from None
    except urllib.error.URLError as error:
        raise UnavailableError(f"cannot be reached ({error.reason})", again=True) from None
    except TimeoutError:
        raise UnavailableError(f"sends nothing for {patience.timeout:g} s", again=True) from None
    except (http.client.HTTPException, ConnectionError, ssl.SSLError) as error:
        raise UnavailableError(f"breaks off ({type(error).__name__}: {error})", again=True) from None
    progress.require_all()


class Progress:
    """Counts bytes, and says now and then how many, how fast, and how long it will take."""

    def __init__(self, url: str, total: int | None, every: float, log: logging.Logger) -> None:
        self.url, self.total, self.every, self.log = url, total, every, log
        self.done = 0
        self.start = self.reported = time.monotonic()

    def add(self, size: int) -> None:
        self.done += size
        now = time.monotonic()
        if now - self.reported >= self.every:
            self.reported = now
            self.log.info("%s: %s", self.url, self.line(now - self.start))

    def line(self, seconds: float) -> str:
        rate = self.done / max(seconds, 1e-9)
        have = f"{self.done / 1e6:.1f}"
        if self.total is None:
            return f"{have} MB, {rate / 1e6:.2f} MB/s"
        left = (self.total - self.done) / max(rate, 1e-9)
        return f"{have} of {self.total / 1e6:.1f} MB, {rate / 1e6:.2f} MB/s, {left:.0f} s left"

    def require_all(self) -> None:
        """A closed connection looks like the end of the file: compare with the length that was promised."""
        if self.total is not None and self.done != self.total:
            raise UnavailableError(f"breaks off after {self.done} of {self.total} bytes", again=True)
        self.log.info("%s: done, %s", self.url, self.line(time.monotonic() - self.start))
