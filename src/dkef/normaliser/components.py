"""log Z of the components of a mixture, while the mixture is fitted."""

import math
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

from pydantic import Field

from dkef.config.typed import Positive, section
from dkef.core.arrays import Array
from dkef.models.mixture.density import LogZ
from dkef.models.protocol import DensityModel, FitContext


@section
@dataclass(frozen=True)
class ComponentLogZ:
    """log Z of components as for whole models: to a tolerance, confirmed by a second method."""

    samples: Annotated[int, Field(ge=1000)] = 10_000_000  # evaluations of p~ at most
    tolerance: Positive = 0.01  # nats, of the bias bound
    half_width: Positive = 0.04  # nats, of the 95 % interval

    def log_z(self, model: DensityModel, train: Array, context: FitContext) -> LogZ:
        """Value, error, bound and status; the rows [n, d] are those the component was fitted to."""
        found = self.record(model, train, context)
        bias = found["log_z_bias_bound"]
        return LogZ(found["log_z"], found["log_z_stderr"], math.nan if bias is None else bias, found["status"])

    def record(self, model: DensityModel, train: Array, context: FitContext) -> dict[str, Any]:
        """The whole record of an estimate, as in a log_z.json."""
        from dkef.config.schema.normaliser import Normaliser
        from dkef.normaliser.integrand import integrand_of
        from dkef.normaliser.target import TargetRun

        part = max(self.samples // 50, 1)
        settings = Normaliser(
            proposal="cheapest", samples=self.samples, bound_samples=self.samples, pilot_samples=part,
            chunk_samples=part, tolerance=self.tolerance, half_width=self.half_width, percentile=20.0,
        )  # fmt: skip
        with tempfile.TemporaryDirectory() as folder:
            integrand = integrand_of(model, context.model)
            run = TargetRun(integrand, train, settings, context.cell, context.threads, context.log)
            return run.in_folder(Path(folder))
