"""`python -m tests.faults [FAULT ...]`: disturb runs in every way there is, resume them, print a table of outcomes."""

import argparse
import os
import random
import signal
import sys
import tempfile
import time
import traceback
from collections.abc import Callable
from pathlib import Path

from tests.faults import kills, surroundings
from tests.faults.playground import FIGURES, TARGETS, Playground
from tests.faults.surroundings import CELL, DKEF, MADE

REPORT = Path("results/faults.md")
# A missing file is made again where something else needs it, hence all that follows from one.
PARTS = (
    f"{MADE}/evaluation.h5", f"{MADE}/metrics.csv",
    *(f"results/faults/{name}.csv" for name in ("metrics", "summary", "paired_tests", "claims")),
)  # fmt: skip
Fault = tuple[int, Callable[[], list[str]]]  # times tried, and what is wrong afterwards


class Suite:
    """All faults, on copies of one undisturbed run."""

    def __init__(self, folder: Path, tries: int, seed: int) -> None:
        self.folder, self.tries, self.seed = folder, tries, seed
        self.copies = 0
        start = time.monotonic()
        self.reference = Playground.make(folder / "reference")
        self.reference.resume()
        self.seconds = time.monotonic() - start
        print(f"an undisturbed run takes {self.seconds:.0f} s", flush=True)
        self.drawn = self.reference.copy(folder / "drawn")
        self.drawn.resume(*TARGETS, *FIGURES)

    def rng(self, name: str) -> random.Random:
        return random.Random(f"{self.seed} {name}")

    def disturbed(self, name: str) -> kills.Disturbed:
        place = self.folder / name.replace(" ", "_")
        return kills.Disturbed(self.reference, place, self.seconds / 4, self.rng(name))

    def finished(self) -> Playground:
        """A finished run of its own, figures included."""
        self.copies += 1
        return self.drawn.copy(self.folder / f"copy{self.copies}")

    def partly(self) -> Playground:
        """A run with some of its jobs still to do."""
        ground = self.finished()
        for name in PARTS:
            (ground.folder / name).unlink()
        return ground

    def faults(self) -> dict[str, Fault]:
        reference, tries = self.reference, self.tries
        fresh = self.folder / "fresh"
        found: dict[str, Fault] = {
            "kill -9 the scheduler": (tries, lambda: kills.killed_schedulers(self.disturbed("scheduler"), tries)),
            "kill -9 single jobs": (tries, lambda: kills.killed_jobs(self.disturbed("jobs"), tries)),
            "SIGTERM": (2, lambda: kills.signalled(self.disturbed("term"), signal.SIGTERM, 2)),
            "SIGINT": (2, lambda: kills.signalled(self.disturbed("int"), signal.SIGINT, 2)),
            "two snakemake at once": (1, lambda: kills.two_at_once(Playground.make(self.folder / "two"), reference)),
            "full disk under results": (
                2, lambda: surroundings.full_disk(Playground.make(fresh), reference, ("40k", "160k")),
            ),
            "full /tmp": (1, lambda: surroundings.full_tmp(Playground.make(self.folder / "full_tmp"), reference)),
            "input removed under way: splits": (1, lambda: self.removed("data/processed/ring_tiny/seed0.h5", CELL)),
            "input removed under way: model": (1, lambda: self.removed(f"{MADE}/model.h5", MADE)),
            "times of files in future and past": (
                1, lambda: surroundings.wrong_clock(self.finished(), reference, self.rng("clock")),
            ),
        }  # fmt: skip
        for name, shift in (("forward", 86_400.0), ("back", -86_400.0)):
            found[f"clock jumps {name} a day"] = (1, self.jumping(name, shift))
        for model, cell in (("made", MADE), ("dkef", DKEF)):
            found[f"kill -9 after a checkpoint: {model}"] = (1, self.killed_training(cell))
        for way in ("truncate", "flip"):
            for batch, files in enumerate(surroundings.BATCHES):
                found[f"{way}: {', '.join(files.values())}"] = (len(files), self.damaged(batch, way))
            found[f"{way}: parts that target keeps"] = (len(surroundings.KEPT), self.damaged_parts(way))
            found[f"{way}: checkpoint of dkef"] = (1, self.killed_training(DKEF, way))
            found[f"{way}: checkpoint of made"] = (1, self.killed_training(MADE, way))
        return found

    def removed(self, victim: str, follows: str) -> list[str]:
        # Tables and figures of the whole experiment follow from every cell.
        return surroundings.removed_under_way(
            self.partly(), self.reference, victim, (f"{follows}/", *PARTS, "figures/")
        )

    def damaged(self, batch: int, way: str) -> Callable[[], list[str]]:
        rng = self.rng(f"{way} {batch}")
        return lambda: surroundings.damaged_files(self.finished(), self.reference, batch, way, rng)

    def damaged_parts(self, way: str) -> Callable[[], list[str]]:
        rng = self.rng(f"{way} parts")
        return lambda: surroundings.damaged_parts(self.finished(), self.reference, way, rng)

    def killed_training(self, cell: str, way: str | None = None) -> Callable[[], list[str]]:
        rng = self.rng(f"{way} checkpoint of {cell}")
        return lambda: surroundings.killed_training(self.finished(), self.reference, cell, way, rng)

    def jumping(self, name: str, shift: float) -> Callable[[], list[str]]:
        after = self.seconds * self.rng(f"jump {name}").uniform(0.3, 0.7)
        place = self.folder / f"clock_{name}"
        return lambda: surroundings.jumping_clock(Playground.make(place), self.reference, after, shift)


def outcome_of(fault: Callable[[], list[str]]) -> str:
    try:
        wrong = fault()
    except AssertionError as error:
        wrong = [str(error)]
    except Exception:
        wrong = [traceback.format_exc()]
    return "FAILED: " + "; ".join(wrong) if wrong else "as the undisturbed run"


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m tests.faults", description=__doc__.splitlines()[0])
    parser.add_argument("words", nargs="*", metavar="FAULT", help="only faults whose name holds one of these texts")
    parser.add_argument("--tries", type=int, default=20, help="random moments of each kind of kill (default: 20)")
    parser.add_argument("--seed", type=int, default=0, help="of the random moments and places")
    args = parser.parse_args()
    if os.geteuid() != 0:
        sys.exit("error: the fault suite mounts small disks; run it as root")
    signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell's background jobs ignore it, and so would ours
    with tempfile.TemporaryDirectory(prefix="dkef-faults-", ignore_cleanup_errors=True) as name:
        suite = Suite(Path(name), args.tries, args.seed)
        rows = []
        for fault, (tries, run) in suite.faults().items():
            if args.words and not any(word in fault for word in args.words):
                continue
            start = time.monotonic()
            outcome = outcome_of(run)
            rows.append(f"| {fault} | {tries} | {' '.join(outcome.split())[:300]} |")
            print(f"{fault}: {tries} times, {time.monotonic() - start:.0f} s, {outcome}", flush=True)
            table = "\n".join(["| fault | times tried | after resuming |", "|---|---|---|", *rows]) + "\n"
            REPORT.parent.mkdir(exist_ok=True)
            REPORT.write_text(table)
    print(table)
    sys.exit(any("FAILED" in row for row in rows))


if __name__ == "__main__":
    main()
