"""Stage `sensitivity`: FSSD and KSD of all models of a (dataset, seed), over bandwidths and numbers of locations.

More locations extend fewer ones, so that the cell with the settings of the comparison is that of metrics.csv.
"""

import argparse
import json
import logging
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Self

from threadpoolctl import threadpool_limits  # type: ignore[import-untyped]

from dkef.config.schema.metrics import Comparison, Sensitivity
from dkef.config.typed import typed
from dkef.core.errors import ConfigError, run_stage
from dkef.core.provenance import canonical, code_version, config_digest
from dkef.core.tables import write_table
from dkef.data.splits import read_splits
from dkef.metrics.judge import Yardstick
from dkef.metrics.pointwise import SENSITIVITY_COLUMNS, NotFiniteError, require_finite
from dkef.metrics.stein import Discrepancy, fssd, ksd
from dkef.models.evaluation import EvaluatedModel, read_evaluation

log = logging.getLogger("dkef.stages.sensitivity")


@dataclass(frozen=True)
class Grid:
    """The settings to go through, those of the comparison among them; sorted."""

    factors: list[float]
    counts: list[int]
    block_rows: int

    @classmethod
    def around(cls, settings: Comparison, grid: Sensitivity) -> Self:
        factors = {*grid.bandwidth_factors, settings.fssd_bandwidth_factor, settings.ksd_bandwidth_factor}
        return cls(sorted(factors), sorted({*grid.locations, settings.fssd_locations}), settings.block_rows)

    def cells(self) -> Iterator[dict[str, Any]]:
        for factor in self.factors:
            for count in self.counts:
                yield {"statistic": "fssd2", "bandwidth_factor": factor, "locations": count}
            yield {"statistic": "ksd2", "bandwidth_factor": factor, "locations": None}


def measure(model: EvaluatedModel, yardstick: Yardstick, grid: Grid, threads: int = 1) -> Iterator[dict[str, Any]]:
    """FSSD^2 for every factor and number of locations, KSD^2 for every factor: a row each, with its status."""
    status = model.status
    try:
        require_finite("scores", model.score)
    except NotFiniteError as error:
        status = status if status != "ok" else f"invalid: {error}"
    x, rows = yardstick.x, yardstick.ksd_rows
    for cell in grid.cells():
        if status != "ok":
            yield cell | {"value": None, "stderr": None, "status": status}
            continue
        width = cell["bandwidth_factor"] * yardstick.median
        found: Discrepancy
        if cell["statistic"] == "fssd2":
            found = fssd(x, model.score, yardstick.locations[: cell["locations"]], width, grid.block_rows)
        else:
            found = ksd(x[rows], model.score[rows], width, threads=threads)
        yield cell | {"value": found.statistic, "stderr": found.stderr, "status": status}


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m dkef.stages.sensitivity", description=__doc__.splitlines()[0])
    parser.add_argument(
        "--config", required=True, help="canonical JSON: dataset, seed, models, comparison, sensitivity"
    )
    parser.add_argument("--evaluations", type=Path, nargs="+", required=True, help="one for each of the models")
    parser.add_argument("--data", type=Path, required=True, help="splits, from the preprocess stage")
    parser.add_argument("--threads", type=int, default=1, help="changes the time, not the numbers")
    parser.add_argument("--out", type=Path, required=True, help="CSV file to write")
    return parser.parse_args()


def main() -> None:
    args = arguments()
    config = json.loads(args.config)
    dataset, seed, models = config["dataset"], int(config["seed"]), config["models"]
    if len(models) != len(args.evaluations):
        raise ConfigError(f"--config names {len(models)} models for {len(args.evaluations)} files in --evaluations")
    settings = typed(Comparison, config["comparison"], lambda key: "--config", "comparison")
    grid = Grid.around(settings, typed(Sensitivity, config["sensitivity"], lambda key: "--config", "sensitivity"))
    x = read_splits(args.data).test
    yardstick = Yardstick.draw(x, dataset, seed, replace(settings, fssd_locations=max(grid.counts)))
    table: list[dict[str, Any]] = []
    for name, path in zip(models, args.evaluations, strict=True):
        model = read_evaluation(path, x.shape)
        with threadpool_limits(1, user_api="blas"):
            rows = list(measure(model, yardstick, grid, args.threads))
        log.info("%s, %s, seed %d: %s", dataset, name, seed, rows[0]["status"])
        digest = config_digest(canonical([config, model.record.get("config_digest")]))
        cell = {"dataset": dataset, "model": name, "seed": seed}
        table += [cell | row | {"config_digest": digest, "code_version": code_version()} for row in rows]
    write_table(args.out, SENSITIVITY_COLUMNS, table)


if __name__ == "__main__":
    run_stage(main)
