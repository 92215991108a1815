"""A mixture of models of one kind, one for each cluster of the training rows (Section 3.1)."""

from dataclasses import dataclass
from typing import Any

from dkef.config.typed import instantiate, require
from dkef.core.arrays import Array
from dkef.models.protocol import Fit, FitContext


@dataclass(frozen=True)
class Mixture:
    """Any model section as `component`; clusters by spectral clustering on a graph of nearest neighbours."""

    component: Any  # a section with `_target_`, like a model YAML
    clusters: int = 3
    neighbours: int = 10
    valid_fraction: float = 0.1  # of each cluster's rows, for the early stopping of its component
    log_z: Any = None  # a section with `_target_`, which finds log Z of unnormalised components

    def __post_init__(self) -> None:
        require(self.clusters >= 1, "model.clusters", self.clusters, ">= 1")
        require(self.neighbours >= 1, "model.neighbours", self.neighbours, ">= 1")
        require(0 < self.valid_fraction < 1, "model.valid_fraction", self.valid_fraction, "between 0 and 1")
        instantiate(self.component, "model.component", "model.component")
        if self.log_z is not None:
            instantiate(self.log_z, "model.log_z", "model.log_z")

    def fit(self, train: Array, valid: Array, context: FitContext) -> Fit:
        from dkef.models.mixture.fit import fit_mixture

        return fit_mixture(self, train, valid, context)
