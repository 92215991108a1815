"""log Z of the components of a mixture, while the mixture is fitted."""

import math
from dataclasses import dataclass

from dkef.config.typed import AtLeastTwo, section
from dkef.core.arrays import Array
from dkef.core.errors import DkefError
from dkef.models.mixture.density import LogZ
from dkef.models.protocol import DensityModel, FitContext


@section
@dataclass(frozen=True)
class ComponentLogZ:
    """log Z of kernel exponential families from samples of their q0, with its bias bounded (Proposition 1)."""

    samples: AtLeastTwo = 10_000_000

    def log_z(self, model: DensityModel, train: Array, context: FitContext) -> LogZ:
        """The pilot takes a tenth of the samples, each of the two runs behind the bound a fifth."""
        from dkef.config.schema.normaliser import Normaliser
        from dkef.models.kef.density import KefModel
        from dkef.normaliser.estimate import estimate
        from dkef.normaliser.weights import Q0Weights

        if not isinstance(model, KefModel):
            raise DkefError(
                f"{context.model}: log Z of a {type(model).__name__} cannot be estimated from samples of q0; only "
                "kernel exponential families can, so choose another class for model.log_z"
            )
        fifth, tenth = max(self.samples // 5, 2), max(self.samples // 10, 1)
        settings = Normaliser(samples=self.samples, bound_samples=fifth, pilot_samples=tenth, chunk_samples=fifth)
        found = estimate("q0", Q0Weights(model.parameters, *context.cell), settings, context.threads)
        bias = found["log_z_bias_bound"]
        return LogZ(found["log_z"], found["log_z_stderr"], math.nan if bias is None else bias, found["status"])
