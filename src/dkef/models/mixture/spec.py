"""A mixture of models of one kind, one for each cluster of the training rows (Section 3.1)."""

from dataclasses import dataclass

from dkef.config.typed import Count, Section, Share, section
from dkef.core.arrays import Array
from dkef.models.protocol import Fit, FitContext


@section
@dataclass(frozen=True)
class Mixture:
    """Any model section as `component`; clusters by spectral clustering on a graph of nearest neighbours."""

    component: Section  # like a model YAML
    clusters: Count = 3
    neighbours: Count = 10
    valid_fraction: Share = 0.1  # of each cluster's rows, for the early stopping of its component
    log_z: Section | None = None  # finds log Z of unnormalised components

    def fit(self, train: Array, valid: Array, context: FitContext) -> Fit:
        from dkef.models.mixture.fit import fit_mixture

        return fit_mixture(self, train, valid, context)
