"""The typed `normaliser` section of the configuration."""

from dataclasses import dataclass

from dkef.typed import one_of, require


@dataclass(frozen=True)
class Normaliser:
    """How log Z of an unnormalised model is estimated."""

    proposal: str = "q0"
    samples: int = 10_000_000_000  # U, behind the reported log Z
    bound_samples: int = 1_000_000_000  # for each of the variance and the Z of the bias bound
    pilot_samples: int = 10_000_000  # for each of the 40th percentile and its Hoeffding check
    chunk_samples: int = 500_000_000  # one job; chunks are all of this size, so samples round up to whole ones
    tolerance: float | None = None  # stop as soon as the bound is below so many nats; None spends the budget

    def __post_init__(self) -> None:
        one_of("normaliser.proposal", self.proposal, "q0")
        for key in ("samples", "bound_samples", "pilot_samples", "chunk_samples"):
            require(getattr(self, key) >= 1, f"normaliser.{key}", getattr(self, key), ">= 1")
        for key in ("pilot_samples", "chunk_samples"):  # a sample's number within its stream is 32 bits
            require(getattr(self, key) <= 2**32, f"normaliser.{key}", getattr(self, key), "at most 2^32")
        if self.tolerance is not None:
            require(self.tolerance > 0, "normaliser.tolerance", self.tolerance, "> 0")

    def chunks(self, stage: str) -> int:
        """Number of chunks of a long stage: z, variance or bound_z."""
        samples = self.samples if stage == "z" else self.bound_samples
        return -(-samples // self.chunk_samples)
