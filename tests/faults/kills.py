"""Runs whose scheduler or jobs are killed, stopped by signals, or started twice."""

import os
import random
import signal
import time
from pathlib import Path

from tests.faults.playground import Finished, Playground, Run


class Disturbed:
    """A run that is disturbed again and again until enough moments were tried; then it must end as if nothing had been.

    A run that reaches its end in between is compared, and the next one begins in a new folder.
    """

    def __init__(self, reference: Playground, folder: Path, longest: float, rng: random.Random) -> None:
        self.reference, self.folder, self.longest, self.rng = reference, folder, longest, rng
        self.ground = Playground.make(folder / "0")
        self.runs: list[Run] = []
        self.before: Finished = {}
        self.wrong: list[str] = []
        self.ended = 0

    def start(self) -> Run:
        self.runs.append(self.ground.start())
        return self.runs[-1]

    def under_way(self) -> Run:
        """A run at a random moment before its end, with what it has finished noted."""
        while True:
            run = self.start()
            time.sleep(self.rng.uniform(0, self.longest))
            if not self.whole(run):
                self.note()
                return run

    def note(self) -> None:
        """What was finished when last noted must still be there; then what is finished now is noted."""
        self.wrong += self.ground.lost(self.before)
        # Jobs that outlive their scheduler may still replace what the next run has finished beside them.
        if not any(run.processes() for run in self.runs[:-1]):
            self.before = self.ground.finished()

    def whole(self, run: Run) -> bool:
        """Whether the run came to its end before it could be disturbed; then another one begins."""
        if run.process.poll() != 0:
            return False
        self.finish()
        self.ended += 1
        self.ground, self.before = Playground.make(self.folder / str(self.ended)), {}
        return True

    def finish(self) -> None:
        for run in self.runs:
            run.wait_for_orphans()
        self.ground.drop_locks()
        self.note()
        self.ground.resume()
        self.wrong += self.ground.lost(self.before) + self.ground.problems(self.reference)
        self.runs = []


def killed_schedulers(disturbed: Disturbed, tries: int) -> list[str]:
    """kill -9 of the scheduler alone: its jobs go on, and every second time the next run starts beside them."""
    for killed in range(tries):
        run = disturbed.under_way()
        os.kill(run.process.pid, signal.SIGKILL)
        run.process.wait()
        if killed % 2:
            run.wait_for_orphans()
        if killed == 0:
            disturbed.ground.unlock()
        disturbed.ground.drop_locks()
    disturbed.finish()
    return disturbed.wrong


def killed_jobs(disturbed: Disturbed, tries: int) -> list[str]:
    """kill -9 of one running job at a time; the run goes on with what does not need it, and is then started again."""
    killed = 0
    run = disturbed.start()
    while killed < tries:
        time.sleep(disturbed.rng.uniform(0, disturbed.longest / 4))
        if run.process.poll() is not None:
            disturbed.whole(run)
            disturbed.note()
            run = disturbed.start()
        elif jobs := run.jobs():
            try:
                os.kill(disturbed.rng.choice(jobs), signal.SIGKILL)
                killed += 1
            except ProcessLookupError:
                pass
    run.wait()
    disturbed.finish()
    return disturbed.wrong


def signalled(disturbed: Disturbed, number: signal.Signals, tries: int) -> list[str]:
    """SIGTERM or SIGINT to the scheduler, as `kill` and Ctrl-C send them; it ends by itself."""
    for _ in range(tries):
        run = disturbed.under_way()
        if number == signal.SIGINT:  # a terminal sends it to all of them
            os.killpg(run.process.pid, number)
        else:
            os.kill(run.process.pid, number)
        if run.wait() == 0:
            disturbed.wrong.append(f"{number.name}: exit code 0")
        disturbed.ground.drop_locks()
    disturbed.finish()
    return disturbed.wrong


def two_at_once(ground: Playground, reference: Playground) -> list[str]:
    """A second `snakemake` in the same folder says that it is locked, and the first one does not notice."""
    first = ground.start()
    while not any((ground.folder / ".snakemake/locks").glob("*")) and first.process.poll() is None:
        time.sleep(0.1)
    second = ground.start()
    wrong = []
    if second.wait() == 0:
        wrong.append("the second run ended with exit code 0")
    if "cannot be locked" not in second.output():
        wrong.append(f"the second run says: {second.output()[-300:]}")
    if first.wait() != 0:
        wrong.append(f"the first run says: {first.output()[-300:]}")
    return wrong + ground.problems(reference)
