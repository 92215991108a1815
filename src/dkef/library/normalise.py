"""log Z of a fitted model: by quadrature in one and two dimensions, by sampling in more."""

import math
from dataclasses import dataclass
from typing import Annotated

from pydantic import Field

from dkef.config.typed import section
from dkef.core.arrays import Array
from dkef.core.errors import DkefError
from dkef.library.density import LogZ
from dkef.metrics.integrals import doubt
from dkef.metrics.pointwise import NotFiniteError
from dkef.metrics.quadrature import PANELS, integrate
from dkef.models.mixture.density import LogZ as OfComponent
from dkef.models.protocol import DensityModel, FitContext
from dkef.normaliser.components import ComponentLogZ

# The rule's inner box has a half width of 16. Whitened rows hardly leave 4, so its nodes may be four times as dense.
SCALE = 0.25
LEAST_SAMPLES = 1000


def require_samples(samples: int, who: str) -> None:
    """Stop before a long fit, not after it."""
    if samples != 0 and samples < LEAST_SAMPLES:
        raise DkefError(f"{who}: log_z_samples is {samples}; allowed is 0 for no log Z, or >= {LEAST_SAMPLES}")


def log_z_of(model: DensityModel, rows: Array, context: FitContext, samples: int, obstacle: str = "") -> LogZ:
    """log Z with its interval and status; rows [n, d] are those the model was fitted to.

    samples: evaluations of the density at most, where it has to be sampled; 0 estimates nothing. obstacle: why log Z
    cannot be had, where the model's specification says so.
    """
    if model.normalised:
        return LogZ(0.0, 0.0, 0.0, 0.0, model.log_z_status)
    if obstacle:
        return LogZ(None, status=f"undefined: {obstacle}")
    if samples == 0:
        return LogZ(None, status="undefined: not asked for (log_z_samples=0)")
    integrated = _integrated(model) if model.dimension in PANELS else None
    if integrated is not None and integrated.status == "ok":
        return integrated
    try:
        found = ComponentLogZ(samples=samples).record(model, rows, context)
    except DkefError as error:  # for example a density that is not finite everywhere
        return integrated or LogZ(None, status=f"undefined: {error}")
    return LogZ(*(found[key] for key in ("log_z", "log_z_low", "log_z_high", "log_z_stderr", "status")))


@section
@dataclass(frozen=True)
class PartLogZ:
    """log Z of the components of a mixture, which weighs them by it: as for whole models of the library."""

    samples: Annotated[int, Field(ge=LEAST_SAMPLES)] = 4_000_000  # evaluations at most, where it has to be sampled

    def log_z(self, model: DensityModel, train: Array, context: FitContext) -> OfComponent:
        found = log_z_of(model, train, context, self.samples)
        if found.value is None or found.stderr is None:
            raise DkefError(f"{context.model}: log Z is {found.status}, and a mixture cannot do without it")
        return OfComponent(found.value, found.stderr, math.nan, found.status)


def _integrated(model: DensityModel) -> LogZ | None:
    """By quadrature of p~(s u) s^d over u; None where the density is not finite somewhere."""
    d = model.dimension
    try:
        found = integrate(lambda u: model.log_density(SCALE * u), d)
    except NotFiniteError:
        return None
    value, error = found.log_z.value + d * math.log(SCALE), found.log_z.error
    return LogZ(value, value - error, value + error, error, doubt(found))
