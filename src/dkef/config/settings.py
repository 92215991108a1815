"""The typed sections of a cell's configuration; see config/README.md for what each key means to a user."""

from dataclasses import dataclass, field
from typing import Any

from dkef.config.dataset import Dataset
from dkef.config.normaliser import Normaliser
from dkef.config.typed import one_of, require

PHASE2_ENDS = ("improving", "fixed", "converged", "folds")


@dataclass(frozen=True)
class Protocol:
    """The numbers in which the paper's two experimental sections differ."""

    kernel_components: int  # R of the benchmark models; synthetic variants set their own
    inducing_points: int  # M
    kef_learning_rate: float
    kef_noise_std: float
    kef_lambda_init: float
    baseline_width: int

    def __post_init__(self) -> None:
        for key in ("kernel_components", "inducing_points", "baseline_width"):
            require(getattr(self, key) >= 1, f"protocol.{key}", getattr(self, key), ">= 1")
        for key in ("kef_learning_rate", "kef_lambda_init"):
            require(getattr(self, key) > 0, f"protocol.{key}", getattr(self, key), "> 0")
        require(self.kef_noise_std >= 0, "protocol.kef_noise_std", self.kef_noise_std, ">= 0")


@dataclass(frozen=True)
class Fidelity:
    """Every choice in which the paper's text and the authors' code differ."""

    # data
    dequantise_gaps: float  # support of the noise, in median gaps: 1 (paper) or 2 (code)
    whiten_on: str  # train | all
    rotate_synthetic: bool  # Funnel, Banana, Square and Cosine by the angles in their YAML
    mixture_clusters: int
    hepmass_features: str  # maf | listed
    hepmass_split: str  # source (MAF's test file) | rows (a full shuffle)
    # deep kernel exponential family
    width_parametrisation: str  # squared: exp(-|.|^2 / (2 sigma^2)); plain: exp(-|.|^2 / (2 tau))
    benchmark_kernel_scales: list[float]  # sigma or tau at the start, where there are three kernels
    synthetic_kernel_scale: float  # the same of the one kernel of DKEF-G
    top_activation: str  # softplus | linear
    kernel_weight_decay: float
    validation_fit_rows: int  # training rows behind the alpha of the early-stopping loss; 0 means all
    validation_noise: bool
    phase2_parameters: str  # lambda | lambda_and_q0
    phase2_stopping: str  # improving | fixed | converged | folds
    phase2_batch_rows: int  # validation rows behind one step of phase 2
    # likelihood baselines
    made_learning_rate: float
    flow_learning_rate: float
    baseline_patience_unit: str  # minibatches | epochs
    baseline_weight_decay: float
    baseline_degrees: str  # random | sequential

    def __post_init__(self) -> None:
        one_of("fidelity.whiten_on", self.whiten_on, "train", "all")
        one_of("fidelity.hepmass_features", self.hepmass_features, "maf", "listed")
        one_of("fidelity.hepmass_split", self.hepmass_split, "source", "rows", "distinct_rows")
        one_of("fidelity.width_parametrisation", self.width_parametrisation, "squared", "plain")
        one_of("fidelity.top_activation", self.top_activation, "softplus", "linear")
        one_of("fidelity.phase2_parameters", self.phase2_parameters, "lambda", "lambda_and_q0")
        one_of("fidelity.phase2_stopping", self.phase2_stopping, *PHASE2_ENDS)
        require(self.phase2_batch_rows >= 1, "fidelity.phase2_batch_rows", self.phase2_batch_rows, ">= 1")
        one_of("fidelity.baseline_patience_unit", self.baseline_patience_unit, "minibatches", "epochs")
        one_of("fidelity.baseline_degrees", self.baseline_degrees, "random", "sequential")


@dataclass(frozen=True)
class EvaluationSettings:
    """How a model is evaluated at the test points; no choice here changes a number beyond rounding."""

    batch_rows: int = 1000

    def __post_init__(self) -> None:
        require(self.batch_rows >= 1, "evaluation.batch_rows", self.batch_rows, ">= 1")


@dataclass(frozen=True)
class Comparison:
    """Settings of the metrics."""

    reference_model: str = "dkef"  # fssd_p_value is near 0 where this model fits better
    fssd_locations: int = 100
    fssd_location_noise: float = 0.2
    fssd_bandwidth_factor: float = 1.0  # times the median distance between test points
    median_rows: int = 1000  # at most so many test rows determine the median distance
    ksd_bandwidth_factor: float = 1.0
    ksd_max_rows: int = 20_000  # KSD is quadratic: a random subset of the test rows beyond this
    block_rows: int = 2000

    def __post_init__(self) -> None:
        for key in ("fssd_locations", "median_rows", "ksd_max_rows", "block_rows"):
            require(getattr(self, key) >= 2, f"comparison.{key}", getattr(self, key), ">= 2")
        for key in ("fssd_bandwidth_factor", "ksd_bandwidth_factor"):
            require(getattr(self, key) > 0, f"comparison.{key}", getattr(self, key), "> 0")
        require(self.fssd_location_noise >= 0, "comparison.fssd_location_noise", self.fssd_location_noise, ">= 0")


@dataclass(frozen=True)
class Sensitivity:
    """The grid on which FSSD and KSD are looked at beside the settings of Comparison, which always belong to it."""

    bandwidth_factors: list[float] = field(default_factory=lambda: [0.25, 0.5, 1.0, 2.0, 4.0])
    locations: list[int] = field(default_factory=lambda: [10, 30, 100, 300])

    def __post_init__(self) -> None:
        for factor in self.bandwidth_factors:
            require(factor > 0, "sensitivity.bandwidth_factors", factor, "> 0")
        for count in self.locations:
            require(count >= 2, "sensitivity.locations", count, ">= 2")


@dataclass(frozen=True)
class Proposals:
    """Sample counts at which the `normalisers` figure looks at log Z, by proposal."""

    q0: list[int] = field(default_factory=lambda: [10**k for k in range(4, 9)])
    mixture: list[int] = field(default_factory=lambda: [10**k for k in range(3, 7)])
    annealed: list[int] = field(default_factory=lambda: [100, 400])

    def __post_init__(self) -> None:
        for key in ("q0", "mixture", "annealed"):
            for samples in getattr(self, key):
                require(samples >= 2, f"proposals.{key}", samples, ">= 2")


@dataclass(frozen=True)
class Compute:
    """Threads are part of the configuration: TensorFlow's results differ in the last bits with their number."""

    threads: int = 1

    def __post_init__(self) -> None:
        require(self.threads >= 1, "compute.threads", self.threads, ">= 1")


@dataclass(frozen=True)
class Cell:
    """The whole configuration of one (dataset, model), for any seed."""

    dataset: Dataset
    model: Any  # a section with `_target_`, see dkef.specs
    protocol: Protocol
    fidelity: Fidelity
    normaliser: Normaliser
    evaluation: EvaluationSettings
    comparison: Comparison
    sensitivity: Sensitivity
    proposals: Proposals
    compute: Compute
