"""A copy of the project with a tiny experiment, whose runs can be disturbed; every process of a run carries a mark."""

import base64
import contextlib
import csv
import hashlib
import json
import os
import random
import re
import signal
import subprocess
import sys
import time
import uuid
from collections.abc import Iterable
from pathlib import Path

import numpy as np

from dkef.data.catalogue import COLUMNS
from tests.workflow.outcome import equal
from tests.workflow.project import Project

CONFIG = Path(__file__).parent / "config"
INSIDE = Path(__file__).parent / "inside"
MARK = "DKEF_FAULTS_RUN"
MODELS = ("gaussian", "made", "dkef_g15", "dkef_target")
GRIDS = tuple(f"results/faults/ring_tiny/{model}/seed0/grid.h5" for model in MODELS)
TARGETS = ("results/faults/claims.csv", *GRIDS)
FIGURES = ("figures/faults/toys.png", "figures/faults/toy_traces.png")
PATIENCE = 3600.0  # seconds for one run, on a machine that others use too
# Files of finished jobs, with their inodes and times: a file that was made again has another time even where the file
# system gave it the inode of the old one.
Finished = dict[str, tuple[int, int]]


class Run:
    """One `snakemake` in a session of its own."""

    def __init__(
        self, folder: Path, environment: dict[str, str], arguments: Iterable[str], wrapper: Iterable[str] = ()
    ) -> None:
        self.mark = uuid.uuid4().hex
        self.log = folder / f"run-{self.mark}.txt"
        with open(self.log, "w") as log:
            self.process = subprocess.Popen(
                [*wrapper, sys.executable, "-m", "snakemake", *arguments],
                cwd=folder, env=environment | {MARK: self.mark}, stdout=log, stderr=subprocess.STDOUT,
                start_new_session=True,
            )  # fmt: skip

    def processes(self) -> dict[int, str]:
        """Command lines of all processes that this run has started, itself included."""
        found = {}
        for entry in Path("/proc").glob("[0-9]*"):
            with contextlib.suppress(OSError):
                if f"{MARK}={self.mark}".encode() in (entry / "environ").read_bytes():
                    found[int(entry.name)] = (
                        (entry / "cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
                    )
        return {pid: line for pid, line in found.items() if line}

    def jobs(self) -> list[int]:
        """Processes that run a stage."""
        return [pid for pid, line in self.processes().items() if re.match(r"\S*python\S* -m dkef ", line)]

    def wait(self) -> int:
        try:
            return self.process.wait(PATIENCE)
        except subprocess.TimeoutExpired:
            self.end()
            raise AssertionError(f"a run did not end within {PATIENCE:.0f} s: {self.output()[-2000:]}") from None

    def wait_for_orphans(self) -> None:
        """Jobs that outlive a killed scheduler finish by themselves."""
        end = time.monotonic() + PATIENCE
        while self.processes() and time.monotonic() < end:
            time.sleep(0.2)
        self.end()

    def end(self) -> None:
        for pid in self.processes():
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        self.process.wait()

    def output(self) -> str:
        return self.log.read_text(errors="replace")

    def sentences(self) -> list[str]:
        """What stages said when they stopped, as `dkef.core.screen` shows it."""
        return sorted(set(re.findall(r"^job \S+ \(\w+\) failed: (.+)$", self.output(), re.MULTILINE)))


class Playground:
    """A folder in which the experiment is run, disturbed and resumed."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.project = Project(folder)

    @classmethod
    def make(cls, folder: Path) -> "Playground":
        Project.make(folder)
        rng = np.random.default_rng(7)
        rows = rng.normal(size=(120, 3)).round(4).tolist()
        table = "a,b,c\n" + "".join(",".join(map(str, row)) + "\n" for row in rows)
        mirror = folder / "data/mirror/faults/table.csv"
        mirror.parent.mkdir(parents=True)
        mirror.write_text(table)
        digest = hashlib.sha256(table.encode()).hexdigest()
        row = dict.fromkeys(COLUMNS, "") | {"file": "faults/table.csv", "bytes": len(table), "sha256": digest}
        with open(folder / "data/sources.csv", "a", newline="") as sources:
            csv.DictWriter(sources, COLUMNS).writerow(row | {"licence": "CC0", "page": "https://example.org"})
        return cls(folder)

    def copy(self, folder: Path) -> "Playground":
        self.project.copy(folder)
        return Playground(folder)

    def start(self, *arguments: str, environment: dict[str, str] | None = None, wrapper: Iterable[str] = ()) -> Run:
        variables = self.project.environment() | {"DKEF_CONFIG_PATH": str(CONFIG), "TF_CPP_MIN_LOG_LEVEL": "2"}
        variables.pop("DKEF_DATA_MIRROR", None)
        profile = ("--workflow-profile", "workflow/profiles/default", "--cores", "2")
        command = (*profile, *(arguments or TARGETS), "--config", "experiment=faults")
        return Run(self.folder, variables | (environment or {}), command, wrapper)

    def from_inside(self, **faults: str) -> dict[str, str]:
        """Variables with which the processes of a run disturb themselves, see inside/sitecustomize.py."""
        path = self.project.environment()["PYTHONPATH"]
        return {f"DKEF_FAULTS_{name}": value for name, value in faults.items()} | {
            "PYTHONPATH": os.pathsep.join([str(INSIDE), path])
        }

    def unlock(self) -> None:
        """What Snakemake asks for after its scheduler was killed: `snakemake --unlock`."""
        run = self.start("--unlock")
        assert run.wait() == 0, run.output()

    def drop_locks(self) -> None:
        """What `--unlock` does, without waiting for Snakemake to start."""
        for lock in (self.folder / ".snakemake/locks").glob("*"):
            lock.unlink()

    def resume(self, *arguments: str) -> None:
        """Continue a disturbed run to its end, which must be a good one."""
        run = self.start(*arguments)
        code = run.wait()
        run.wait_for_orphans()
        assert code == 0, run.output()[-4000:]

    def finished(self) -> Finished:
        """Files of jobs that Snakemake knows to be finished."""
        incomplete = {path.name for path in (self.folder / ".snakemake/incomplete").glob("*")}
        found = {}
        for entry in (self.folder / ".snakemake/metadata").glob("*"):
            with contextlib.suppress(OSError, ValueError):
                if entry.name not in incomplete and not json.loads(entry.read_text()).get("incomplete", False):
                    name = base64.b64decode(entry.name).decode()
                    found[name] = self.made(name)
        return found

    def made(self, name: str) -> tuple[int, int]:
        """Which making of a file lies there."""
        status = (self.folder / name).stat()
        return status.st_ino, status.st_mtime_ns

    def lost(self, before: Finished, follows: tuple[str, ...] = ()) -> list[str]:
        """Finished files that were made again or are gone, less those that begin with one of `follows`."""
        return [
            f"lost: {name}" for name, making in before.items()
            if not name.startswith(follows) and (not (self.folder / name).exists() or self.made(name) != making)
        ]  # fmt: skip

    def strays(self) -> list[str]:
        """Files that a finished run must not leave behind."""
        patterns = ("*.partial", "checkpoint-*", "*.archive")
        return sorted(str(path.relative_to(self.folder)) for pattern in patterns for path in self.folder.rglob(pattern))

    def products(self) -> dict[str, Path]:
        tops = [self.folder / top for top in ("data/raw", "data/processed", "results")]
        kinds = (".csv", ".json", ".h5")
        files = (path for top in tops for path in top.rglob("*") if path.suffix in kinds)
        return {str(path.relative_to(self.folder)): path for path in files}

    def differences(self, reference: "Playground") -> list[str]:
        """Results that are not those of an undisturbed run."""
        ours, theirs = self.products(), reference.products()
        wrong = [f"only once: {name}" for name in ours.keys() ^ theirs.keys()]
        wrong += [f"differs: {name}" for name in ours.keys() & theirs.keys() if not equal(ours[name], theirs[name])]
        return sorted(wrong)

    def problems(self, reference: "Playground") -> list[str]:
        return self.differences(reference) + [f"stray: {name}" for name in self.strays()]

    def damage(self, name: str, way: str, rng: random.Random) -> None:
        """Cut a file off or flip one bit of it, somewhere."""
        path = self.folder / name
        data = bytearray(path.read_bytes())
        place = rng.randrange(len(data))
        if way == "truncate":
            data = data[:place]
        else:
            data[place] ^= 1 << rng.randrange(8)
        path.write_bytes(bytes(data))
