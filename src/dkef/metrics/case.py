"""One model with everything that a metric may read, and what a metric is."""

import dataclasses
import functools
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from dkef.config.schema.metrics import Comparison
from dkef.config.typed import of_record
from dkef.core.arrays import Array
from dkef.core.errors import DkefError
from dkef.core.files import read_json
from dkef.data.copies import NONE
from dkef.metrics.integrals import Integrals
from dkef.metrics.pointwise import Estimate, require_finite
from dkef.metrics.setup import ComparisonSetup
from dkef.metrics.stein import KernelDiscrepancy, ksd
from dkef.models.evaluation import EvaluatedModel


class UnavailableError(DkefError):
    """A metric that this run cannot have; the message is its status."""


@dataclass(frozen=True)
class Normaliser:
    """What the metrics take from log_z.json: numbers, or the reason why there are none."""

    log_z: float | None
    status: str
    log_z_stderr: float | None = None
    log_z_bias_bound: float | None = None
    bound_condition: str = "log_z.json has no bound"
    config_digest: str | None = None


def read_normaliser(path: Path) -> Normaliser:
    return of_record(Normaliser, read_json(path), path, "delete it and run normalise again")


@dataclass(frozen=True)
class Case:
    """One model, and everything that a metric may read."""

    name: str
    model: EvaluatedModel
    reference: EvaluatedModel | None
    setup: ComparisonSetup
    settings: Comparison
    log_det: float = 0.0  # log |det W| of the whitening
    normaliser: Normaliser | None = None
    threads: int = 1
    fixed_q0_reference: EvaluatedModel | None = None  # that of Figure 6
    copies: Array | None = None  # [n], kinds of data.copies: which test rows are copies of training rows
    integrals: Integrals | None = None  # by quadrature, in one and two dimensions

    @property
    def fssd_width(self) -> float:
        return self.settings.fssd_bandwidth_factor * self.setup.median

    @functools.cached_property
    def ksd(self) -> KernelDiscrepancy:
        # All scores are looked at, not only those of the subset: whether a run is valid must not depend on the draw.
        require_finite("scores", self.model.score)
        rows, width = self.setup.ksd_rows, self.settings.ksd_bandwidth_factor * self.setup.median
        return ksd(self.setup.x[rows], self.model.score[rows], width, threads=self.threads)

    @property
    def has_copies(self) -> bool:
        return self.copies is not None and bool((self.copies != NONE).any())

    @functools.cached_property
    def without_copies(self) -> "Case":
        """The same without the test rows that are exact or near copies; locations and kernel width stay."""
        assert self.copies is not None
        kept = self.copies == NONE
        if kept.sum() < 2:
            raise UnavailableError(f"undefined: {int((~kept).sum())} of {len(kept)} test rows are copies")
        return dataclasses.replace(
            self,
            model=self.model.rows(kept),
            setup=self.setup.rows(kept),
            reference=self.reference.rows(kept) if self.reference else None,
            fixed_q0_reference=self.fixed_q0_reference.rows(kept) if self.fixed_q0_reference else None,
            copies=None,
        )


def always(case: Case) -> bool:
    return True


@dataclass(frozen=True)
class Metric:
    """One metric of a table: `measure` gives an estimate or raises the reason why it cannot."""

    measure: Callable[[Case], Estimate]
    more_is_better: bool | None = None  # None: neither
    defined: Callable[[Case], bool] = always  # for this kind of model and data
    of_truth: bool = False  # a failed run does not spoil it
    shown: bool = False  # on the page of results
    paired: bool = True  # tested over seeds against the reference model, where one of two can be better
