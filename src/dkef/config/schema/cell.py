"""The whole configuration of a cell, and its sections that no stage reads by themselves.

config/protocol and config/fidelity must state every key of theirs; all other YAML files name only what differs from the
defaults of the schema.
"""

from dataclasses import dataclass, field
from typing import Literal

from dkef.config.schema.dataset import Dataset
from dkef.config.schema.metrics import Comparison, Proposals, Sensitivity
from dkef.config.schema.normaliser import Normaliser
from dkef.config.typed import Count, NotNegative, Positive, Section, Whole, section


@section
@dataclass(frozen=True)
class Protocol:
    """The numbers in which the paper's two experimental sections differ."""

    kernel_components: Count  # R of the benchmark models; synthetic variants set their own
    inducing_points: Count  # M
    kef_learning_rate: Positive
    kef_noise_std: NotNegative
    kef_lambda_init: Positive
    baseline_width: Count


@section
@dataclass(frozen=True)
class Fidelity:
    """Every choice in which the paper's text and the authors' code differ."""

    # data
    dequantise_gaps: NotNegative  # support of the noise, in median gaps: 1 (paper) or 2 (code)
    whiten_on: Literal["train", "all"]
    rotate_synthetic: bool  # Funnel, Banana, Square and Cosine by the angles in their YAML
    mixture_clusters: Count
    hepmass_features: Literal["maf", "listed"]
    hepmass_split: Literal["source", "rows", "distinct_rows"]  # source: MAF's test file; rows: a full shuffle
    # deep kernel exponential family
    width_parametrisation: Literal["squared", "plain"]  # exp(-|.|^2 / (2 s^2)) or exp(-|.|^2 / (2 s))
    benchmark_kernel_scales: list[Positive]  # s at the start, where there are three kernels
    synthetic_kernel_scale: Positive  # the same of the one kernel of DKEF-G
    top_activation: Literal["softplus", "linear"]
    kernel_weight_decay: NotNegative
    validation_fit_rows: Whole  # training rows behind the alpha of the early-stopping loss; 0 means all
    validation_noise: bool
    phase2_parameters: Literal["lambda", "lambda_and_q0"]
    phase2_stopping: Literal["improving", "fixed", "converged", "folds"]
    phase2_batch_rows: Count  # validation rows behind one step of phase 2
    # likelihood baselines
    made_learning_rate: Positive
    flow_learning_rate: Positive
    baseline_patience_unit: Literal["minibatches", "epochs"]
    baseline_weight_decay: NotNegative
    baseline_degrees: Literal["random", "sequential"]


@section
@dataclass(frozen=True)
class EvaluationSettings:
    """How a model is evaluated at the test points; no choice here changes a number beyond rounding."""

    batch_rows: Count = 1000


@section
@dataclass(frozen=True)
class Compute:
    """Threads are part of the configuration: TensorFlow's results differ in the last bits with their number."""

    threads: Count = 1


@dataclass(frozen=True)
class Cell:
    """The whole configuration of one (dataset, model), for any seed."""

    dataset: Dataset
    model: Section  # see dkef.models.protocol
    protocol: Protocol
    fidelity: Fidelity
    normaliser: Normaliser = field(default_factory=Normaliser)
    evaluation: EvaluationSettings = field(default_factory=EvaluationSettings)
    comparison: Comparison = field(default_factory=Comparison)
    sensitivity: Sensitivity = field(default_factory=Sensitivity)
    proposals: Proposals = field(default_factory=Proposals)
    compute: Compute = field(default_factory=Compute)
