"""`python -m tests.soak --minutes 60 [normaliser] [training]`: memory and rate of long runs, minute by minute.

Work is counted per second of processor time, so that what else the machine does is no part of it.
"""

import argparse
import multiprocessing
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from dkef.streams import rng_for

MOST_GROWTH = 1.05  # of memory, over what it is after the warm-up
LEAST_RATE = 0.8  # of the rate after the warm-up
WARM_UP = 0.2  # of the time


@dataclass(frozen=True)
class Sample:
    """What one minute showed."""

    minute: float
    megabytes: float
    rate: float  # units of work a second of processor time


def normaliser() -> Callable[[], int]:
    """log Z of a random model again and again; counts samples."""
    from dkef.normaliser.estimate import estimate
    from dkef.normaliser.settings import Normaliser
    from tests.normaliser.examples import random_kef

    parameters = random_kef(d=11, m=100, widths=(30, 30, 30), taus=(0.5, 2.0, 5.0))
    n = 100_000
    settings = Normaliser(samples=2 * n, bound_samples=n, pilot_samples=n, chunk_samples=n)
    calls = iter(range(10**9))

    def work() -> int:
        estimate(parameters, settings, ("soak", next(calls)))
        return 6 * n  # two chunks, one each for variance and Z of the bound, and the pilot's two samples

    return work


def training() -> Callable[[], int]:
    """Iterations of Algorithm 1 that never stop early; counts iterations."""
    from dkef.compute import pin_threads
    from dkef.models.protocol import Workbench
    from dkef.specs.kef import KernelExponentialFamily
    from dkef.training.kef_progress import Progress
    from dkef.training.score_matching import ScoreMatching

    pin_threads(1)
    x = rng_for("soak").standard_normal((1500, 11))
    run = ScoreMatching(KernelExponentialFamily(inducing_points=100), x[:1200], x[1200:], Workbench("soak"))
    state = [Progress.start(run.start, 10**9)]

    def work() -> int:
        state[0] = run.iterate(state[0])
        return 1

    return work


LOOPS = {"normaliser": normaliser, "training": training}


def resident_megabytes() -> float:
    words = Path("/proc/self/status").read_text().split()
    return int(words[words.index("VmRSS:") + 1]) / 1024


def soak(name: str, minutes: float, answer: Any) -> None:
    """Work for so long in a process of its own, and send a sample every minute, or tenth of a short time."""
    work = LOOPS[name]()
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


def verdict(samples: list[Sample]) -> str:
    """Why the samples are not flat and steady; empty where they are."""
    warm = [sample for sample in samples if sample.minute >= WARM_UP * samples[-1].minute]
    growth = max(sample.megabytes for sample in warm) / warm[0].megabytes
    if growth > MOST_GROWTH:
        return f"memory grew by {growth - 1:.1%} after the warm-up"
    third = max(len(warm) // 3, 1)
    first, last = (sum(s.rate for s in part) / len(part) for part in (warm[:third], warm[-third:]))
    return f"the rate fell by {1 - last / first:.0%}" if last < LEAST_RATE * first else ""


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m tests.soak", description=(__doc__ or "").splitlines()[0])
    parser.add_argument("loops", nargs="*", metavar="LOOP", help=f"of {', '.join(LOOPS)} (default: all)")
    parser.add_argument("--minutes", type=float, default=60, help="for each loop (default: 60)")
    args = parser.parse_args()
    bad = 0
    for name in args.loops or LOOPS:
        context = multiprocessing.get_context("spawn")
        here, there = context.Pipe(duplex=False)
        process = context.Process(target=soak, args=(name, args.minutes, there))
        process.start()
        there.close()
        samples = []
        while True:
            try:
                samples.append(here.recv())
            except EOFError:
                break
            last = samples[-1]
            print(f"{name}: {last.minute:6.1f} min, {last.megabytes:7.1f} MB, {last.rate:10.4g} /s", flush=True)
        process.join()
        problem = verdict(samples) if process.exitcode == 0 else f"it ended with exit code {process.exitcode}"
        print(f"{name}: {problem or 'memory flat, rate steady'} over {samples[-1].minute if samples else 0:.1f} min")
        bad += bool(problem)
    sys.exit(bad)


if __name__ == "__main__":
    main()
