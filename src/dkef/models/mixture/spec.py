"""A mixture of models of one kind, one for each cluster of the training rows (Section 3.1)."""

from dataclasses import dataclass

from dkef.config.sentences import RuleError
from dkef.config.specification import is_normalised, no_log_z
from dkef.config.typed import Count, Section, Share, instantiate, section
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

    def __post_init__(self) -> None:
        """A mixture weighs its components by their integrals: refuse, before any job, one whose log Z nobody finds."""
        component = instantiate(self.component)
        kind = type(component).__name__
        if reason := no_log_z(component):
            raise RuleError("component", f"is a {kind}, which is not normalised and has no log Z: {reason}")
        if not is_normalised(component) and self.log_z is None:
            raise RuleError(
                "log_z",
                f"is null, but the component {kind} is not normalised; name a class that estimates log Z, such as "
                "dkef.normaliser.components.ComponentLogZ",
            )

    def fit(self, train: Array, valid: Array, context: FitContext) -> Fit:
        from dkef.models.mixture.fit import fit_mixture

        return fit_mixture(self, train, valid, context)
