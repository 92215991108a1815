"""What a run shows on the terminal: a failed job's own sentence in place of the command that failed.

Snakemake prints the command with all of its configuration, kilobytes of it, and leaves the sentence in the job's log.
Its log file in .snakemake/log keeps everything. The rules attach this to Snakemake's logger; nothing here imports it.
"""

import logging
import re
from collections.abc import Sequence
from pathlib import Path

ERROR = "error: "  # how `run_stage` begins the sentence of a failed stage
STOPPED = "stopped; the same command continues"
COMMAND = re.compile(r"Command '.*' (?=returned non-zero exit status|died with)", re.DOTALL)
TOLD = re.compile(r"returned non-zero exit status (1|130)\.$")  # how `run_stage` ends, with a sentence


def last_sentence(log: Path) -> str:
    """What a job's log says about its end: its error, else the last line of what may be a traceback."""
    try:
        lines = log.read_text(encoding="utf-8", errors="replace").split("\n")
    except OSError:
        return "it left no log"
    told = [line.strip() for line in lines if line.strip()]
    errors = [line.removeprefix(ERROR) for line in told if line.startswith(ERROR)]
    found = errors or told
    return found[-1][:1000] if found else "its log is empty; it was killed, or ran out of memory or time"


def failed(log: Path) -> bool:
    """Whether a job's log ends in an error, or in the traceback of a bug."""
    try:
        lines = log.read_text(encoding="utf-8", errors="replace").strip().split("\n")
    except OSError:
        return False
    return lines[-1].startswith(ERROR) or any(line.startswith("Traceback (most recent") for line in lines)


class Screen(logging.Formatter):
    """Wraps the formatter of a terminal; remembers what failed for the end of the run."""

    def __init__(self, inner: logging.Formatter | None) -> None:
        super().__init__()
        self.inner = inner or logging.Formatter()
        self.failed: dict[
            object, tuple[str, str]
        ] = {}  # by job: its log, or its rule where it has none, and the sentence
        self.stopped = False

    def format(self, record: logging.LogRecord) -> str:
        """A text of no characters is not shown."""
        if str(record.msg).startswith("Terminating processes on user request"):
            self.stopped = True
            return STOPPED
        if self.stopped:  # all that follows is about jobs that were told to stop
            return ""
        event = getattr(getattr(record, "event", None), "value", "")
        if event == "job_error":
            return self._failure(record.__dict__)
        if event == "job_finished":  # at a second try, perhaps
            self.failed.pop(getattr(record, "job_id", None), None)
        text = self.inner.format(record)
        if event == "group_error":
            return "\n".join([text, *map(self._failure, record.__dict__["job_error_info"])])
        short, commands = COMMAND.subn("the command ", text)
        return "" if commands and TOLD.search(short) else short

    def _failure(self, job: dict[str, object]) -> str:
        logs = job.get("log")
        paths = [str(path) for path in logs] if isinstance(logs, Sequence) else []
        sentence = last_sentence(Path(paths[0])) if paths else "it has no log"
        if sentence == STOPPED:
            return ""
        self.failed[job["jobid"]] = (paths[0] if paths else str(job["rule_name"]), sentence)
        return f"job {job['jobid']} ({job['rule_name']}) failed: {sentence}\n    log: {', '.join(paths)}"

    def summary(self) -> str:
        """All failed jobs once more, for the last lines of a long run; nothing where it was stopped."""
        if self.stopped or not self.failed:
            return ""
        lines = [f"  {log}\n    {sentence}" for log, sentence in self.failed.values()]
        return "\n".join([f"{len(lines)} job{'s' * (len(lines) > 1)} failed, by log:", *lines, ""])


def attach(logger: logging.Logger) -> Screen:
    """Put a screen before the terminal of a logger, and leave its files as they are."""
    terminals = [
        handler
        for handler in logger.handlers
        if isinstance(handler, logging.StreamHandler) and not isinstance(handler, logging.FileHandler)
    ]
    before = terminals[0].formatter if terminals else None
    screen = before if isinstance(before, Screen) else Screen(before)
    for handler in terminals:
        handler.setFormatter(screen)
    return screen
