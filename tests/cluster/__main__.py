"""The smoke experiment on a Slurm of two nodes, disturbed three times, ends as an undisturbed run on this machine.

`make test-slurm` runs this; the commands are those of config/README.md, "Beyond one machine".
"""

import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from tests.cluster.runs import ClusterError, clone, command, finish, require_equal, say, started
from tests.cluster.slurm import NODES, install, two_nodes
from tests.workflow.demands import overdrawn

EXPERIMENT = ("--config", "experiment=smoke")
ON_SLURM = (
    *("--workflow-profile", "workflow/profiles/slurm"),
    *("--slurm-no-account", "--slurm-status-command", "squeue"),  # this Slurm keeps no accounts
    *("--slurm-init-seconds-before-status-checks", "5"),  # and its jobs are short
)


def main() -> None:
    """Run the test; on trouble keep its folder, and say in one sentence what it was."""
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda number, _: sys.exit(f"error: stopped by {signal.Signals(number).name}"))
    folder = Path(tempfile.mkdtemp(prefix="dkef-slurm-"))
    local, remote = folder / "local", folder / "slurm"
    try:
        install()
        clone(local)
        clone(remote)
        say(f"the smoke experiment on this machine, in {local}")
        finish(local, "--cores", "2", "--benchmark-extended", *EXPERIMENT)
        for complaint in overdrawn(local):
            raise ClusterError(complaint)
        with two_nodes():
            say(f"the same on two nodes of Slurm, in {remote}")
            disturb(remote)
            say("resumed")
            finish(remote, "--unlock", *EXPERIMENT)
            finish(remote, *ON_SLURM, *EXPERIMENT)
        require_equal(local, remote)
    except ClusterError as error:
        sys.exit(f"error: {error}; both runs are kept in {folder}")
    shutil.rmtree(folder)


def disturb(project: Path) -> None:
    """Start a run, cancel a job of one node, kill the process of a job on the other, then kill the scheduler."""
    with started(project, *ON_SLURM, *EXPERIMENT) as run:
        first, _ = training_on(NODES[0], run)
        command("scancel", first)
        say(f"cancelled job {first} under way on {NODES[0]}")
        second, process = training_on(NODES[1], run)
        os.kill(process, signal.SIGKILL)
        say(f"killed the process of job {second} under way on {NODES[1]}")
        wait_until_noticed(project, first, second)
        third, _ = training_on(NODES[0], run)
        run.kill()
        say(f"both were noticed and tried again; killed the scheduler while job {third} was under way")
    # Jobs outlive their scheduler; they are cancelled so that two of them never work on one file.
    command("scancel", "--user=root")


def wait_until_noticed(project: Path, *jobs: str) -> None:
    """Until the scheduler tries the jobs again; it asks Slurm less and less often while nothing ends."""
    for _ in range(600):
        log = (project / "run.log").read_text()
        numbers = [re.search(rf"Job (\d+) has been submitted with SLURM jobid {job} ", log) for job in jobs]
        if all(number and f"Trying to restart job {number[1]}." in log for number in numbers):
            return
        time.sleep(1)
    raise ClusterError(f"the scheduler did not notice within ten minutes that jobs {', '.join(jobs)} were gone")


def training_on(node: str, run: "subprocess.Popen[bytes]") -> tuple[str, int]:
    """Number and process of a training job that runs on a node, as soon as there is one."""
    for _ in range(600):
        if run.poll() is not None:
            raise ClusterError(f"the run on Slurm ended with {run.returncode} before it was disturbed")
        for line in command("squeue", "-h", "-t", "R", "-w", node, "-o", "%i %k").splitlines():
            job, _, comment = line.partition(" ")
            process = process_of(job) if comment.startswith("rule_train") else None
            if process is not None:
                return job, process
        time.sleep(1)
    raise ClusterError(f"no training job ran on {node} within ten minutes")


def process_of(job: str) -> int | None:
    """The `dkef train` process whose environment names the job."""
    for entry in Path("/proc").iterdir():
        try:
            words = (entry / "cmdline").read_bytes().split(b"\0")
            if words[1:4] == [b"-m", b"dkef", b"train"] and f"SLURM_JOB_ID={job}".encode() in environment(entry):
                return int(entry.name)
        except OSError:  # not a process, or no longer one
            continue
    return None


def environment(entry: Path) -> list[bytes]:
    return (entry / "environ").read_bytes().split(b"\0")


if __name__ == "__main__":
    main()
