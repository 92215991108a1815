"""Every metric there is: METRICS has a line for each. A value with its error, or the reason why there is none."""

import functools
import math
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from dkef.config.schema.metrics import Comparison
from dkef.config.typed import of_record
from dkef.core.errors import DkefError
from dkef.core.files import read_json
from dkef.metrics.pointwise import (
    Estimate,
    NotFiniteError,
    fisher_divergence,
    log_likelihood,
    require_finite,
    score_loss,
)
from dkef.metrics.setup import ComparisonSetup
from dkef.metrics.stein import KernelDiscrepancy, compare_fssd, fssd, ksd
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

    @property
    def fssd_width(self) -> float:
        return self.settings.fssd_bandwidth_factor * self.setup.median

    @functools.cached_property
    def ksd(self) -> KernelDiscrepancy:
        # All scores are looked at, not only those of the subset: whether a run is valid must not depend on the draw.
        require_finite("scores", self.model.score)
        rows, width = self.setup.ksd_rows, self.settings.ksd_bandwidth_factor * self.setup.median
        return ksd(self.setup.x[rows], self.model.score[rows], width, threads=self.threads)


@dataclass(frozen=True)
class Metric:
    """One metric of a table: `measure` gives an estimate or raises the reason why it cannot."""

    measure: Callable[[Case], Estimate]
    more_is_better: bool | None = None  # None: neither
    defined: Callable[[Case], bool] = lambda case: True  # for this kind of model and data
    of_truth: bool = False  # a failed run does not spoil it
    shown: bool = False  # on the page of results
    paired: bool = True  # tested over seeds against the reference model, where one of two can be better


def _log_likelihood(case: Case, log_det: float = 0.0) -> Estimate:
    if case.model.record["normalised"]:
        constant = Estimate(0.0, 0.0, str(case.model.record["log_z_status"]))
    else:
        constant = _log_z(case)
    return log_likelihood(case.model.log_density, constant, log_det)


def _unnormalised(case: Case) -> bool:
    return not case.model.record["normalised"]


def _log_z(case: Case) -> Estimate:
    found = _normaliser(case)
    return _given(found.log_z, found.log_z_stderr, found.status, found.status)


def _bias_bound(case: Case) -> Estimate:
    """log Z is too small by at most this on average, hence the likelihood too large."""
    found = _normaliser(case)
    return _given(found.log_z_bias_bound, None, found.status, found.bound_condition)


def _normaliser(case: Case) -> Normaliser:
    if case.normaliser is None:
        raise UnavailableError("undefined: no log Z was given")
    return case.normaliser


def _given(number: float | None, stderr: float | None, status: str, reason: str) -> Estimate:
    """A number of log_z.json with the normaliser's own verdict; where there is none, the reason it gives."""
    if number is None or not math.isfinite(number):
        raise UnavailableError(f"undefined: {reason}")
    return Estimate(number, stderr, status)


def _fssd(case: Case) -> Estimate:
    found = fssd(case.setup.x, case.model.score, case.setup.locations, case.fssd_width, case.settings.block_rows)
    return Estimate(found.statistic, found.stderr)


def _fssd_p_value(case: Case) -> Estimate:
    """P-value of "the model fits no worse than the reference": near 0 where the reference fits better."""
    reference = case.settings.reference_model
    if case.name == reference:
        raise UnavailableError("undefined: the model is its own reference")
    if case.reference is None:
        raise UnavailableError(f"undefined: the reference {reference} is not part of this run")
    if case.reference.status != "ok":
        raise UnavailableError(f"undefined: the reference {reference}: {case.reference.status}")
    require_finite("scores", case.model.score)
    require_finite(f"scores of the reference {reference}", case.reference.score)
    scores = (case.model.score, case.reference.score)
    test = compare_fssd(case.setup.x, *scores, case.setup.locations, case.fssd_width, case.settings.block_rows)
    if test.undefined:
        raise UnavailableError(f"undefined: the scores equal those of the reference {reference}")
    return Estimate(test.p_value)


def _fisher_divergence(case: Case) -> Estimate:
    assert case.model.true_score is not None
    return fisher_divergence(case.model.score, case.model.true_score)


def _true_log_likelihood(case: Case) -> Estimate:
    assert case.model.true_log_density is not None
    return log_likelihood(case.model.true_log_density)


# In the order of the tables. Differences in raw units equal those in whitened ones: they are tested once.
METRICS: dict[str, Metric] = {
    "log_likelihood": Metric(_log_likelihood, True, shown=True),
    "log_likelihood_raw": Metric(lambda case: _log_likelihood(case, case.log_det), True, paired=False),
    "log_likelihood_bias_bound": Metric(_bias_bound, defined=_unnormalised, shown=True),
    "log_z": Metric(_log_z, defined=_unnormalised),
    "log_z_bias_bound": Metric(_bias_bound, defined=_unnormalised),
    "score_loss": Metric(lambda case: score_loss(case.model.score, case.model.curvature), False, shown=True),
    "fssd2": Metric(_fssd, False, shown=True),
    "fssd_p_value": Metric(_fssd_p_value, shown=True),
    "ksd2": Metric(lambda case: Estimate(case.ksd.statistic, case.ksd.stderr), False, shown=True),
    "ksd2_v": Metric(lambda case: Estimate(case.ksd.v_statistic, case.ksd.stderr), False),
    "fisher_divergence": Metric(
        _fisher_divergence, False, defined=lambda case: case.model.true_score is not None, shown=True
    ),
    "true_log_likelihood": Metric(
        _true_log_likelihood, defined=lambda case: case.model.true_log_density is not None, of_truth=True
    ),
}


@dataclass(frozen=True)
class Outcome:
    """One metric: a value with status "ok" or "untrusted: why", or no value and a status that says why."""

    metric: str
    value: float | None
    stderr: float | None
    status: str


def outcomes(case: Case) -> list[Outcome]:
    """Every metric that is defined for this kind of model and data, in the order of METRICS."""
    return [_attempt(name, metric, case) for name, metric in METRICS.items() if metric.defined(case)]


def _attempt(name: str, metric: Metric, case: Case) -> Outcome:
    try:
        if case.model.status != "ok" and not metric.of_truth:
            raise UnavailableError(case.model.status)
        estimate = metric.measure(case)
    except UnavailableError as error:
        return Outcome(name, None, None, str(error))
    except NotFiniteError as error:
        return Outcome(name, None, None, f"invalid: {error}")
    return Outcome(name, estimate.value, estimate.stderr, estimate.status)
