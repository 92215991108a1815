"""The `normaliser` section: how log Z is estimated."""

from dataclasses import dataclass, replace
from typing import Annotated, Any, Literal, Self

from pydantic import Field

from dkef.config.typed import Count, Positive, Share, Whole, require, section

SIZES = ("samples", "bound_samples", "pilot_samples", "chunk_samples")
LEAST_PILOT = 300  # rho is then uncertain by 0.11: a percentile of 20 or 30 stays below 1/2, which the bound needs

StreamSize = Annotated[int, Field(ge=1, le=2**32)]  # a sample's number within its stream is 32 bits
Proposal = Literal["q0", "mixture", "annealed", "cheapest"]


@section
@dataclass(frozen=True)
class DefensiveMixtureSettings:
    """h of the proposal g = eps q0 + (1 - eps) h."""

    q0_share: Share = 0.1  # eps
    centres: Count = 1500  # training rows that become centres, at most
    clusters: Count = 20
    modes: Count = 60  # at most
    mode_starts: Count = 600  # points that the search for modes begins at, the inducing points first
    adapt_draws: Count = 2000  # of each round of adaptation, times the dimension
    adapt_rounds: Whole = 8
    renewals: Whole = 2  # times that the components are placed again, each followed by as many rounds


@section
@dataclass(frozen=True)
class Annealing:
    """The path from g to p~."""

    # 400 temperatures had 65 % of the chains effective on RedWine where 100 have 50 %, at four times the cost
    temperatures: Count = 100  # at most: no more are taken than the distance from g to p~ asks for
    steps: Count = 1  # Hamiltonian proposals at each temperature
    # gradient steps of each proposal; 1 is Langevin. 8 have a quarter of the chains effective at D = 43, where 8 single
    # steps had a twentieth
    leapfrog: Count = 8
    first_step: Positive = 0.3  # step size where the pilot chains begin to adapt it
    pilot_chains: Count = 100


@section
@dataclass(frozen=True)
class Normaliser:
    """How log Z of an unnormalised model is estimated; the defaults are Appendix D's."""

    proposal: Proposal = "q0"  # cheapest: of the other three, for the tolerance
    samples: Count = 10_000_000_000  # U, behind the reported log Z
    bound_samples: Count = 1_000_000_000  # for each of the variance and the Z of the bias bound
    pilot_samples: StreamSize = 10_000_000  # for each of the percentile and its Hoeffding check
    # one job, 6 to 14 minutes; many more jobs would take Snakemake minutes to plan. Chunks are all of this size, so
    # samples round up to whole ones
    chunk_samples: StreamSize = 1_000_000_000
    tolerance: Positive | None = None  # stop as soon as the bound is below so many nats; None spends the budget
    half_width: Positive | None = (
        None  # of the 95 % interval for log Z, in nats: with a tolerance, go on until it is met
    )
    # of r, which becomes s of the bound; lower where few samples make rho uncertain
    percentile: Annotated[float, Field(gt=0, lt=50)] = 40.0
    defensive_mixture: DefensiveMixtureSettings = DefensiveMixtureSettings()
    annealing: Annealing = Annealing()

    def __post_init__(self) -> None:
        known = self.proposal != "cheapest" or self.tolerance is not None
        require(known, "tolerance", self.tolerance, "a number, with `cheapest`")

    def chunks(self, stage: str) -> int:
        """Number of chunks of a long stage: z, variance or bound_z."""
        samples = self.samples if stage == "z" else self.bound_samples
        return -(-samples // self.chunk_samples)

    def at_cost(self, proposal: str, cost: int) -> Self:
        """The same budget spent on a proposal whose samples cost `cost` evaluations each."""
        sizes: dict[str, Any] = {key: max(1, getattr(self, key) // cost) for key in SIZES}
        sizes["pilot_samples"] = min(max(sizes["pilot_samples"], LEAST_PILOT), self.pilot_samples)
        return replace(self, **sizes | {"proposal": proposal})
