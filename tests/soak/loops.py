"""What is soaked, and a process that does it and tells how it goes."""

import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from dkef.core.streams import rng_for

ITERATIONS = 20  # of training between two kills, with a checkpoint at half of them and at the last


@dataclass(frozen=True)
class Sample:
    """What one minute showed."""

    minute: float
    megabytes: float
    rate: float  # units of work a second of processor time


def normaliser(_scratch: Path) -> Callable[[], int]:
    """log Z of a random model again and again; counts samples."""
    from dkef.config.schema.normaliser import Normaliser
    from dkef.normaliser.estimate import estimate
    from dkef.normaliser.weights import Q0Weights
    from tests.normaliser.examples import random_kef

    parameters = random_kef(d=11, m=100, widths=(30, 30, 30), taus=(0.5, 2.0, 5.0))
    n = 100_000
    settings = Normaliser(samples=2 * n, bound_samples=n, pilot_samples=n, chunk_samples=n)
    calls = iter(range(10**9))

    def work() -> int:
        estimate("q0", Q0Weights(parameters, "soak", next(calls)), settings)
        return 6 * n  # two chunks, one each for variance and Z of the bound, and the pilot's two samples

    return work


def training(scratch: Path) -> Callable[[], int]:
    """Phase 1 at the paper's sizes, killed and continued from its checkpoint again and again; counts iterations."""
    from dkef.core.threads import pin_threads
    from dkef.models.kef.fit import ScoreMatching
    from dkef.models.kef.spec import KernelExponentialFamily
    from dkef.models.protocol import FitContext
    from dkef.training.progress import Progress

    class KillError(Exception):
        """In the place of a signal."""

    class KilledRun(ScoreMatching):
        left = ITERATIONS

        def advance(self, progress: Progress, stop: int) -> Progress:
            if self.left == 0:
                raise KillError
            self.left -= 1
            return super().advance(progress, stop)

    pin_threads(1)
    x = rng_for("soak").standard_normal((1500, 11))
    spec = KernelExponentialFamily(
        max_iterations=10**9, patience=10**9, time_budget_hours=1e9, checkpoint_interval=ITERATIONS // 2
    )
    run = KilledRun(spec, x[:1200], x[1200:], FitContext("soak", checkpoint=scratch / "checkpoint.h5"))

    def work() -> int:
        run.left = ITERATIONS
        try:
            run.phase1()
        except KillError:
            return ITERATIONS
        raise RuntimeError("phase 1 ended by itself")

    return work


LOOPS = {"normaliser": normaliser, "training": training}


def resident_megabytes() -> float:
    words = Path("/proc/self/status").read_text().split()
    return int(words[words.index("VmRSS:") + 1]) / 1024


def soak(name: str, minutes: float, answer: Any) -> None:
    """Work for so long in a process of its own, and send a sample every minute, or tenth of a short time."""
    with tempfile.TemporaryDirectory() as scratch:
        work = LOOPS[name](Path(scratch))
        work()  # compiles
        every = min(1.0, minutes / 10)
        start = time.monotonic()
        while (time.monotonic() - start) / 60 < minutes:
            done, began, processor = 0, time.monotonic(), time.process_time()
            while time.monotonic() - began < 60 * every:
                done += work()
            elapsed = (time.monotonic() - start) / 60
            answer.send(Sample(elapsed, resident_megabytes(), done / (time.process_time() - processor)))
    answer.close()
