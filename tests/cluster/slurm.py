"""A Slurm of two nodes on this machine, started for one test and gone after it."""

import fcntl
import os
import shutil
import signal
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.cluster.runs import ClusterError, command

STATE = Path("/run/dkef-slurm")  # the name is fixed, so that what a killed run left behind is found
LOCK = STATE.with_suffix(".lock")
CONF = Path("/etc/slurm/slurm.conf")  # Snakemake's executor drops SLURM_CONF, so it has to lie here
TEMPLATE = Path(__file__).with_name("slurm.conf")
NODES = ("n1", "n2")


def install() -> None:
    """Debian's packages, where they are missing; their services are not started."""
    if all(shutil.which(name) for name in ("munged", "slurmctld", "slurmd", "sbatch", "srun", "squeue")):
        return
    if os.geteuid() != 0 or shutil.which("apt-get") is None:
        raise ClusterError("Slurm is not installed, and only root on Debian can install it here (slurm-wlm, munge)")
    os.environ["DEBIAN_FRONTEND"] = "noninteractive"
    command("apt-get", "update", "-qq", seconds=600)
    command("apt-get", "install", "-qq", "-y", "--no-install-recommends", "slurm-wlm", "munge", seconds=1200)


@contextmanager
def two_nodes() -> Iterator[None]:
    """A running cluster with the nodes n1 and n2; everything started is stopped on the way out."""
    if os.geteuid() != 0:
        raise ClusterError("the two nodes need root: they write /etc/slurm/slurm.conf and start daemons")
    if CONF.exists() and CONF.read_text() != _conf():
        raise ClusterError(f"{CONF} belongs to another Slurm; it is left as it is")
    with open(LOCK, "w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise ClusterError("another run of this test has its cluster up") from None
        stop()  # what a killed run may have left
        try:
            _start()
            yield
        finally:
            stop()


def _conf() -> str:
    return TEMPLATE.read_text().replace("{state}", str(STATE))


def _start() -> None:
    for folder in (STATE, STATE / "controller", *(STATE / f"spool.{node}" for node in NODES)):
        folder.mkdir(mode=0o755, parents=True, exist_ok=True)
    CONF.parent.mkdir(exist_ok=True)
    CONF.write_text(_conf())
    key = STATE / "munge.key"
    key.write_bytes(os.urandom(128))
    key.chmod(0o400)
    # --force: munged wants to run as a user of its own, which a test of minutes does without.
    socket = STATE / "munge.socket"
    names = {"pid-file": "munged.pid", "log-file": "munged.log", "seed-file": "munge.seed"}
    files = [f"--{option}={STATE / name}" for option, name in names.items()]
    _daemon("munged", "--foreground", "--force", f"--key-file={key}", f"--socket={socket}", *files)
    _wait_for("munged", socket.exists)
    _daemon("slurmctld", "-D", "-f", str(CONF))
    for node in NODES:
        _daemon("slurmd", "-D", "-f", str(CONF), "-N", node)
    _wait_for("two idle nodes", _idle)


def _daemon(*words: str) -> None:
    with open(STATE / f"{words[0]}.out", "ab") as out:
        process = subprocess.Popen(words, stdin=subprocess.DEVNULL, stdout=out, stderr=out, start_new_session=True)
    with open(STATE / "started", "a") as started:
        started.write(f"{process.pid} {words[0]}\n")


def _idle() -> bool:
    try:
        return command("sinfo", "-N", "-h", "-o", "%T").split() == ["idle", "idle"]
    except ClusterError:  # the controller is not listening yet
        return False


def _wait_for(what: str, ready: Callable[[], bool], seconds: float = 60.0) -> None:
    deadline = time.monotonic() + seconds
    while not ready():
        if time.monotonic() > deadline:
            logs = "\n".join(path.read_text()[-1500:] for path in sorted(STATE.glob("*.log")))
            raise ClusterError(f"no {what} after {seconds:.0f} s; the daemons say:\n{logs}")
        time.sleep(0.5)


def stop() -> None:
    """End the jobs and the daemons of this test, and remove what it wrote; nothing where nothing was started."""
    started = STATE / "started"
    if started.exists():
        daemons = [(int(pid), name) for pid, name in map(str.split, started.read_text().splitlines())]
        _cancel_all()
        for number in (signal.SIGTERM, signal.SIGKILL):
            for pid, name in reversed(daemons):
                if _runs(pid, name):
                    os.kill(pid, number)
            deadline = time.monotonic() + 15
            while time.monotonic() < deadline and any(_runs(*daemon) for daemon in daemons):
                time.sleep(0.2)
    if CONF.exists() and CONF.read_text() == _conf():
        CONF.unlink()
    shutil.rmtree(STATE, ignore_errors=True)


def _cancel_all() -> None:
    """Best effort: a controller that is gone has no jobs to cancel."""
    try:
        for _ in range(60):
            if not command("squeue", "-h", "-o", "%i").strip():
                return
            command("scancel", "--user=root")
            time.sleep(0.5)
    except ClusterError:
        return


def _runs(pid: int, name: str) -> bool:
    """Whether that daemon still runs; another process may have its number by now."""
    try:
        stat = Path(f"/proc/{pid}/stat").read_text()
    except (FileNotFoundError, ProcessLookupError):
        return False
    seen, state = stat.partition("(")[2].rpartition(")")[0], stat.rpartition(")")[2].split()[0]
    return seen == name and state != "Z"
