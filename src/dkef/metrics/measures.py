"""How each metric is measured on a case: a value with its error, or the reason why there is none."""

import math
from collections.abc import Callable
from dataclasses import replace
from typing import NamedTuple

from dkef.core.arrays import Array
from dkef.metrics.case import Case, Normaliser, UnavailableError
from dkef.metrics.pointwise import (
    Estimate,
    fisher_divergence,
    largest_share,
    log_likelihood,
    median_over_points,
    require_finite,
    row_score_losses,
    row_squared_distances,
    score_loss,
)
from dkef.metrics.stein import compare_fssd, fssd
from dkef.models.evaluation import EvaluatedModel

# Which models and data have a metric.


def unnormalised(case: Case) -> bool:
    return not case.model.record["normalised"]


def has_true_score(case: Case) -> bool:
    return case.model.true_score is not None


def has_true_density(case: Case) -> bool:
    return case.model.true_log_density is not None


def has_integrals(case: Case) -> bool:
    return case.integrals is not None


def sampled_beside_quadrature(case: Case) -> bool:
    return unnormalised(case) and has_integrals(case)


def has_kl(case: Case) -> bool:
    return has_integrals(case) and has_true_density(case)


def has_sharp_component(case: Case) -> bool:
    return case.integrals is not None and case.integrals.true_sharp_mass is not None


def has_fixed_q0_reference(case: Case) -> bool:
    return case.fixed_q0_reference is not None or case.name == case.settings.fixed_q0_reference


# Likelihoods and log Z.


def log_z(case: Case) -> Estimate:
    """By importance sampling."""
    found = _normaliser(case)
    return _given(found.log_z, found.log_z_stderr, found.status, found.status)


def bias_bound(case: Case) -> Estimate:
    """The sampled log Z is too small by at most this on average, hence the likelihood too large."""
    found = _normaliser(case)
    return _given(found.log_z_bias_bound, None, found.status, found.bound_condition)


def best_log_z(case: Case) -> Estimate:
    """What likelihoods rest on: the model's own constant, quadrature where it can be relied on, or samples."""
    if case.model.record["normalised"]:
        return Estimate(0.0, 0.0, str(case.model.record["log_z_status"]))
    if case.integrals is not None and case.integrals.status == "ok":
        return log_z_quadrature(case)
    return log_z(case)


def log_likelihood_of(case: Case) -> Estimate:
    return log_likelihood(case.model.log_density, best_log_z(case))


def log_likelihood_raw(case: Case) -> Estimate:
    return log_likelihood(case.model.log_density, best_log_z(case), case.log_det)


def log_likelihood_sampled(case: Case) -> Estimate:
    """By importance sampling, where the log-likelihood itself rests on quadrature."""
    return log_likelihood(case.model.log_density, log_z(case))


def true_log_likelihood(case: Case) -> Estimate:
    assert case.model.true_log_density is not None
    return log_likelihood(case.model.true_log_density)


def _normaliser(case: Case) -> Normaliser:
    if case.normaliser is None:
        raise UnavailableError("undefined: no log Z was given")
    return case.normaliser


def _given(number: float | None, stderr: float | None, status: str, reason: str) -> Estimate:
    """A number of a record with its own verdict; where there is none, the reason it gives."""
    if number is None or not math.isfinite(number):
        raise UnavailableError(f"undefined: {reason}")
    return Estimate(number, stderr, status)


# By quadrature: the error is that of the rule.


def by_quadrature(name: str) -> Callable[[Case], Estimate]:
    """An integral of `Integrals`."""

    def measure(case: Case) -> Estimate:
        found = case.integrals
        assert found is not None
        if found.status.startswith("invalid"):
            raise UnavailableError(found.status)
        return _given(getattr(found, name), getattr(found, f"{name}_error"), found.status, "no quadrature")

    return measure


log_z_quadrature = by_quadrature("log_z")


def log_z_deviation(case: Case) -> Estimate:
    """How far the sampled log Z is from that of the quadrature, in standard errors of both together."""
    sampled, integrated = log_z(case), log_z_quadrature(case)
    error = math.hypot(sampled.stderr or 0.0, integrated.stderr or 0.0)
    if error == 0:
        raise UnavailableError("undefined: neither log Z has an error")
    return Estimate((sampled.value - integrated.value) / error, None, sampled.status)


# Scores.


def score_loss_of(case: Case) -> Estimate:
    return score_loss(case.model.score, case.model.curvature)


def fisher_divergence_of(case: Case) -> Estimate:
    assert case.model.true_score is not None
    return fisher_divergence(case.model.score, case.model.true_score)


def fssd_of(case: Case) -> Estimate:
    found = fssd(case.setup.x, case.model.score, case.setup.locations, case.fssd_width, case.settings.block_rows)
    return Estimate(found.statistic, found.stderr)


def fssd_p_value(case: Case) -> Estimate:
    """P-value of "the model fits no worse than the reference": near 0 where the reference fits better."""
    return _p_value(case, case.settings.reference_model, case.reference)


def fssd_p_value_fixed_q0(case: Case) -> Estimate:
    """The same against DKEF with fixed q0, the reference of Figure 6."""
    return _p_value(case, case.settings.fixed_q0_reference, case.fixed_q0_reference)


def _p_value(case: Case, name: str | None, reference: EvaluatedModel | None) -> Estimate:
    if name is None:
        raise UnavailableError("undefined: the experiment names no reference")
    if case.name == name:
        raise UnavailableError("undefined: the model is its own reference")
    if reference is None:
        raise UnavailableError(f"undefined: the reference {name} is not part of this run")
    if reference.status != "ok":
        raise UnavailableError(f"undefined: the reference {name}: {reference.status}")
    require_finite("scores", case.model.score)
    require_finite(f"scores of the reference {name}", reference.score)
    scores = (case.model.score, reference.score)
    test = compare_fssd(case.setup.x, *scores, case.setup.locations, case.fssd_width, case.settings.block_rows)
    if test.undefined:
        raise UnavailableError(f"undefined: the scores equal those of the reference {name}")
    return Estimate(test.p_value)


def ksd_of(case: Case) -> Estimate:
    return Estimate(case.ksd.statistic, case.ksd.stderr)


def ksd_v(case: Case) -> Estimate:
    return Estimate(case.ksd.v_statistic, case.ksd.stderr)


# One value a test row, behind the metrics that are means: for summaries that one row cannot decide.


class Rows(NamedTuple):
    """One value a test row, and the doubt that comes with all of them."""

    values: Array  # [n]
    status: str = "ok"


def _log_likelihoods(case: Case) -> Rows:
    constant = best_log_z(case)
    return Rows(case.model.log_density - constant.value, constant.status)


def _score_losses(case: Case) -> Rows:
    return Rows(row_score_losses(case.model.score, case.model.curvature))


def _squared_distances(case: Case) -> Rows:
    assert case.model.true_score is not None
    return Rows(row_squared_distances(case.model.score, case.model.true_score))


ROWS: dict[str, tuple[str, Callable[[Case], Rows]]] = {
    "log_likelihood": ("log densities", _log_likelihoods),
    "score_loss": ("score losses", _score_losses),
    "fisher_divergence": ("squared distances", _squared_distances),
}


# Summaries of the rows beside the metric itself, which is their mean.
SUMMARIES = {"median": median_over_points, "largest_row": largest_share}


def over_rows(metric: str, summary: str) -> Callable[[Case], Estimate]:
    """One of SUMMARIES of the values behind a metric."""
    what, rows_of = ROWS[metric]

    def measure(case: Case) -> Estimate:
        rows = rows_of(case)
        return replace(SUMMARIES[summary](what, rows.values), status=rows.status)

    return measure
