"""The likelihood baselines MADE, MADE-MOG, Real NVP, MAF and MAF-MOG: one family, five YAMLs."""

from dataclasses import dataclass
from typing import Literal

from dkef.config.typed import Count, NotNegative, Positive, Whole, require, section
from dkef.core.arrays import Array
from dkef.models.protocol import Fit, FitContext


@section
@dataclass(frozen=True)
class Flow:
    """Layers between x and a base density, their networks, and training by maximum likelihood.

    MADE has one autoregressive layer over N(0, I); MADE-MOG no layer and a base of `components` Gaussians for each
    conditional; Real NVP, MAF and MAF-MOG have five layers with batch normalisation after each.
    """

    # the density
    transform: Literal["autoregressive", "coupling"] = "autoregressive"
    layers: Whole = 1
    components: Whole = 0  # of the mixture conditionals of the base; 0 is the base N(0, I)
    batch_norm: bool = False
    hidden_layers: Count = 2  # of every network
    width: Count = 100
    activation: Literal["tanh", "relu"] = "tanh"
    shift_activation: Literal["tanh", "relu"] = "relu"  # of the shift networks of coupling layers
    degrees: Literal["sequential", "random"] = "sequential"  # of hidden units
    # of the first layer; reversed layer by layer
    input_order: Literal["sequential", "reversed", "random"] = "sequential"
    # training
    learning_rate: Positive = 1e-3
    weight_decay: NotNegative = 0.0
    batch_rows: Count = 200
    patience: Count = 200
    patience_unit: Literal["minibatches", "epochs"] = "minibatches"
    validation_interval: Count | None = None  # in patience units; null is 1 epoch or 10 minibatches
    statistics_rows: Count = 10_000  # training rows behind batch normalisation at validation; the final model uses all
    max_iterations: Count | None = None
    time_budget_hours: Positive = 3.0
    jit_compile: bool | None = None  # by XLA; null compiles where an epoch is long enough for that to pay

    def __post_init__(self) -> None:
        require(self.layers + self.components >= 1, "layers", self.layers, ">= 1 where components is 0")
        enough = self.batch_rows >= 2 or not self.batch_norm
        require(enough, "batch_rows", self.batch_rows, ">= 2 with batch normalisation")

    @property
    def interval(self) -> int:
        """Patience units between validations."""
        return self.validation_interval or (1 if self.patience_unit == "epochs" else 10)

    def compiles(self, rows: int) -> bool:
        """Whether to compile steps on so many training rows.

        Measured at D = 43: XLA saves 10 % to 30 % of a step of 0.5 to 7 ms and takes 1 to 8 s to start, so that it
        pays from some 5,000 steps on; with patience in the hundreds of epochs, that is from 100 minibatches an epoch.
        """
        return rows >= 100 * self.batch_rows if self.jit_compile is None else self.jit_compile

    def fit(self, train: Array, valid: Array, context: FitContext) -> Fit:
        from dkef.models.flows.fit import fit_flow

        return fit_flow(self, train, valid, context)
