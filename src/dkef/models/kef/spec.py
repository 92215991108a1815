"""The (deep) kernel exponential family and how it is trained: every variant of the paper is a choice of these keys."""

from dataclasses import dataclass, field
from typing import ClassVar

from dkef.config.typed import one_of, require
from dkef.core.arrays import Array
from dkef.models.protocol import Fit, FitContext


@dataclass(frozen=True)
class KernelExponentialFamily:
    """Hyper-parameters of the model and of Algorithm 1; see config/model/dkef.yaml for the paper's values."""

    normalised: ClassVar[bool] = False  # log Z needs the normalise stage

    # kernel
    kernel: str = "gaussian"  # gaussian | linear, on the features of the networks
    components: int = 3  # R
    layers: int = 3  # L; 0 puts the kernel on the data themselves
    width: int = 30  # W
    skip: bool = True  # from the data to the pre-activation of the top layer, where L > 1
    extra_unit: bool = False  # a last layer of one linear unit (DKEF-L-50-1)
    top_activation: str = "softplus"  # softplus | linear
    width_parametrisation: str = "plain"  # exp(-|.|^2 / (2 s)) with s the scale; squared: / (2 s^2)
    kernel_scales: list[float] = field(default_factory=lambda: [1.0, 3.16, 10.0])  # initial; the first R are used
    inducing_points: int = 300  # M
    train_inducing: bool = True
    # base measure
    train_q0: bool = True  # otherwise fixed to N(0, 2^2 I)
    beta_floor: float = 1.0  # exponents of q0 stay above this
    # regularisers: initial values, trained as log10
    lambda_alpha: float = 1e-3
    lambda_c: float = 1e-3
    use_lambda_c: bool = True
    lambda_floor: float = 1e-8  # added to both
    lambda_h: float = 0.0  # weight of the RKHS norm (Appendix B), not trained; 0 is off
    # phase 1
    learning_rate: float = 0.01
    batch_rows: int = 100  # |Dt| = |Dv|
    noise_std: float = 0.05  # fresh noise on training rows
    max_iterations: int = 10_000
    patience: int = 200  # in iterations
    validation_interval: int = 1
    validation_fit_rows: int = 1000  # training rows behind the alpha of the validation loss; 0 means all
    validation_noise: bool = False  # True: fresh noise on those rows and on the validation rows at every validation
    time_budget_hours: float = 3.0
    clip_norm: float = 100.0
    weight_decay: float = 0.0  # on the networks' weights and biases
    max_skipped: int = 50  # so many steps in a row without a finite gradient are a divergence
    # phase 2
    # improving: steps of Adam while J on the validation rows falls | fixed: all of them | converged: to its minimum
    # | folds: to its minimum on folds of the training rows, each held out once
    phase2_stopping: str = "improving"
    phase2_iterations: int = 1000  # at most so many steps, or evaluations of J on the way to its minimum
    phase2_learning_rate: float = 1e-3  # of Adam
    phase2_batch_rows: int = 100  # validation rows behind each of its steps
    phase2_parameters: str = "lambda"  # lambda | lambda_and_q0, the latter for fixed steps only
    # computation
    block_rows: int = 100  # rows of one block of statistics
    dtype: str = "float32"  # of features and kernels in training; all M x M algebra is in float64
    jit: bool = False  # compile with XLA: half a minute, for a step that is no faster on two CPU cores
    checkpoint_interval: int = 100  # iterations

    def __post_init__(self) -> None:
        one_of("model.kernel", self.kernel, "gaussian", "linear")
        one_of("model.top_activation", self.top_activation, "softplus", "linear")
        one_of("model.width_parametrisation", self.width_parametrisation, "squared", "plain")
        one_of("model.phase2_parameters", self.phase2_parameters, "lambda", "lambda_and_q0")
        one_of("model.phase2_stopping", self.phase2_stopping, "improving", "fixed", "converged", "folds")
        fixed, moving = self.phase2_stopping == "fixed", self.phase2_parameters
        require(fixed or moving == "lambda", "model.phase2_parameters", moving, "lambda, or phase2_stopping=fixed")
        one_of("model.dtype", self.dtype, "float32", "float64")
        for key in AT_LEAST_ONE:
            require(getattr(self, key) >= 1, f"model.{key}", getattr(self, key), ">= 1")
        for key in POSITIVE:
            require(getattr(self, key) > 0, f"model.{key}", getattr(self, key), "> 0")
        for key in NOT_NEGATIVE:
            require(getattr(self, key) >= 0, f"model.{key}", getattr(self, key), ">= 0")
        require(1 <= self.beta_floor < 2, "model.beta_floor", self.beta_floor, ">= 1 (tails of q0) and < 2 (its start)")
        scales = self.kernel_scales
        require(all(s > 0 for s in scales), "model.kernel_scales", scales, "a list of numbers > 0")
        require(len(scales) >= self.components, "model.kernel_scales", scales, f"at least {self.components} scales")
        require(not self.extra_unit or self.layers > 0, "model.extra_unit", self.extra_unit, "false without layers")

    def fit(self, train: Array, valid: Array, context: FitContext) -> Fit:
        from dkef.models.kef.fit import fit_kef

        return fit_kef(self, train, valid, context)


AT_LEAST_ONE = (
    "components", "width", "inducing_points", "batch_rows", "max_iterations", "patience", "validation_interval",
    "max_skipped", "phase2_batch_rows", "block_rows", "checkpoint_interval",
)  # fmt: skip
POSITIVE = (
    "lambda_alpha", "lambda_c", "learning_rate", "time_budget_hours", "clip_norm", "phase2_learning_rate",
)  # fmt: skip
NOT_NEGATIVE = (
    "layers", "lambda_floor", "lambda_h", "noise_std", "validation_fit_rows", "weight_decay", "phase2_iterations",
)  # fmt: skip
