"""How far an experiment has come: its cells by state, and the core-hours spent and left.

A cell is done when its metrics are in results/<experiment> or in the bundle. One that is not is running while Snakemake
holds its lock and has marked a file of it as begun; it has failed when its newest log ends in an error.
"""

import base64
import binascii
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import pandas as pd

from dkef.config.jobs import Wanted, cell_jobs
from dkef.config.plan import Plan
from dkef.core.screen import failed
from dkef.core.tables import read_table
from dkef.results.bundle import keys_of, rows_of
from dkef.results.cost import CostModel
from dkef.results.read import Key, cell_folder, core_seconds
from dkef.results.schedule import Schedule
from dkef.results.tables import CELL_NUMBERS, CELLS, METRICS, SECONDS

STATES = ("done", "running", "failed", "left")


@dataclass(frozen=True)
class Status:
    """The state of every cell; `untrusted` are those done cells of which some metric is not to be trusted."""

    experiment: str
    states: dict[Key, str]
    untrusted: set[Key]
    spent_seconds: float
    left: Schedule

    def table(self) -> str:
        """What `make status` prints."""
        names = list(dict.fromkeys(key[:2] for key in self.states))
        wide = [max([len(name[place]) for name in names] + [7]) + 2 for place in (0, 1)]
        head = "".join(f"{word:>11}" for word in (*STATES, "untrusted"))
        lines = [f"experiment {self.experiment}", "", f"{'dataset':<{wide[0]}}{'model':<{wide[1]}}{head}"]
        for name in names:
            counts = self._counts([key for key in self.states if key[:2] == name])
            lines.append(f"{name[0]:<{wide[0]}}{name[1]:<{wide[1]}}{counts}")
        lines.append(f"{'all':<{sum(wide)}}{self._counts(list(self.states))}")
        hours = self.left.core_seconds / 3600
        lines += ["", f"core-hours: {self.spent_seconds / 3600:.2f} spent, about {hours:.2f} left for these cells"]
        return "\n".join(lines) + "\n"

    def _counts(self, keys: Sequence[Key]) -> str:
        counts = Counter(self.states[key] for key in keys)
        shown = [*(counts[state] for state in STATES), len(self.untrusted & set(keys))]
        return "".join(f"{count or '-':>11}" for count in shown)


def status_of(plan: Plan, costs: CostModel, root: Path, bundle: Path) -> Status:
    """The state of an experiment whose results are below `root`, and in a bundle where there is one."""
    folders = {key: cell_folder(plan.name, key) for key in plan.cells}
    metrics = {key: path for key, folder in folders.items() if (path := root / folder / "metrics.csv").is_file()}
    states = dict.fromkeys(metrics, "done")
    untrusted = set[Key]().union(*(_doubted(read_table(path, METRICS.columns)) for path in metrics.values()))
    spent = sum(core_seconds(path) for path in (root / "results" / plan.name).rglob("*.benchmark.jsonl"))
    if (bundle / "bundle.json").is_file():
        cells = read_table(bundle / "cells.csv", CELLS, CELL_NUMBERS)
        kept = read_table(bundle / "metrics.csv", METRICS.columns)
        only_there = {key for key in keys_of(cells) if key in folders and key not in metrics}
        states |= dict.fromkeys(only_there, "done")
        untrusted |= _doubted(kept) & only_there
        spent += float(rows_of(cells, only_there)[list(SECONDS)].sum().sum())
    begun = set(_begun(root))
    for key, folder in folders.items():
        if key not in states:
            states[key] = _unfinished(root / folder, any(path.is_relative_to(folder) for path in begun))
    left = [
        job
        for job in cell_jobs(plan, Wanted({}, ()))
        if states.get((job.dataset, job.model, job.seed)) not in (None, "done") and not (root / job.output).exists()
    ]
    return Status(plan.name, {key: states[key] for key in plan.cells}, untrusted, spent, Schedule.of(left, costs))


def _doubted(metrics: pd.DataFrame) -> set[Key]:
    """Cells of which some metric is not to be trusted."""
    return set(keys_of(metrics[metrics["status"].str.startswith("untrusted")]))


def _begun(root: Path) -> Iterator[Path]:
    """Files that jobs of a living Snakemake are about to write; it notes their names in base64."""
    state = root / ".snakemake"
    if not any((state / "locks").glob("*")):
        return
    marks = state / "incomplete"
    for mark in marks.rglob("*"):
        if mark.is_file():
            text = "".join(part.removeprefix("@") for part in mark.relative_to(marks).parts)
            try:
                yield Path(base64.urlsafe_b64decode(text).decode())
            except (binascii.Error, UnicodeDecodeError):
                continue


def _unfinished(folder: Path, begun: bool) -> str:
    if begun:
        return "running"
    logs = sorted(folder.rglob("*.log"), key=lambda log: log.stat().st_mtime)
    return "failed" if logs and failed(logs[-1]) else "left"
