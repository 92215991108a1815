"""All metrics of one evaluated model: each a value with its error, or the reason why there is none."""

import functools
import math
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Self

import numpy as np

from dkef.config.schema.metrics import Comparison
from dkef.config.typed import of_record
from dkef.core.arrays import Array
from dkef.core.errors import DkefError
from dkef.core.files import read_json
from dkef.core.streams import rng_for
from dkef.metrics.pointwise import (
    METRICS,
    Estimate,
    NotFiniteError,
    fisher_divergence,
    log_likelihood,
    require_finite,
    score_loss,
)
from dkef.metrics.stein import compare_fssd, draw_locations, fssd, ksd, median_distance
from dkef.models.evaluation import EvaluatedModel


class UnavailableError(DkefError):
    """A metric that this run cannot have; the message is its status."""


@dataclass(frozen=True)
class Outcome:
    """One metric: a value with status "ok" or "untrusted: why", or no value and a status that says why."""

    metric: str
    value: float | None
    stderr: float | None
    status: str


@dataclass(frozen=True)
class Yardstick:
    """What every model of a (dataset, seed) is measured with: the same points, locations and kernel width."""

    x: Array  # [n, d]
    locations: Array  # [J, d]
    median: float
    ksd_rows: Array  # [n'], row numbers

    @classmethod
    def draw(cls, x: Array, dataset: str, seed: int, settings: Comparison) -> Self:
        """The yardstick of a cell, from streams that know the dataset and the seed but no model."""
        noise = settings.fssd_location_noise
        locations = draw_locations(x, settings.fssd_locations, noise, rng_for("fssd-locations", dataset, seed))
        median = median_distance(x, settings.median_rows, rng_for("median-rows", dataset, seed))
        rows = np.arange(len(x))
        if len(x) > settings.ksd_max_rows:
            rows = rng_for("ksd-rows", dataset, seed).choice(rows, settings.ksd_max_rows, replace=False)
        return cls(x, locations, median, np.sort(rows))


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
class Judge:
    """Measures one model; every method either returns an estimate or raises the reason why it cannot."""

    name: str
    model: EvaluatedModel
    reference: EvaluatedModel | None
    yardstick: Yardstick
    settings: Comparison
    log_det: float = 0.0  # log |det W| of the whitening
    normaliser: Normaliser | None = None
    threads: int = 1

    def outcomes(self) -> list[Outcome]:
        """Every metric that is defined for this kind of model and data, in the order of METRICS."""
        measures = self._likelihoods() | self._scores() | self._truth()
        return [self._attempt(name, measures[name]) for name in METRICS if name in measures]

    def _attempt(self, name: str, measure: Callable[[], Estimate]) -> Outcome:
        try:
            if self.model.status != "ok" and name != "true_log_likelihood":
                raise UnavailableError(self.model.status)
            estimate = measure()
        except UnavailableError as error:
            return Outcome(name, None, None, str(error))
        except NotFiniteError as error:
            return Outcome(name, None, None, f"invalid: {error}")
        return Outcome(name, estimate.value, estimate.stderr, estimate.status)

    def _likelihoods(self) -> dict[str, Callable[[], Estimate]]:
        log_density = self.model.log_density
        if self.model.record["normalised"]:
            constant = Estimate(0.0, 0.0, str(self.model.record["log_z_status"]))
            return {
                "log_likelihood": lambda: log_likelihood(log_density, constant),
                "log_likelihood_raw": lambda: log_likelihood(log_density, constant, self.log_det),
            }
        return {
            "log_likelihood": lambda: log_likelihood(log_density, self._log_z()),
            "log_likelihood_raw": lambda: log_likelihood(log_density, self._log_z(), self.log_det),
            # log Z is too small by at most this on average, hence the likelihood too large.
            "log_likelihood_bias_bound": self._bias_bound,
            "log_z": self._log_z,
            "log_z_bias_bound": self._bias_bound,
        }

    def _scores(self) -> dict[str, Callable[[], Estimate]]:
        kernel_discrepancy = functools.cache(self._ksd)
        return {
            "score_loss": lambda: score_loss(self.model.score, self.model.curvature),
            "fssd2": self._fssd,
            "fssd_p_value": self._fssd_p_value,
            "ksd2": lambda: kernel_discrepancy()[0],
            "ksd2_v": lambda: kernel_discrepancy()[1],
        }

    def _truth(self) -> dict[str, Callable[[], Estimate]]:
        truth: dict[str, Callable[[], Estimate]] = {}
        if (score := self.model.true_score) is not None:
            truth["fisher_divergence"] = lambda: fisher_divergence(self.model.score, score)
        if (log_density := self.model.true_log_density) is not None:
            truth["true_log_likelihood"] = lambda: log_likelihood(log_density)
        return truth

    def _log_z(self) -> Estimate:
        found = self._found_normaliser()
        return self._said(found.log_z, found.log_z_stderr, found.status, found.status)

    def _bias_bound(self) -> Estimate:
        found = self._found_normaliser()
        return self._said(found.log_z_bias_bound, None, found.status, found.bound_condition)

    def _found_normaliser(self) -> Normaliser:
        if self.normaliser is None:
            raise UnavailableError("undefined: no log Z was given")
        return self.normaliser

    @staticmethod
    def _said(number: float | None, stderr: float | None, status: str, reason: str) -> Estimate:
        """A number of log_z.json with the normaliser's own verdict; where there is none, the reason it gives."""
        if number is None or not math.isfinite(number):
            raise UnavailableError(f"undefined: {reason}")
        return Estimate(number, stderr, status)

    def _fssd(self) -> Estimate:
        found = fssd(self.yardstick.x, self.model.score, *self._kernel(), self.settings.block_rows)
        return Estimate(found.statistic, found.stderr)

    def _fssd_p_value(self) -> Estimate:
        """P-value of "the model fits no worse than the reference": near 0 where the reference fits better."""
        reference = self.settings.reference_model
        if self.name == reference:
            raise UnavailableError("undefined: the model is its own reference")
        if self.reference is None:
            raise UnavailableError(f"undefined: the reference {reference} is not part of this run")
        if self.reference.status != "ok":
            raise UnavailableError(f"undefined: the reference {reference}: {self.reference.status}")
        require_finite("scores", self.model.score)
        require_finite(f"scores of the reference {reference}", self.reference.score)
        scores = (self.model.score, self.reference.score)
        test = compare_fssd(self.yardstick.x, *scores, *self._kernel(), self.settings.block_rows)
        if test.undefined:
            raise UnavailableError(f"undefined: the scores equal those of the reference {reference}")
        return Estimate(test.p_value)

    def _kernel(self) -> tuple[Array, float]:
        return self.yardstick.locations, self.settings.fssd_bandwidth_factor * self.yardstick.median

    def _ksd(self) -> tuple[Estimate, Estimate]:
        # All scores are looked at, not only those of the subset: whether a run is valid must not depend on the draw.
        require_finite("scores", self.model.score)
        rows = self.yardstick.ksd_rows
        width = self.settings.ksd_bandwidth_factor * self.yardstick.median
        found = ksd(self.yardstick.x[rows], self.model.score[rows], width, threads=self.threads)
        return Estimate(found.statistic, found.stderr), Estimate(found.v_statistic, found.stderr)
