"""From the folders of finished cells to a bundle, and from a bundle to what figures, claims and pages read."""

import functools
import platform
import subprocess
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pandas as pd

from dkef.core.files import read_json
from dkef.core.tables import as_numbers, read_table
from dkef.metrics.summary import summary_rows
from dkef.models.storage import read_record, read_training
from dkef.results.bundle import TRACE, Bundle, keys_of
from dkef.results.experiment import DatasetEntry, ExperimentInfo
from dkef.results.gather import order_metrics
from dkef.results.lookup import Results
from dkef.results.read import Grid, Key, cell_folder, core_seconds, read_grid, read_trace
from dkef.results.tables import CELLS, CELLS_TABLE, GRIDS, METRICS, OBJECTIVE_COSTS, SUMMARY, TRACES

PANEL_SEED = 0  # the run whose density Figure 2 draws


def collect(experiment: str, cells: Iterable[Key], root: Path) -> Bundle:
    """The bundle of those cells whose metrics are below `root`."""
    folders = {key: root / cell_folder(experiment, key) for key in cells}
    finished = {key: folder for key, folder in folders.items() if _finished(folder)}
    traces = {key: read_trace(folder / "trace.csv")[1] for key, folder in finished.items()}
    grids = {
        key: read_grid(folder / "grid.h5")[1] for key, folder in finished.items() if (folder / "grid.h5").is_file()
    }
    tables = [read_table(folder / "metrics.csv", METRICS.columns) for folder in finished.values()]
    return Bundle(
        experiment,
        pd.DataFrame([_cell(key, folder) for key, folder in finished.items()], columns=list(CELLS)),
        pd.concat(tables, ignore_index=True) if tables else pd.DataFrame(columns=list(METRICS.columns)),
        {key: trace for key, trace in traces.items() if set(TRACE) <= set(trace.columns)},
        {key: grid.facts for key, grid in grids.items()},
        {key: grid for key, grid in grids.items() if _kept(key, grid)},
    )


def _kept(key: Key, grid: Grid) -> bool:
    """Whether arrays go into a bundle; Figure 1 chooses its run by the results, and its grids are small."""
    return key[2] == PANEL_SEED or grid["log_density"].ndim == 1


def _finished(folder: Path) -> bool:
    return all((folder / name).is_file() for name in ("metrics.csv", "model.h5", "trace.csv"))


def _cell(key: Key, folder: Path) -> dict[str, Any]:
    trained = read_training(folder / "model.h5")
    made = trained.provenance
    return {
        "dataset": key[0], "model": key[1], "seed": key[2],
        "config_digest": made.config_digest, "code_version": made.code_version, "code_date": date_of(made.code_version),
        "processor": processor(), "libraries": ", ".join(f"{name} {v}" for name, v in sorted(made.libraries.items())),
        "status": trained.status, "stopped": trained.stopped,
        **_of_log_z(folder / "log_z.json"),
        "train_seconds": _seconds(folder, "train"),
        "normalise_seconds": _seconds(folder, "normalise_*", "normalise/**/*"),  # the second: pilot and chunks
        "other_seconds": _seconds(folder, "evaluate", "grid", "compare"),
        "cpu_seconds_per_step": read_record(folder / "model.h5").get("notes", {}).get("cpu_seconds_per_step"),
    }  # fmt: skip


def _of_log_z(file: Path) -> dict[str, float | None]:
    record = read_json(file) if file.is_file() else {}
    spread = record.get("concentration") or {}
    return {
        "effective_sample_size": record.get("effective_sample_size"),
        "nearest_neighbour_ratio": spread.get("nearest_neighbour_ratio"),
    }


def _seconds(folder: Path, *jobs: str) -> float | None:
    """Of all jobs whose files match; none where none was timed."""
    files = [file for job in jobs for file in sorted(folder.glob(f"{job}.benchmark.jsonl"))]
    return round(sum(map(core_seconds, files)), 2) if files else None


@functools.cache
def processor() -> str:
    """The name of this machine's processor."""
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    except OSError:
        return platform.processor()
    return next((line.partition(":")[2].strip() for line in lines if line.startswith("model name")), platform.machine())


@functools.cache
def date_of(version: str) -> str:
    """When a commit was made, as text that sorts by time; "" where this checkout does not know it."""
    commit = version.removesuffix("-dirty").rpartition("-g")[2]
    command = ["git", "show", "--no-patch", "--format=%cd", "--date=format-local:%Y-%m-%dT%H:%M:%S", commit]
    try:
        found = subprocess.run(command, capture_output=True, text=True, timeout=10, check=True, env={"TZ": "UTC"})
    except (OSError, subprocess.SubprocessError):
        return ""
    return found.stdout.strip()


def results_of(bundle: Bundle, config: str) -> Results:
    """What figures, claims and pages read, from a bundle alone; `config` is the slice of the whole experiment."""
    done = bundle.keys
    whole = ExperimentInfo.parse(config)
    entries = [_finished_part(entry, done) for entry in whole.datasets]
    info = replace(whole, datasets=tuple(e for e in entries if e.models), reduced=_reduced(whole, done))
    metrics = order_metrics(bundle.metrics)
    numbers = metrics.assign(
        number=as_numbers(metrics["value"]), value=as_numbers(metrics["value"]), stderr=as_numbers(metrics["stderr"]),
        seed=[key[2] for key in keys_of(metrics)],
    )  # fmt: skip
    summary = pd.DataFrame(summary_rows(numbers), columns=list(SUMMARY.columns))
    grids = {key: bundle.grids.get(key, Grid({}, facts)) for key, facts in bundle.facts.items()}
    tables = {
        METRICS.name: numbers,
        # As read from a file: a number that is not there is NaN.
        SUMMARY.name: summary.assign(**{name: summary[name].astype(float) for name in SUMMARY.numbers}),
        GRIDS.name: grids,
        TRACES.name: dict(bundle.traces),
        CELLS_TABLE.name: bundle.cells,
        OBJECTIVE_COSTS.name: bundle.cells.reindex(columns=OBJECTIVE_COSTS.columns),
    }
    return Results(info, tables)


def _finished_part(entry: DatasetEntry, done: list[Key]) -> DatasetEntry:
    models = {model for dataset, model, _ in done if dataset == entry.name}
    seeds = sorted({seed for dataset, _, seed in done if dataset == entry.name})
    return replace(entry, models=tuple(model for model in entry.models if model in models), seeds=tuple(seeds))


def _reduced(whole: ExperimentInfo, done: list[Key]) -> str | None:
    """What the run leaves out, with the cells that are not finished."""
    planned = sum(entry.planned(model) for entry in whole.datasets for model in entry.models)
    unfinished = f"{len(done)} of {planned} runs are finished" if len(done) < planned else None
    parts = [text for text in (whole.reduced, unfinished) if text]
    return "; ".join(parts) or None
