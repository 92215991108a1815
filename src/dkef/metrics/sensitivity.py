"""FSSD and KSD of all models of a (dataset, seed), over bandwidths and numbers of locations.

More locations extend fewer ones, so that the cell with the settings of the comparison is that of metrics.csv.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any, Self

from dkef.config.schema.metrics import Comparison, Sensitivity
from dkef.core.arrays import Array
from dkef.metrics.pointwise import NotFiniteError, require_finite
from dkef.metrics.setup import ComparisonSetup
from dkef.metrics.stein import Discrepancy, fssd, ksd
from dkef.models.evaluation import EvaluatedModel


@dataclass(frozen=True)
class Sweep:
    """The settings to go through, those of the comparison among them; sorted."""

    factors: list[float]
    counts: list[int]
    block_rows: int

    @classmethod
    def around(cls, settings: Comparison, wider: Sensitivity) -> Self:
        factors = {*wider.bandwidth_factors, settings.fssd_bandwidth_factor, settings.ksd_bandwidth_factor}
        return cls(sorted(factors), sorted({*wider.locations, settings.fssd_locations}), settings.block_rows)

    def setup(self, x: Array, dataset: str, seed: int, settings: Comparison) -> ComparisonSetup:
        """The comparison's setup with as many locations as any cell needs."""
        return ComparisonSetup.draw(x, dataset, seed, replace(settings, fssd_locations=max(self.counts)))

    def cells(self) -> Iterator[dict[str, Any]]:
        for factor in self.factors:
            for count in self.counts:
                yield {"statistic": "fssd2", "bandwidth_factor": factor, "locations": count}
            yield {"statistic": "ksd2", "bandwidth_factor": factor, "locations": None}


def measure(model: EvaluatedModel, setup: ComparisonSetup, sweep: Sweep, threads: int = 1) -> Iterator[dict[str, Any]]:
    """FSSD^2 for every factor and number of locations, KSD^2 for every factor: a row each, with its status."""
    status = model.status
    try:
        require_finite("scores", model.score)
    except NotFiniteError as error:
        status = status if status != "ok" else f"invalid: {error}"
    x, rows = setup.x, setup.ksd_rows
    for cell in sweep.cells():
        if status != "ok":
            yield cell | {"value": None, "stderr": None, "status": status}
            continue
        width = cell["bandwidth_factor"] * setup.median
        found: Discrepancy
        if cell["statistic"] == "fssd2":
            found = fssd(x, model.score, setup.locations[: cell["locations"]], width, sweep.block_rows)
        else:
            found = ksd(x[rows], model.score[rows], width, threads=threads)
        yield cell | {"value": found.statistic, "stderr": found.stderr, "status": status}
