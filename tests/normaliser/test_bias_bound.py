"""Proposition 1, against exact arithmetic and against what it claims."""

import math
from decimal import Decimal, getcontext

import numpy as np
import pytest
from scipy.special import logsumexp

from dkef.normaliser import BoundError, bias_bound, hoeffding_upper
from dkef.normaliser.weights import Q0Weights, log_lower_bound
from tests.normaliser.examples import log_moment, log_r_on_grid, random_kef

getcontext().prec = 60


def exact_bound(log_a: float, log_s: float, rho: float, log_z: float, log_var: float, n: int) -> float:
    """The formula as it is printed, in 60 digits."""
    a, s, Z, var = (Decimal(x).exp() for x in (log_a, log_s, log_z, log_var))
    t, rho = (a + s) / 2, Decimal(rho)

    def psi(q: Decimal) -> Decimal:
        return (Z / q).ln() + q / Z - 1

    term = (4 * rho * (1 - rho)) ** (Decimal(n) / 2) if rho else Decimal(0)
    return float(psi(t) / (Z - t) ** 2 * var / n + max(psi(a), psi(t)) * term)


@pytest.mark.parametrize(
    "case",
    [
        (-3.0, -1.0, 0.4, 0.0, 1.0, 1000),
        (-1500.0, 40.0, 0.4006, 58.0, 130.0, 10**10),  # real data: a is far below float64's range
        (-2.0, -1e-6, 0.45, 0.0, -3.0, 50),  # t near Z/2
        (-0.02, -0.001, 0.49, 0.0, -5.0, 200),  # t just below Z: the closed form of psi would cancel
        (-1e-6, -1e-8, 0.3, 0.0, -20.0, 10),
        (-5.0, -1.0, 0.0, 0.0, 0.0, 1),
        (-5.0, -1.0, 0.499, 0.0, 0.0, 3),  # the second term is what counts
    ],
)
def test_bound_equals_the_printed_formula(case):
    assert bias_bound(*case) == pytest.approx(exact_bound(*case), rel=1e-9)


def test_bound_does_not_change_with_the_unit_of_r():
    here = bias_bound(-3.0, -1.0, 0.4, 0.0, 1.0, 100)
    there = bias_bound(-3.0 + 700, -1.0 + 700, 0.4, 700.0, 1.0 + 1400, 100)
    assert there == pytest.approx(here, rel=1e-11)


@pytest.mark.parametrize(
    ("case", "reason"),
    [
        ((-3.0, -1.0, 0.5, 0.0, 1.0, 10), "rho = 0.5"),
        ((-1.0, -1.0, 0.4, 0.0, 1.0, 10), "log a"),
        ((-3.0, 2.0, 0.4, 0.0, 1.0, 10), "log t"),
    ],
)
def test_a_failed_condition_is_named(case, reason):
    with pytest.raises(BoundError, match=reason):
        bias_bound(*case)


def test_hoeffding_limit_is_that_of_the_paper():
    # 10^7 samples at 0.999 add 5.9e-4 to the frequency
    assert hoeffding_upper(4_000_000, 10_000_000) == pytest.approx(0.4 + 5.877e-4, abs=1e-7)


def test_a_lies_below_every_weight():
    for seed in range(3):
        parameters = random_kef(seed, d=2, alpha_scale=2.0)
        log_a = log_lower_bound(parameters)
        assert log_a is not None
        assert log_a < log_r_on_grid(parameters)[0].min()
        assert log_a < Q0Weights(parameters, seed).log_r("z", 0, 100_000).min()


def test_linear_kernels_have_no_lower_bound():
    assert log_lower_bound(random_kef(kind="linear")) is None


def true_quantities(parameters, level: float = 0.4) -> tuple[float, float, float, float]:
    """log s at the level-quantile of r, Pr(r <= s), log Z and log Var r, by quadrature."""
    log_r, log_w = log_r_on_grid(parameters)
    order = np.argsort(log_r)
    log_s = float(log_r[order][np.searchsorted(np.exp(log_w[order]).cumsum(), level)]) - 0.001
    rho = float(np.exp(log_w[log_r <= log_s]).sum())
    log_z = log_moment(parameters)
    log_var = float(logsumexp(2 * log_r + log_w)) + math.log1p(-math.exp(2 * log_z - log_moment(parameters, 2)))
    return log_s, rho, log_z, log_var


@pytest.mark.parametrize(("seed", "n"), [(0, 4), (1, 4), (2, 16), (3, 16), (4, 64)])
def test_the_bias_over_200_small_runs_is_below_the_bound(seed, n):
    parameters = random_kef(seed, d=1, m=30, alpha_scale=3.0)
    log_s, rho, log_z, log_var = true_quantities(parameters)
    bound = bias_bound(Q0Weights(parameters, seed).log_a, log_s, rho, log_z, log_var, n)
    log_r = Q0Weights(parameters, seed).log_r("z", 0, 200 * n).reshape(200, n)
    estimates = logsumexp(log_r, axis=1) - math.log(n)
    bias, stderr = log_z - estimates.mean(), estimates.std() / math.sqrt(200)
    assert bias > -4 * stderr  # log Z^ is too small on average (Jensen)
    assert bias < bound


@pytest.mark.parametrize("seed", range(3))
def test_the_estimated_bound_is_on_average_not_below_the_true_one(seed):
    parameters = random_kef(seed, d=1, m=30, alpha_scale=2.0)
    weights, n = Q0Weights(parameters, seed), 100
    log_s, rho, log_z, log_var = true_quantities(parameters)
    truth = bias_bound(weights.log_a, log_s, rho, log_z, log_var, n)
    variances = weights.log_r("variance", 0, 200 * n).reshape(200, n)
    means = logsumexp(weights.log_r("bound_z", 0, 200 * n).reshape(200, n), axis=1) - math.log(n)
    estimated = [
        bias_bound(weights.log_a, log_s, rho, mean, 2 * log_z + math.log(np.exp(row - log_z).var(ddof=1)), n)
        for row, mean in zip(variances, means, strict=True)
    ]
    # Proposition 6; the average of 200 has a standard error of its own
    assert np.mean(estimated) > truth - 3 * np.std(estimated) / math.sqrt(200)
