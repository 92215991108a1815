"""The typed `dataset` section of the configuration."""

from dataclasses import dataclass, field
from typing import Any

from dkef.config.typed import one_of, require


@dataclass(frozen=True)
class Preprocessing:
    """Steps between the raw table and the splits, in the paper's order."""

    drop_duplicate_rows: bool = False
    max_correlation: float | None = None  # Parkinsons: drop columns until no |correlation| exceeds this
    dequantise_gaps: float = 0.0  # support of the added uniform noise, in median gaps; 0 adds none
    whiten: bool = True
    whiten_on: str = "train"  # train | all (all leaks test rows, as the authors' code does)
    whiten_rows: int = 10_000  # at most so many rows determine the whitening
    # rows: at random | distinct_rows: at random, all copies of a row on the same side | source: as the source does
    split_by: str = "rows"
    test_rows: int | None = None  # fixed size (HepMass); otherwise a fraction; not read where the source decides
    test_fraction: float = 0.1
    valid_fraction: float = 0.1  # of what the test set leaves
    valid_max: int = 1000

    def __post_init__(self) -> None:
        one_of("preprocessing.whiten_on", self.whiten_on, "train", "all")
        one_of("preprocessing.split_by", self.split_by, "rows", "distinct_rows", "source")
        require(self.dequantise_gaps >= 0, "preprocessing.dequantise_gaps", self.dequantise_gaps, ">= 0")
        require(self.whiten_rows >= 2, "preprocessing.whiten_rows", self.whiten_rows, ">= 2")
        require(0 < self.test_fraction < 1, "preprocessing.test_fraction", self.test_fraction, "between 0 and 1")
        require(
            0 < self.valid_fraction < 1,
            "preprocessing.valid_fraction",
            self.valid_fraction,
            "between 0 and 1",
        )
        require(self.valid_max >= 1, "preprocessing.valid_max", self.valid_max, ">= 1")
        if self.test_rows is not None:
            require(self.test_rows >= 1, "preprocessing.test_rows", self.test_rows, ">= 1")
        if self.max_correlation is not None:
            require(
                0 < self.max_correlation <= 1,
                "preprocessing.max_correlation",
                self.max_correlation,
                "in (0, 1]",
            )


@dataclass(frozen=True)
class Dataset:
    """One dataset: where its rows come from and how they are prepared."""

    title: str
    source: Any  # a section with `_target_`, see dkef.data
    preprocessing: Preprocessing = field(default_factory=Preprocessing)
    subset_of: str | None = None  # named in every table and figure where the rows are only part of a known set
