"""The `dataset` section: where rows come from and how they are prepared."""

from dataclasses import dataclass
from typing import Annotated, Literal

from pydantic import Field

from dkef.config.typed import AtLeastTwo, Count, NotNegative, Section, Share, section


@section
@dataclass(frozen=True)
class Preprocessing:
    """Steps between the raw table and the splits, in the paper's order."""

    drop_duplicate_rows: bool = False
    max_correlation: Annotated[float, Field(gt=0, le=1)] | None = None  # drop columns until no |correlation| exceeds it
    dequantise_gaps: NotNegative = 0.0  # support of the added uniform noise, in median gaps; 0 adds none
    whiten: bool = True
    whiten_on: Literal["train", "all"] = "train"  # all leaks test rows, as the authors' code does
    whiten_rows: AtLeastTwo = 10_000  # at most so many rows determine the whitening
    # rows: at random | distinct_rows: at random, all copies of a row on the same side | source: as the source does
    split_by: Literal["rows", "distinct_rows", "source"] = "rows"
    test_rows: Count | None = None  # fixed size (HepMass); otherwise a fraction; not read where the source decides
    test_fraction: Share = 0.1
    valid_fraction: Share = 0.1  # of what the test set leaves
    valid_max: Count = 1000


@dataclass(frozen=True)
class Dataset:
    """One dataset: where its rows come from and how they are prepared."""

    title: str
    source: Section  # see dkef.data.source
    preprocessing: Preprocessing = Preprocessing()
    subset_of: str | None = None  # named in every table and figure where the rows are only part of a known set
