"""`python -m tests.soak --minutes 60 [normaliser] [training]`: memory and rate of long runs, minute by minute.

Work is counted per second of processor time, so that what else the machine does is no part of it.
"""

import argparse
import multiprocessing
import sys

from tests.soak.loops import LOOPS, Sample, soak

MOST_GROWTH = 1.05  # of memory, over what it is after the warm-up
LEAST_RATE = 0.8  # of the rate after the warm-up
WARM_UP = 0.2  # of the time


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
