"""Full disks, missing inputs, damaged files and wrong clocks."""

import os
import random
import re
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from dkef.normaliser.files import chunk_name
from tests.faults.playground import FIGURES, INSIDE, TARGETS, Finished, Playground, Run
from tests.workflow.project import ROOT

CELL = "results/faults/ring_tiny"
MADE = f"{CELL}/made/seed0"
DKEF = f"{CELL}/dkef_g15/seed0"
# Files that can be damaged at once, because whoever reads one does not wait for another.
BATCHES = (
    {
        "data/processed/faults_table/seed0.h5": "splits",
        f"{MADE}/model.h5": "model",
        f"{DKEF}/normalise/z/chunk0001.json": "chunk",
    },
    {
        "data/raw/faults/table.csv": "raw file",
        f"{MADE}/evaluation.h5": "evaluation",
        f"{DKEF}/normalise/pilot.json": "pilot",
    },
    {f"{CELL}/gaussian/seed0/grid.h5": "grid", f"{MADE}/trace.csv": "trace"},
    {f"{CELL}/gaussian/seed0/metrics.csv": "metrics of a cell"},
    {f"{DKEF}/log_z.json": "log_z"},
    {f"{DKEF}/normalise/proposal.h5": "proposal"},
    *({f"results/faults/{name}.csv": f"{name} of the experiment"} for name in ("metrics", "summary")),
)
# `normaliser=target` keeps these for itself, in a folder that Snakemake knows nothing of: the first look at a proposal,
# the fit of another, and a chunk of whichever was chosen, on which processors may differ.
CHEAPEST = f"{CELL}/dkef_target/seed0"
KEPT = ("q0/choice.json", f"*/{chunk_name('z', 0)}", "mixture/proposal.h5")


@contextmanager
def small_disk(folder: Path, size: str) -> Iterator[None]:
    """A file system of its own on a folder; its size can be changed with `resize`."""
    folder.mkdir(parents=True, exist_ok=True)
    subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={size}", "tmpfs", str(folder)], check=True)
    try:
        yield
    finally:
        subprocess.run(["umount", "-l", str(folder)], check=True)


def resize(folder: Path, size: str) -> None:
    subprocess.run(["mount", "-o", f"remount,size={size}", str(folder)], check=True)


def full_disk(ground: Playground, reference: Playground, sizes: tuple[str, ...]) -> list[str]:
    """The disk under the results is too small, then a little larger, then large enough."""
    wrong = []
    before: Finished = {}
    results = ground.folder / "results"
    with small_disk(results, sizes[0]):
        for size in sizes:
            resize(results, size)
            run = ground.start()
            if run.wait() == 0:
                wrong.append(f"{size}: exit code 0")
            # Where the log has no room either, Snakemake names the job and its empty log.
            wrong += [
                f"{size}: {problem}" for problem in unclear(run, "cannot be written|No space left|log: empty file")
            ]
            wrong += [f"{size}: stray {name}" for name in ground.strays() if name.endswith(".partial")]
            wrong += ground.lost(before)
            before = ground.finished()
        resize(results, "100m")
        ground.resume()
        wrong += ground.lost(before) + ground.problems(reference)
    return wrong


def unclear(run: Run, expected: str) -> list[str]:
    """What a failed run said that is not the expected sentence."""
    found = run.sentences()
    problems = [] if any(re.search(expected, line) for line in [*found, run.output()]) else [f"no sentence: {found}"]
    if "Traceback (most recent call last)" in run.output():
        problems.append("a traceback: " + run.output().partition("Traceback")[2][-400:])
    return problems


def full_tmp(ground: Playground, reference: Playground) -> list[str]:
    """No room in /tmp and /var/tmp, for this run alone: it does without, or says so; afterwards it ends well."""
    kept = " ".join(map(str, (ground.folder, ROOT, sys.prefix)))
    run = ground.start(wrapper=("unshare", "--mount", str(INSIDE / "full_tmp.sh"), kept))
    wrong = unclear(run, "No space left|No usable temporary") if run.wait() else []
    before = ground.finished()
    ground.drop_locks()
    ground.resume()
    return wrong + ground.lost(before) + ground.problems(reference)


def removed_under_way(ground: Playground, reference: Playground, victim: str, follows: tuple[str, ...]) -> list[str]:
    """An input goes while jobs run that read it, or are about to; only what follows from it may be made again."""
    before = ground.finished()
    run = ground.start()
    while not run.jobs() and run.process.poll() is None:
        time.sleep(0.05)
    (ground.folder / victim).unlink()
    code = run.wait()
    wrong = unclear(run, "does not exist|Missing|missing") if code else []
    ground.drop_locks()
    ground.resume()
    return wrong + ground.lost(before, (victim, *follows)) + ground.problems(reference)


def damaged_files(ground: Playground, reference: Playground, batch: int, way: str, rng: random.Random) -> list[str]:
    """Each kind of file cut off or with a flipped bit: its reader names it; deleted, it is made again."""
    for name in BATCHES[batch]:
        ground.damage(name, way, rng)
    everything = (*TARGETS, *FIGURES)
    run = ground.start(*everything)
    wrong = [] if run.wait() else ["exit code 0"]
    said = " ".join(run.sentences())
    wrong += [f"nobody names the {kind}" for name, kind in BATCHES[batch].items() if name not in said]
    wrong += unclear(run, "failed: ")
    for name in BATCHES[batch]:
        (ground.folder / name).unlink(missing_ok=True)
    # Snakemake makes a lost file again where it is asked for, not where what follows from it is still there.
    ground.resume(*everything, *reference.finished())
    return wrong + ground.problems(reference)


def kept_parts(ground: Playground) -> list[str]:
    """The one file for each of KEPT that a run has left."""
    found = [sorted((ground.folder / CHEAPEST / "normalise").glob(pattern)) for pattern in KEPT]
    assert [len(files) for files in found] == [1] * len(KEPT), f"of {KEPT} there are {found}"
    return [str(file.relative_to(ground.folder)) for (file,) in found]


def damaged_parts(ground: Playground, reference: Playground, way: str, rng: random.Random) -> list[str]:
    """A run of `target` is begun again over parts of which one is damaged: it names it; deleted, it is made again."""
    wrong = []
    for part in kept_parts(ground):
        ground.damage(part, way, rng)
        (ground.folder / CHEAPEST / "log_z.json").unlink()
        run = ground.start(f"{CHEAPEST}/log_z.json")
        if run.wait() == 0:
            wrong.append(f"{part}: exit code 0")
        if part not in " ".join(run.sentences()):
            wrong.append(f"nobody names {part}")
        (ground.folder / part).unlink()
        ground.resume(f"{CHEAPEST}/log_z.json")
    ground.resume()
    return wrong + ground.problems(reference)


def killed_training(
    ground: Playground, reference: Playground, cell: str, way: str | None, rng: random.Random
) -> list[str]:
    """Training is killed after its first checkpoint, and continues from it unless that was damaged in some way."""
    (ground.folder / cell / "model.h5").unlink()
    run = ground.start(f"{cell}/model.h5", environment=ground.from_inside(HANG="1"))
    while not (found := list((ground.folder / cell).glob("checkpoint-*.h5"))) and run.process.poll() is None:
        time.sleep(0.02)
    run.end()
    if not found:
        return [f"the training run ended without a checkpoint: {run.output()[-300:]}"]
    if way is not None:
        ground.damage(str(found[0].relative_to(ground.folder)), way, rng)
    ground.drop_locks()
    ground.resume(*reference.finished())
    expected = "continuing (from|after) iteration" if way is None else "training starts again"
    said = (ground.folder / cell / "train.log").read_text()
    wrong = [] if re.search(expected, said) else [f"the log does not say {expected!r}: {said[-300:]}"]
    return wrong + ground.problems(reference)


def jumping_clock(ground: Playground, reference: Playground, after: float, shift: float) -> list[str]:
    """The clock of all processes jumps in the middle of a run, which does not mind or says why it stops."""
    run = ground.start(environment=ground.from_inside(JUMP=f"{time.time() + after} {shift}"))
    # Snakemake refuses results that are older than what they were made from, and names the clock.
    wrong = unclear(run, "clock skew") if run.wait() else []
    before = ground.finished()
    ground.drop_locks()
    ground.resume()
    return wrong + ground.lost(before) + ground.problems(reference)


def wrong_clock(ground: Playground, reference: Playground, rng: random.Random) -> list[str]:
    """Times of files far in the future and the past, on inputs, results and code: as after a clock that jumped."""
    now = time.time()
    for top in ("data", "results", "src", "config"):
        for path in sorted((ground.folder / top).rglob("*")):
            if path.is_file() and rng.random() < 0.5:
                moment = now + rng.choice([86_400.0, 3600.0, -86_400.0, -3e8])
                os.utime(path, (moment, moment))
    ground.resume()
    return ground.problems(reference)
