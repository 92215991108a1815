"""Runs of a clone of this project: what the tests of Slurm and Kubernetes share."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from tests.workflow.outcome import differences, results_of

ROOT = Path(__file__).parents[2]


class ClusterError(Exception):
    """What is wrong with the cluster, in one sentence."""


def command(*words: str, seconds: float = 60.0) -> str:
    """Standard output of a command that has to succeed."""
    try:
        done = subprocess.run(words, check=False, capture_output=True, text=True, timeout=seconds)
    except FileNotFoundError:
        raise ClusterError(f"{words[0]} is not installed") from None
    except subprocess.TimeoutExpired:
        raise ClusterError(f"{' '.join(words)} did not end within {seconds:.0f} s") from None
    if done.returncode:
        raise ClusterError(f"{' '.join(words)} failed: {(done.stderr or done.stdout).strip()[-500:]}")
    return done.stdout


def clone(project: Path) -> None:
    """What is committed here, in a folder of its own."""
    command("git", "clone", "--quiet", "--no-hardlinks", str(ROOT), str(project))


@contextmanager
def started(project: Path, *arguments: str, path: str = "src") -> Iterator["subprocess.Popen[bytes]"]:
    """Snakemake in a project's folder, with the project's own code; what it says goes to run.log there.

    On the way out it is killed with its local jobs: told to stop, it would first wait for them.
    """
    variables = os.environ | {"PYTHONPATH": path, "TF_CPP_MIN_LOG_LEVEL": "2"}
    words = [sys.executable, "-m", "snakemake", *arguments]
    with open(project / "run.log", "ab") as log:
        run = subprocess.Popen(
            words, cwd=project, env=variables, stdout=log, stderr=log, stdin=subprocess.DEVNULL, start_new_session=True
        )
    try:
        yield run
    finally:
        with suppress(ProcessLookupError):  # nothing is left where the run ended by itself
            os.killpg(run.pid, signal.SIGKILL)
        run.wait()


def finish(project: Path, *arguments: str) -> None:
    with started(project, *arguments) as run:
        if run.wait():
            raise ClusterError(f"snakemake {' '.join(arguments)} ended with {run.returncode}, see {project}/run.log")


def say(what: str) -> None:
    print(f"{time.strftime('%H:%M:%S')} {what}", flush=True)


def require_equal(local: Path, remote: Path) -> None:
    """Stop unless a run elsewhere left what the run on this machine left."""
    if unequal := differences(local, remote):
        raise ClusterError(f"{len(unequal)} results differ from the local run, such as {unequal[0]}")
    say(f"{len(results_of(local))} results are equal to the local run's: tables to the byte, arrays to the bit")
