"""The likelihood baselines MADE, MADE-MOG, Real NVP, MAF and MAF-MOG: one family, five YAMLs."""

from dataclasses import dataclass

from dkef.config.typed import one_of, require
from dkef.core.arrays import Array
from dkef.models.protocol import Fit, FitContext


@dataclass(frozen=True)
class Flow:
    """Layers between x and a base density, their networks, and training by maximum likelihood.

    MADE has one autoregressive layer over N(0, I); MADE-MOG no layer and a base of `components` Gaussians for each
    conditional; Real NVP, MAF and MAF-MOG have five layers with batch normalisation after each.
    """

    # the density
    transform: str = "autoregressive"  # autoregressive | coupling
    layers: int = 1
    components: int = 0  # of the mixture conditionals of the base; 0 is the base N(0, I)
    batch_norm: bool = False
    hidden_layers: int = 2  # of every network
    width: int = 100
    activation: str = "tanh"  # tanh | relu
    shift_activation: str = "relu"  # of the shift networks of coupling layers
    degrees: str = "sequential"  # of hidden units: sequential | random
    input_order: str = "sequential"  # of the first layer: sequential | reversed | random; reversed layer by layer
    # training
    learning_rate: float = 1e-3
    weight_decay: float = 0.0
    batch_rows: int = 200
    patience: int = 200
    patience_unit: str = "minibatches"  # minibatches | epochs
    validation_interval: int | None = None  # in patience units; null is 1 epoch or 10 minibatches
    statistics_rows: int = 10_000  # training rows behind batch normalisation at validation; the final model uses all
    max_iterations: int | None = None
    time_budget_hours: float = 3.0
    jit_compile: bool | None = None  # by XLA; null compiles where an epoch is long enough for that to pay

    def __post_init__(self) -> None:
        one_of("model.transform", self.transform, "autoregressive", "coupling")
        one_of("model.activation", self.activation, "tanh", "relu")
        one_of("model.shift_activation", self.shift_activation, "tanh", "relu")
        one_of("model.degrees", self.degrees, "sequential", "random")
        one_of("model.input_order", self.input_order, "sequential", "reversed", "random")
        one_of("model.patience_unit", self.patience_unit, "minibatches", "epochs")
        for key in ("layers", "components", "weight_decay"):
            require(getattr(self, key) >= 0, f"model.{key}", getattr(self, key), ">= 0")
        for key in ("hidden_layers", "width", "batch_rows", "patience", "statistics_rows"):
            require(getattr(self, key) >= 1, f"model.{key}", getattr(self, key), ">= 1")
        require(self.layers + self.components >= 1, "model.layers", self.layers, ">= 1 where model.components is 0")
        for key in ("learning_rate", "time_budget_hours"):
            require(getattr(self, key) > 0, f"model.{key}", getattr(self, key), "> 0")
        for key in ("max_iterations", "validation_interval"):
            if getattr(self, key) is not None:
                require(getattr(self, key) >= 1, f"model.{key}", getattr(self, key), ">= 1, or null")
        if self.batch_norm:
            require(self.batch_rows >= 2, "model.batch_rows", self.batch_rows, ">= 2 with batch normalisation")

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
