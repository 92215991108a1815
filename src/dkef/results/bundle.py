"""Bundles: the finished cells of an experiment in a few small files, to be kept in the repository and merged.

    metrics.csv     every metric of every finished cell
    cells.csv       what produced each cell: configuration, code, processor, libraries, seconds; how its log Z was found
    traces.csv.gz   validation losses by iteration
    facts.json      what the grid stage found, for every planar cell
    grids/          the arrays that figures draw, in float16 and no finer than a picture shows; the truth of a set once

A bundle alone is enough for every figure, table and claim. Bundles of several machines merge cell by cell.
"""

import gzip
import io
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from dkef.core.arrays import Array
from dkef.core.errors import DkefError, one_line
from dkef.core.files import read_json, whole_file, write_json
from dkef.core.hdf5 import read_hdf5, write_hdf5
from dkef.core.tables import read_table, write_table
from dkef.results.gather import order_metrics
from dkef.results.read import Grid, Key, read_grid
from dkef.results.tables import CELL_NUMBERS, CELLS, METRICS

TRACE = ("iteration", "validation_loss")
TRUTH, TRUTH_FILE = "true_log_density", "truth.h5"
# Step, and depth below the maximum, of what is drawn in the plane: 9 nats in 256 colours, and one contour.
STEPS = {"log_density": (1 / 64, 24.0), TRUTH: (1 / 64, 24.0), "kernel": (1 / 256, 1.0)}
SMALL: dict[str, Any] = {"compression": "gzip", "shuffle": True}
AGAIN_FROM_GIT = "take the bundle from git again"
FOREIGN = "give the folder of a bundle that `make publish` wrote"


@dataclass(frozen=True)
class Bundle:
    """The contents of a bundle."""

    experiment: str
    cells: pd.DataFrame  # columns CELLS, one row a cell
    metrics: pd.DataFrame  # texts, as in metrics.csv
    traces: Mapping[Key, pd.DataFrame]
    facts: Mapping[Key, Mapping[str, Any]]
    grids: Mapping[Key, Grid]  # arrays of some of the cells in `facts`

    @property
    def keys(self) -> list[Key]:
        return keys_of(self.cells)

    def part(self, keys: set[Key]) -> "Bundle":
        """The bundle of some of its cells."""
        return Bundle(
            self.experiment,
            rows_of(self.cells, keys),
            rows_of(self.metrics, keys),
            {key: trace for key, trace in self.traces.items() if key in keys},
            {key: facts for key, facts in self.facts.items() if key in keys},
            {key: grid for key, grid in self.grids.items() if key in keys},
        )

    def without_panels(self, models: Collection[tuple[str, str]]) -> "Bundle":
        """The same without the arrays of models, each named with its dataset, that no figure draws."""
        return replace(self, grids={key: grid for key, grid in self.grids.items() if key[:2] not in models})


def keys_of(frame: pd.DataFrame) -> list[Key]:
    """The cell of each row."""
    return [(d, m, int(s)) for d, m, s in zip(frame["dataset"], frame["model"], frame["seed"], strict=True)]


def rows_of(frame: pd.DataFrame, cells: Collection[Key]) -> pd.DataFrame:
    """The rows of some cells; all columns stay where there is none."""
    chosen: pd.DataFrame = frame.loc[[key in cells for key in keys_of(frame)], :]
    return chosen


def write_bundle(folder: Path, bundle: Bundle) -> None:
    """Write a bundle; files of single panels first, so that a reader never misses one that the tables name."""
    _write_grids(folder / "grids", bundle.grids)
    write_json(folder / "facts.json", {"/".join(map(str, key)): dict(f) for key, f in sorted(bundle.facts.items())})
    _write_traces(folder / "traces.csv.gz", bundle.traces)
    cells = bundle.cells.astype(object)
    write_table(folder / "cells.csv", CELLS, cells.where(cells.notna(), None).to_dict("records"))
    write_table(folder / "metrics.csv", METRICS.columns, order_metrics(bundle.metrics).to_dict("records"))
    write_json(folder / "bundle.json", {"experiment": bundle.experiment, "cells": len(bundle.cells)})


def _write_grids(folder: Path, grids: Mapping[Key, Grid]) -> None:
    """A file a grid; the true density, which all grids of a set have, in a file of its own."""
    short = {key: _short(grid.arrays) for key, grid in sorted(grids.items())}
    files = {key: folder / key[0] / f"{key[1]}_seed{key[2]}.h5" for key in short}
    for path in set(folder.glob("*/*_seed*.h5")) - set(files.values()):
        path.unlink()  # of a panel that is no longer kept
    truths: dict[str, dict[str, Array]] = {}
    for (dataset, _, _), arrays in short.items():
        if TRUTH in arrays:
            truths.setdefault(dataset, {name: arrays[name] for name in (TRUTH, "axis")})
    for dataset, truth in truths.items():
        write_hdf5(folder / dataset / TRUTH_FILE, truth, {"dataset": dataset}, **SMALL)
    for (dataset, model, seed), arrays in short.items():
        own = {name: array for name, array in arrays.items() if name != TRUTH or not _equal(truths[dataset], arrays)}
        path, facts = files[dataset, model, seed], grids[dataset, model, seed].facts
        if not path.is_file() or read_grid(path)[1].facts != facts:
            write_hdf5(path, own, facts, **SMALL)


def _short(arrays: Mapping[str, Array]) -> dict[str, Array]:
    """float16, and in the plane no finer than a picture shows.

    Of one coordinate the density itself is drawn, as a line on which steps would be seen.
    """
    planar = arrays["log_density"].ndim == 2
    return {n: _stepped(array, *STEPS[n]) if planar and n in STEPS else _half(array) for n, array in arrays.items()}


def _half(array: Array) -> Array:
    return np.clip(array, -6e4, 6e4).astype(np.float16) if array.dtype.kind == "f" else array


def _stepped(array: Array, step: float, depth: float) -> Array:
    """Multiples of the step; what lies deeper below the maximum is raised, and stays far below what is drawn."""
    wide = array.astype(np.float64)
    top = np.max(wide, where=np.isfinite(wide), initial=-6e4)  # the mass of a model may lie elsewhere
    return _half(np.round(np.maximum(wide, top - depth) / step) * step)


def _equal(truth: Mapping[str, Array], arrays: Mapping[str, Array]) -> bool:
    return all(np.array_equal(array, arrays[name], equal_nan=True) for name, array in truth.items())


def _read_grids(folder: Path) -> Iterator[tuple[Key, Grid]]:
    """All grids, each with the truth of its set."""
    for path in sorted(folder.glob("*/*_seed*.h5")):
        key, grid = read_grid(path)
        truth = path.with_name(TRUTH_FILE)
        if TRUTH not in grid and truth.is_file():
            known = read_hdf5(truth, "the true density of a set", AGAIN_FROM_GIT).arrays
            if TRUTH in known and np.array_equal(known.get("axis", ()), grid["axis"]):
                grid = Grid({**grid.arrays, TRUTH: known[TRUTH]}, grid.facts)
        yield key, grid


def _write_traces(path: Path, traces: Mapping[Key, pd.DataFrame]) -> None:
    text = io.StringIO()
    text.write("dataset,model,seed,iteration,validation_loss\n")
    for (dataset, model, seed), trace in sorted(traces.items()):
        for iteration, loss in trace[list(TRACE)].dropna().to_numpy():
            text.write(f"{dataset},{model},{seed},{int(iteration)},{loss:.6g}\n")
    with whole_file(path) as scratch:
        # No time in the header: equal traces are equal bytes.
        scratch.write_bytes(gzip.compress(text.getvalue().encode(), mtime=0))


def read_bundle(folder: Path) -> Bundle:
    """Read what `write_bundle` wrote; a sentence for a folder that is not one, or not whole."""
    if not (folder / "bundle.json").is_file():
        raise DkefError(f"{folder} is not a bundle (it has no bundle.json); {FOREIGN}")
    about = read_json(folder / "bundle.json")
    cells = read_table(folder / "cells.csv", CELLS, CELL_NUMBERS)
    cells = cells.assign(seed=[int(seed) for seed in cells["seed"]])
    metrics = read_table(folder / "metrics.csv", METRICS.columns)
    if len(cells) != about.get("cells") or set(keys_of(metrics)) != set(keys_of(cells)):
        raise DkefError(f"{folder}: cells.csv and metrics.csv are of different cells; {AGAIN_FROM_GIT}")
    facts = {_key(name, folder): found for name, found in read_json(folder / "facts.json").items()}
    grids = dict(_read_grids(folder / "grids"))
    return Bundle(str(about["experiment"]), cells, metrics, _read_traces(folder / "traces.csv.gz"), facts, grids)


def _key(name: str, folder: Path) -> Key:
    try:
        dataset, model, seed = name.split("/")
        return dataset, model, int(seed)
    except ValueError:
        raise DkefError(f"{folder}/facts.json has the key {one_line(name)}, which is no cell; {FOREIGN}") from None


def _read_traces(path: Path) -> dict[Key, pd.DataFrame]:
    try:
        table = pd.read_csv(path, compression="gzip")
        return {
            (str(d), str(m), int(s)): rows[list(TRACE)].reset_index(drop=True)
            for (d, m, s), rows in table.groupby(["dataset", "model", "seed"], sort=False)
        }
    except (OSError, EOFError, ValueError, KeyError) as error:
        raise DkefError(f"{path} cannot be read ({one_line(error)}); {AGAIN_FROM_GIT}") from None


def merge(bundles: Sequence[Bundle]) -> Bundle:
    """All cells of some bundles of one experiment; of a cell in several, that of the latest code.

    The configuration of such a cell must be the same everywhere.
    """
    experiments = {bundle.experiment for bundle in bundles}
    if len(experiments) != 1:
        raise DkefError(f"bundles of different experiments cannot be merged: {', '.join(sorted(experiments))}")
    chosen: dict[Key, tuple[str, int]] = {}
    digests: dict[Key, tuple[str, str]] = {}
    for number, bundle in enumerate(bundles):
        for key, row in zip(bundle.keys, bundle.cells.to_dict("records"), strict=True):
            digest, version = str(row["config_digest"]), str(row["code_version"])
            known = digests.setdefault(key, (digest, version))
            if known[0] != digest:
                raise DkefError(
                    f"{'/'.join(map(str, key))} was run with configuration {known[0]} (code {known[1]}) and "
                    f"with {digest} (code {version}); publish only one of them, or say --replace for the one found here"
                )
            chosen[key] = max(chosen.get(key, ("", 0)), (str(row["code_date"]), number))
    parts = [
        bundle.part({key for key, (_, winner) in chosen.items() if winner == number})
        for number, bundle in enumerate(bundles)
    ]
    return Bundle(
        experiments.pop(),
        pd.concat([part.cells for part in parts]).sort_values(["dataset", "model", "seed"]).reset_index(drop=True),
        pd.concat([part.metrics for part in parts]).reset_index(drop=True),
        {key: trace for part in parts for key, trace in part.traces.items()},
        {key: facts for part in parts for key, facts in part.facts.items()},
        {key: grid for part in parts for key, grid in part.grids.items()},
    )
