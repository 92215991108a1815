"""What every model of a (dataset, seed) is compared with: the same points, locations and kernel width."""

from dataclasses import dataclass, replace
from typing import Self

import numpy as np

from dkef.config.schema.metrics import Comparison
from dkef.core.arrays import Array
from dkef.core.streams import rng_for
from dkef.metrics.stein import draw_locations, median_distance


@dataclass(frozen=True)
class ComparisonSetup:
    """Test points and all that is drawn beside them, from streams that know the dataset and the seed but no model."""

    x: Array  # [n, d]
    locations: Array  # [J, d]
    median: float  # distance between two test points
    ksd_rows: Array  # [n'], row numbers

    @classmethod
    def draw(cls, x: Array, dataset: str, seed: int, settings: Comparison) -> Self:
        """The setup of a (dataset, seed)."""
        noise = settings.fssd_location_noise
        locations = draw_locations(x, settings.fssd_locations, noise, rng_for("fssd-locations", dataset, seed))
        median = median_distance(x, settings.median_rows, rng_for("median-rows", dataset, seed))
        rows = np.arange(len(x))
        if len(x) > settings.ksd_max_rows:
            rows = rng_for("ksd-rows", dataset, seed).choice(rows, settings.ksd_max_rows, replace=False)
        return cls(x, locations, median, np.sort(rows))

    def rows(self, kept: Array) -> "ComparisonSetup":
        """The same on some of the points, kept being [n] of bool; locations and width stay."""
        number = np.cumsum(kept) - 1  # of each point among those that stay
        return replace(self, x=self.x[kept], ksd_rows=number[self.ksd_rows[kept[self.ksd_rows]]])
