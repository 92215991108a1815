"""Every metric there is: METRICS has a line for each. A value with its error, or the reason why there is none."""

from collections.abc import Iterator
from dataclasses import dataclass

from dkef.metrics import measures as m
from dkef.metrics.case import Case, Metric, UnavailableError
from dkef.metrics.pointwise import NotFiniteError

# In the order of the tables. Differences in raw units equal those in whitened ones: they are tested once.
BASIC: dict[str, Metric] = {
    "log_likelihood": Metric(m.log_likelihood_of, True, shown=True),
    "log_likelihood_raw": Metric(m.log_likelihood_raw, True, paired=False),
    "log_likelihood_sampled": Metric(m.log_likelihood_sampled, True, m.sampled_beside_quadrature, paired=False),
    "log_likelihood_bias_bound": Metric(m.bias_bound, defined=m.unnormalised, shown=True),
    "log_z": Metric(m.log_z, defined=m.unnormalised),
    "log_z_bias_bound": Metric(m.bias_bound, defined=m.unnormalised),
    "log_z_quadrature": Metric(m.log_z_quadrature, defined=m.has_integrals),
    "log_z_deviation": Metric(m.log_z_deviation, defined=m.sampled_beside_quadrature),
    "score_loss": Metric(m.score_loss_of, False, shown=True),
    "fssd2": Metric(m.fssd_of, False, shown=True),
    "fssd_p_value": Metric(m.fssd_p_value, shown=True),
    "fssd_p_value_fixed_q0": Metric(m.fssd_p_value_fixed_q0, defined=m.has_fixed_q0_reference),
    "ksd2": Metric(m.ksd_of, False, shown=True),
    "ksd2_v": Metric(m.ksd_v, False),
    "fisher_divergence": Metric(m.fisher_divergence_of, False, m.has_true_score, shown=True),
    "fisher_quadrature": Metric(m.by_quadrature("fisher"), False, m.has_kl, shown=True),
    "kl_quadrature": Metric(m.by_quadrature("kl"), False, m.has_kl, shown=True),
    "sharp_mass": Metric(m.by_quadrature("sharp_mass"), defined=m.has_sharp_component, shown=True),
    "true_log_likelihood": Metric(m.true_log_likelihood, defined=m.has_true_density, of_truth=True),
}
# These are statistics of the test rows, and hence also reported without rows that are copies of training rows.
OF_ROWS = ("log_likelihood", "score_loss", "fssd2", "fssd_p_value", "ksd2", "fisher_divergence")


def _without_copies(metric: Metric) -> Metric:
    return Metric(
        lambda case: metric.measure(case.without_copies),
        metric.more_is_better,
        lambda case: case.has_copies and metric.defined(case),
        shown=metric.shown,
    )


def _all() -> Iterator[tuple[str, Metric]]:
    """Every basic metric, and after it its variants."""
    for name, metric in BASIC.items():
        yield name, metric
        if name in OF_ROWS:
            yield f"{name}_no_copies", _without_copies(metric)
        if name in m.ROWS:
            yield (
                f"{name}_median",
                Metric(m.over_rows(name, "median"), metric.more_is_better, metric.defined, paired=False),
            )
            yield f"{name}_largest_row", Metric(m.over_rows(name, "largest_row"), None, metric.defined)


METRICS: dict[str, Metric] = dict(_all())


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
