"""The (deep) kernel exponential family and how it is trained: every variant of the paper is a choice of these keys."""

from dataclasses import dataclass, field
from typing import Annotated, Any, ClassVar, Literal

from pydantic import Field

from dkef.config.typed import Count, NotNegative, Positive, Whole, require, section
from dkef.core.arrays import Array
from dkef.models.protocol import Fit, FitContext

Objective = Literal[
    "exact",
    "sliced",
    "sliced_vr",
    "denoising",
    "finite_difference",
    "curvature_propagation",
    "approximate_backprop",
]


def require_below_data(spec: Any) -> None:
    """Noise and steps of objectives must not swallow the data."""
    for key in ("denoising_std", "difference_step"):
        value = getattr(spec, key)
        require(value < 1, key, value, "> 0 and < 1, the standard deviation of a coordinate of whitened rows")


@section
@dataclass(frozen=True)
class KernelExponentialFamily:
    """Hyper-parameters of the model and of Algorithm 1; the defaults are the benchmark's (Appendix E.2)."""

    normalised: ClassVar[bool] = False  # log Z needs the normalise stage
    has_q0: ClassVar[bool] = True

    # kernel
    kernel: Literal["gaussian", "linear"] = "gaussian"  # on the features of the networks
    components: Count = 3  # R
    layers: Whole = 3  # L; 0 puts the kernel on the data themselves
    width: Count = 30  # W
    skip: bool = True  # from the data to the pre-activation of the top layer, where L > 1
    extra_unit: bool = False  # a last layer of one linear unit (DKEF-L-50-1)
    top_activation: Literal["softplus", "linear"] = "softplus"
    # exp(-|.|^2 / (2 s)) with s the scale; squared: / (2 s^2)
    width_parametrisation: Literal["plain", "squared"] = "plain"
    # initial; the first R are used. The paper's 1, 3.3, 10 are 10^0, 10^0.5, 10^1 in the authors' code
    kernel_scales: list[Positive] = field(default_factory=lambda: [1.0, 3.16, 10.0])
    inducing_points: Count = 300  # M
    train_inducing: bool = True
    # base measure
    train_q0: bool = True  # otherwise fixed to N(0, 2^2 I)
    beta_floor: Annotated[float, Field(ge=1, lt=2)] = 1.0  # exponents of q0 stay above this; they start at 2
    # regularisers: initial values, trained as log10
    lambda_alpha: Positive = 1e-3
    lambda_c: Positive = 1e-3
    use_lambda_c: bool = True
    lambda_floor: NotNegative = 1e-8  # added to both
    lambda_h: NotNegative = 0.0  # weight of the RKHS norm (Appendix B), not trained; 0 is off
    # objective of the fit to training rows and of the loss on Dv, see dkef.models.kef.objectives; validation and test
    # always use the exact one
    objective: Objective = "exact"
    slices: Count = 1  # random directions a row of sliced, sliced_vr, finite_difference and curvature_propagation
    denoising_std: Positive = 0.1  # of the noise that denoising adds, beside noise_std
    difference_step: Positive = 0.1  # distance of the points whose differences finite_difference takes
    # phase 1
    learning_rate: Positive = 0.01
    batch_rows: Count = 100  # |Dt| = |Dv|
    noise_std: NotNegative = 0.05  # fresh noise on training rows
    max_iterations: Count = 10_000
    patience: Count = 200  # in iterations
    validation_interval: Count = 1
    validation_fit_rows: Whole = 1000  # training rows behind the alpha of the validation loss; 0 means all
    validation_noise: bool = False  # True: fresh noise on those rows and on the validation rows at every validation
    time_budget_hours: Positive = 3.0
    clip_norm: Positive = 100.0
    weight_decay: NotNegative = 0.0  # on the networks' weights and biases
    max_skipped: Count = 50  # so many steps in a row without a finite gradient are a divergence
    # phase 2
    # improving: steps of Adam while J on the validation rows falls | fixed: all of them | converged: to its minimum
    # | folds: to its minimum on folds of the training rows, each held out once
    phase2_stopping: Literal["improving", "fixed", "converged", "folds"] = "improving"
    phase2_iterations: Whole = 1000  # at most so many steps, or evaluations of J on the way to its minimum
    phase2_learning_rate: Positive = 1e-3  # of Adam
    phase2_batch_rows: Count = 100  # validation rows behind each of its steps
    phase2_parameters: Literal["lambda", "lambda_and_q0"] = "lambda"  # lambda_and_q0 for fixed steps only
    # computation
    # of features and kernels in training; all M x M algebra is in float64
    dtype: Literal["float32", "float64"] = "float32"
    jit: bool = False  # compile with XLA: half a minute, for a step that is no faster on two CPU cores
    checkpoint_interval: Count = 100  # iterations

    def __post_init__(self) -> None:
        fixed, moving = self.phase2_stopping == "fixed", self.phase2_parameters
        require(fixed or moving == "lambda", "phase2_parameters", moving, "lambda, or phase2_stopping=fixed")
        enough = len(self.kernel_scales) >= self.components
        require(enough, "kernel_scales", self.kernel_scales, f"at least {self.components} scales")
        require_below_data(self)
        require(not self.extra_unit or self.layers > 0, "extra_unit", self.extra_unit, "false without layers")

    def fit(self, train: Array, valid: Array, context: FitContext) -> Fit:
        from dkef.models.kef.fit import fit_kef

        return fit_kef(self, train, valid, context)
