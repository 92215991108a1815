"""`python -m tests.fuzz --minutes 20 [TARGET ...]`: each target so long, one after the other."""

import argparse
import hashlib
import os
import sys
import time
from collections import Counter
from itertools import count
from pathlib import Path

from hypothesis import HealthCheck, Phase, given, seed, settings

from tests.fuzz.targets import TARGETS, module_of
from tests.fuzz.worker import Outcome, Worker

CALM = settings(
    max_examples=200, deadline=None, database=None, phases=[Phase.generate], suppress_health_check=list(HealthCheck)
)


class Campaign:
    """One target: counts what happens, and keeps the smallest case of every kind of finding."""

    def __init__(self, target: str, folder: Path) -> None:
        self.target, self.folder = target, folder
        self.worker = Worker(target)
        self.counts: Counter[str] = Counter()
        self.found: dict[str, int] = {}

    def run(self, minutes: float, first_seed: int) -> None:
        cases = module_of(self.target).cases()
        self.worker.start()
        end = time.monotonic() + 60 * minutes

        def one(case: tuple[str, bytes]) -> None:
            if time.monotonic() < end:
                self.note(*case, self.worker.read(*case))

        for number in count(first_seed):
            if time.monotonic() >= end:
                break
            seed(number)(CALM(given(cases)(one)))()
        self.worker.stop()

    def note(self, kind: str, data: bytes, outcome: Outcome) -> None:
        self.counts[outcome.verdict] += 1
        size = self.found.get(outcome.signature)
        if outcome.verdict != "finding" or (size is not None and size <= len(data)):
            return
        self.found[outcome.signature] = len(data)
        name = f"{self.target}-{kind}-{hashlib.sha256(outcome.signature.encode()).hexdigest()[:8]}"
        self.folder.mkdir(parents=True, exist_ok=True)
        (self.folder / name).write_bytes(data)
        (self.folder / f"{name}.txt").write_text(f"{outcome.signature}\n{outcome.story}\n")
        if size is None:
            print(f"{self.target}: {outcome.signature}, kept as {self.folder / name}", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz", description=__doc__.splitlines()[0])
    parser.add_argument("targets", nargs="*", metavar="TARGET", help=f"of {', '.join(TARGETS)} (default: all)")
    parser.add_argument("--minutes", type=float, default=20, help="for each target (default: 20)")
    parser.add_argument("--seed", type=int, default=0, help="where the sequence of examples begins (default: 0)")
    parser.add_argument("--folder", type=Path, default=Path("results/fuzz"), help="where findings are kept")
    args = parser.parse_args()
    if unknown := [name for name in args.targets if name not in TARGETS]:
        sys.exit(f"error: {unknown[0]} is no target; known are {', '.join(TARGETS)}")
    if Path("/dev/shm").is_dir():
        os.environ["TMPDIR"] = "/dev/shm"  # files are written in safe steps, which a disk makes slow
    bad = 0
    for target in args.targets or TARGETS:
        campaign = Campaign(target, args.folder)
        start = time.monotonic()
        campaign.run(args.minutes, args.seed)
        minutes, counts = (time.monotonic() - start) / 60, campaign.counts
        print(
            f"{target}: {minutes:.1f} min, {counts.total()} files: {counts['loads']} load, {counts['refused']} refused "
            f"with one sentence, {len(campaign.found)} findings",
            flush=True,
        )
        bad += len(campaign.found)
    sys.exit(1 if bad else 0)


if __name__ == "__main__":
    main()
