"""Synthetic datasets: rows drawn afresh for every seed from a distribution that is known exactly."""

from dataclasses import dataclass
from pathlib import Path

import numpy as np

from dkef.config.typed import Count, require, section
from dkef.data.source import RawTable, Source
from dkef.data.synthetic.distributions import Distribution, NormalMixture, rotated
from dkef.data.synthetic.planar import Banana, Cosine, Funnel, Rings, Square


def _mixture(weights: list[float], means: list[list[float]], stds: list[float]) -> NormalMixture:
    return NormalMixture(np.array(weights), np.array(means), np.array(stds))


KNOWN: dict[str, Distribution] = {
    "funnel": Funnel(),
    "banana": Banana(),
    "ring": Rings((5.0,)),
    "square": Square(),
    "cosine": Cosine(),
    "mog": _mixture([0.5, 0.5], [[4.0, 0.0], [-4.0, 0.0]], [0.5, 0.5]),
    "mor": Rings((1.0, 3.0, 5.0)),
    "gaussian_scales": _mixture([0.3, 0.7], [[-1.0], [1.0]], [0.2, 1.0]),
}


@section
@dataclass(frozen=True)
class Synthetic(Source):
    """Draws from one of the paper's distributions, turned by an angle where `rotate` says so."""

    distribution: str
    rows: Count = 10_000
    rotation_degrees: float = 0.0  # anticlockwise
    rotate: bool = True
    stratified: bool = False  # a mixture gives exactly rows x weight points a component

    def __post_init__(self) -> None:
        require(self.distribution in KNOWN, "distribution", self.distribution, "one of " + ", ".join(KNOWN))
        distribution = KNOWN[self.distribution]
        require(
            self.rotation_degrees == 0 or distribution.dimension == 2,
            "rotation_degrees", self.rotation_degrees, "0 for a distribution that is not planar",
        )  # fmt: skip
        require(
            not self.stratified or isinstance(distribution, NormalMixture),
            "stratified", self.stratified, "false for a distribution that is not a normal mixture",
        )  # fmt: skip

    def true_density(self) -> Distribution:
        """The distribution the rows are drawn from, in the coordinates of the rows."""
        distribution = KNOWN[self.distribution]
        return rotated(distribution, self.rotation_degrees) if self.rotate and self.rotation_degrees else distribution

    def read(self, raw: Path, rng: np.random.Generator) -> RawTable:
        """Draw the rows; nothing is read from `raw`."""
        distribution = self.true_density()
        if self.stratified and isinstance(distribution, NormalMixture):
            x = distribution.sample_stratified(self.rows, rng)
        else:
            x = distribution.sample(self.rows, rng)
        return RawTable(x, tuple(f"x{i + 1}" for i in range(x.shape[1])))
