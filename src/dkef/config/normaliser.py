"""The typed `normaliser` section of the configuration."""

from dataclasses import dataclass, field, replace
from typing import Self

from dkef.config.typed import one_of, require

SIZES = ("samples", "bound_samples", "pilot_samples", "chunk_samples")
LEAST_PILOT = 300  # rho is then uncertain by 0.11: a percentile of 20 or 30 stays below 1/2, which the bound needs


@dataclass(frozen=True)
class CoverSettings:
    """h of the proposal g = eps q0 + (1 - eps) h; a pilot run chooses among all kinds and widths."""

    q0_share: float = 0.1  # eps
    kinds: list[str] = field(default_factory=lambda: ["rows", "clusters", "adapted", "bridged"])
    widths: list[float] = field(default_factory=lambda: [0.3, 0.45, 0.7, 1.0, 1.4, 2.0])
    centres: int = 1500  # training rows that become centres, at most
    clusters: int = 20
    pilot_samples: int = 4000  # of each candidate, and all serve all
    adapt_draws: int = 5000  # of each round of adaptation, times the dimension
    adapt_rounds: int = 8
    renewals: int = 2  # times that the components are placed anew, each followed by as many rounds

    def __post_init__(self) -> None:
        require(0 < self.q0_share < 1, "normaliser.cover.q0_share", self.q0_share, "between 0 and 1")
        require(len(self.kinds) > 0, "normaliser.cover.kinds", self.kinds, "at least one kind")
        for kind in self.kinds:
            one_of("normaliser.cover.kinds", kind, "rows", "local", "clusters", "adapted", "bridged")
        require(len(self.widths) > 0, "normaliser.cover.widths", self.widths, "at least one width")
        require(all(width > 0 for width in self.widths), "normaliser.cover.widths", self.widths, "> 0")
        for key in ("centres", "clusters", "pilot_samples", "adapt_draws"):
            require(getattr(self, key) >= 1, f"normaliser.cover.{key}", getattr(self, key), ">= 1")
        for key in ("adapt_rounds", "renewals"):
            require(getattr(self, key) >= 0, f"normaliser.cover.{key}", getattr(self, key), ">= 0")


@dataclass(frozen=True)
class Annealing:
    """The path from g to p~."""

    temperatures: int = 100
    steps: int = 1  # Hamiltonian proposals at each temperature
    leapfrog: int = 8  # gradient steps of each proposal; 1 is Langevin
    first_step: float = 0.3  # step size where the pilot chains begin to adapt it
    pilot_chains: int = 200

    def __post_init__(self) -> None:
        for key in ("temperatures", "steps", "leapfrog", "pilot_chains"):
            require(getattr(self, key) >= 1, f"normaliser.annealing.{key}", getattr(self, key), ">= 1")
        require(self.first_step > 0, "normaliser.annealing.first_step", self.first_step, "> 0")


@dataclass(frozen=True)
class Normaliser:
    """How log Z of an unnormalised model is estimated."""

    proposal: str = "q0"  # q0 | mixture | annealed | cheapest (of these, for the tolerance)
    samples: int = 10_000_000_000  # U, behind the reported log Z
    bound_samples: int = 1_000_000_000  # for each of the variance and the Z of the bias bound
    pilot_samples: int = 10_000_000  # for each of the percentile and its Hoeffding check
    chunk_samples: int = 500_000_000  # one job; chunks are all of this size, so samples round up to whole ones
    tolerance: float | None = None  # stop as soon as the bound is below so many nats; None spends the budget
    percentile: float = 40.0  # of r, which becomes s of the bound; lower where few samples make rho uncertain
    cover: CoverSettings = CoverSettings()
    annealing: Annealing = Annealing()

    def __post_init__(self) -> None:
        one_of("normaliser.proposal", self.proposal, "q0", "mixture", "annealed", "cheapest")
        for key in SIZES:
            require(getattr(self, key) >= 1, f"normaliser.{key}", getattr(self, key), ">= 1")
        for key in ("pilot_samples", "chunk_samples"):  # a sample's number within its stream is 32 bits
            require(getattr(self, key) <= 2**32, f"normaliser.{key}", getattr(self, key), "at most 2^32")
        if self.tolerance is not None:
            require(self.tolerance > 0, "normaliser.tolerance", self.tolerance, "> 0")
        if self.proposal == "cheapest":
            require(self.tolerance is not None, "normaliser.tolerance", self.tolerance, "a number, with `cheapest`")
        require(0 < self.percentile < 50, "normaliser.percentile", self.percentile, "between 0 and 50")

    def chunks(self, stage: str) -> int:
        """Number of chunks of a long stage: z, variance or bound_z."""
        samples = self.samples if stage == "z" else self.bound_samples
        return -(-samples // self.chunk_samples)

    def at_cost(self, proposal: str, cost: int) -> Self:
        """The same budget spent on a proposal whose samples cost `cost` evaluations each."""
        sizes = {key: max(1, getattr(self, key) // cost) for key in SIZES}
        sizes["pilot_samples"] = min(max(sizes["pilot_samples"], LEAST_PILOT), self.pilot_samples)
        return replace(self, proposal=proposal, **sizes)
