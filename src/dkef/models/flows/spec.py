"""The likelihood baselines MADE, MADE-MOG, Real NVP, MAF and MAF-MOG: one family, five YAMLs."""

import math
from dataclasses import dataclass
from typing import Literal

from dkef.config.typed import Count, NotNegative, Positive, Whole, require, section
from dkef.core.arrays import Array
from dkef.models.protocol import Fit, FitContext

# XLA takes longer to start and saves time in every step. Measured on RedWine: 0.9 s against 0.21 ms for MADE, 4.6 s
# and 0.64 ms for MAF, 5.1 s and 0.44 ms for MAF-MOG, 6.7 s and 0.54 ms for Real NVP; on Ring 7.7 s and 0.28 ms for MAF.
# So it pays from 4,300, 7,200, 12,000, 12,000 and 27,000 steps on, of which this is the median.
COMPILE_FROM = 12_000  # steps


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
    stable_mixture: bool = True  # false sums exponentials of float32 as they stand, as the authors' MADE-MOG does
    learning_rate: Positive = 1e-3
    weight_decay: NotNegative = 0.0
    batch_rows: Count = 200
    patience: Count = 200
    patience_unit: Literal["minibatches", "epochs"] = "minibatches"
    validation_interval: Count | None = None  # in patience units; null is 1 epoch or 10 minibatches
    statistics_rows: Count = 10_000  # training rows behind batch normalisation at validation; the final model uses all
    max_iterations: Count | None = None
    time_budget_hours: Positive = 3.0
    jit_compile: bool | None = None  # by XLA; null compiles where training is expected to be long

    def __post_init__(self) -> None:
        require(self.layers + self.components >= 1, "layers", self.layers, ">= 1 where components is 0")
        enough = self.batch_rows >= 2 or not self.batch_norm
        require(enough, "batch_rows", self.batch_rows, ">= 2 with batch normalisation")

    @property
    def interval(self) -> int:
        """Patience units between validations."""
        return self.validation_interval or (1 if self.patience_unit == "epochs" else 10)

    def compiles(self, rows: int) -> bool:
        """Whether to compile steps on so many training rows: only the settings and the data decide, never a clock."""
        return self.expected_steps(rows) >= COMPILE_FROM if self.jit_compile is None else self.jit_compile

    def expected_steps(self, rows: int) -> float:
        """Minibatches of a whole run, roughly: on RedWine, runs took 1.3 to 6.6 times their patience."""
        patience = self.patience * (rows / self.batch_rows if self.patience_unit == "epochs" else 1)
        return min(3 * patience, self.max_iterations or math.inf)

    def fit(self, train: Array, valid: Array, context: FitContext) -> Fit:
        from dkef.models.flows.fit import fit_flow

        return fit_flow(self, train, valid, context)
