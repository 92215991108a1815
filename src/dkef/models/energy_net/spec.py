"""An energy network and how it is trained: a network f added to the logarithm of a simple density q0."""

from dataclasses import dataclass
from typing import Annotated, ClassVar, Literal

from pydantic import Field

from dkef.config.typed import Count, NotNegative, Positive, section
from dkef.core.arrays import Array
from dkef.models.kef.spec import Objective, require_below_data
from dkef.models.protocol import Fit, FitContext


@section
@dataclass(frozen=True)
class EnergyNetwork:
    """log p~(x) = f(x) + log q0(x) with log q0(x) = -sum_d |x_d - mu_d|^beta / (2 sigma_d^2); see `density`."""

    normalised: ClassVar[bool] = False
    has_q0: ClassVar[bool] = True

    # the density
    layers: Count = 2  # hidden ones, softplus below the last
    width: Count = 30
    # of the last hidden layer. tanh: f is bounded, and so is the bias of log Z | softplus: f grows linearly at most
    top_activation: Literal["tanh", "softplus"] = "tanh"
    beta: Annotated[float, Field(gt=1)] = 2.0  # not trained; mu and sigma are
    # training
    # those of kernel families, see `objectives`; validation and test always use the exact one
    objective: Objective = "exact"
    slices: Count = 1  # random directions a row of sliced, sliced_vr, finite_difference and curvature_propagation
    denoising_std: Positive = 0.1  # of the noise that denoising adds, beside noise_std
    difference_step: Positive = 0.1  # distance of the points whose differences finite_difference takes
    learning_rate: Positive = 3e-3
    batch_rows: Count = 200
    noise_std: NotNegative = 0.05  # fresh noise on training rows, never on validation rows
    weight_decay: NotNegative = 1e-4  # on weights and biases
    clip_norm: Positive = 100.0
    max_iterations: Count = 5000
    patience: Count = 500  # in iterations
    validation_interval: Count = 20
    time_budget_hours: Positive = 3.0
    max_skipped: Count = 50  # so many steps in a row without a finite gradient are a divergence

    def __post_init__(self) -> None:
        require_below_data(self)

    def fit(self, train: Array, valid: Array, context: FitContext) -> Fit:
        from dkef.models.energy_net.fit import fit_energy_network

        return fit_energy_network(self, train, valid, context)
