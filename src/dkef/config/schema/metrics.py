"""The sections `comparison`, `sensitivity` and `proposals`: how models are compared."""

from dataclasses import dataclass, field

from dkef.config.typed import AtLeastTwo, NotNegative, Positive, section


@section
@dataclass(frozen=True)
class Comparison:
    """Settings of the metrics."""

    reference_model: str | None = "dkef"  # fssd_p_value is near 0 where this model fits better; None: no p-value
    fixed_q0_reference: str | None = "dkef_fixed_q0"  # the same for Figure 6, as fssd_p_value_fixed_q0
    fssd_locations: AtLeastTwo = 100
    fssd_location_noise: NotNegative = 0.2
    fssd_bandwidth_factor: Positive = 1.0  # times the median distance between test points
    median_rows: AtLeastTwo = 1000  # at most so many test rows determine the median distance
    ksd_bandwidth_factor: Positive = 1.0
    ksd_max_rows: AtLeastTwo = 20_000  # KSD is quadratic: a random subset of the test rows beyond this
    block_rows: AtLeastTwo = 2000


@section
@dataclass(frozen=True)
class Sensitivity:
    """The grid on which FSSD and KSD are looked at beside the settings of Comparison, which always belong to it."""

    bandwidth_factors: list[Positive] = field(default_factory=lambda: [0.25, 0.5, 1.0, 2.0, 4.0])
    locations: list[AtLeastTwo] = field(default_factory=lambda: [10, 30, 100, 300])


@section
@dataclass(frozen=True)
class Proposals:
    """Sample counts at which the `normalisers` figure looks at log Z, by proposal."""

    q0: list[AtLeastTwo] = field(default_factory=lambda: [10**k for k in range(4, 9)])
    mixture: list[AtLeastTwo] = field(default_factory=lambda: [10**k for k in range(3, 7)])
    annealed: list[AtLeastTwo] = field(default_factory=lambda: [100, 400, 2000])
