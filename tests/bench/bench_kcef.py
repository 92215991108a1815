"""KCEF: time and memory of a fit against rows N and dimensions D, and what sharing one inverse between folds saves.

Times are processor seconds of this process, which other work on the machine disturbs less than the clock.
"""

import time
import tracemalloc

import numpy as np
from limits import Limit
from threadpoolctl import threadpool_limits

from dkef.core.arrays import Array
from dkef.models.kcef.conditional import Hyper, Rows, fit_beta
from dkef.models.kcef.cross_validation import cross_validated_score, workspace
from dkef.models.kcef.spec import Kcef
from dkef.models.protocol import FitContext

FOLDS = 10
HYPER = Hyper(1.0, 1.0, 1e-3)
LIMITS = (
    Limit(
        "kcef_search_step_over_dgemm_n1000",
        "the inverse alone is half a product; with three tangents instead of one adjoint solve it was 3.5",
        most=2.5,
    ),
)


def rows_in(n: int, d: int) -> Array:
    """Correlated normal rows: whitened data look about like this."""
    rng = np.random.default_rng(0)
    x = rng.standard_normal((n, d))
    x[:, 1:] = 0.8 * x[:, 1:] + 0.6 * np.sin(2 * x[:, :-1])
    return x


def refit_every_fold(rows: Rows) -> list[Array]:
    """beta of each fold by a fit of its own: what the shared inverse replaces."""
    n = len(rows.q1)
    betas = []
    for v in range(FOLDS):
        kept = np.delete(np.arange(n), np.arange(v * n // FOLDS, (v + 1) * n // FOLDS))
        own = np.ix_(kept, kept)
        betas.append(fit_beta(Rows(rows.squared[own], rows.r[own], rows.q1[kept]), HYPER))
    return betas


def product_cost(n: int) -> float:
    """Processor seconds of one product of two n x n matrices, the best of five."""
    square = np.random.default_rng(1).standard_normal((n, n))
    times = []
    for _ in range(5):
        began = time.process_time()
        square @ square
        times.append(time.process_time() - began)
    return min(times)


def step_cost(rows: Rows) -> float:
    """Processor seconds of one held-out score with its gradient, the best of three."""
    times, work = [], workspace(rows)
    for _ in range(3):
        began = time.process_time()
        cross_validated_score(rows, HYPER, FOLDS, work)
        times.append(time.process_time() - began)
    return min(times)


def refit_cost(rows: Rows) -> float:
    began = time.process_time()
    refit_every_fold(rows)
    return time.process_time() - began


def fit_cost(n: int, d: int) -> tuple[float, float]:
    """Processor seconds and peak megabytes (10^6 bytes of arrays) of one fit with its search."""
    x = rows_in(n + 100, d)
    tracemalloc.start()
    began = time.process_time()
    Kcef(rows=n).fit(x[:n], x[n:], FitContext())
    seconds = time.process_time() - began
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    return seconds, peak / 1e6


def measure() -> dict[str, float]:
    # BLAS threads wait in a loop that counts as processor time
    with threadpool_limits(1, user_api="blas"):
        return measure_on_one_thread()


def measure_on_one_thread() -> dict[str, float]:
    figures = {}
    for n in (250, 500, 1000):
        x = rows_in(n, 2)
        rows = Rows.of(x[:, :1], x[:, 1], 2.0)
        figures[f"kcef_search_step_cpu_seconds_n{n}"] = step_cost(rows)
        figures[f"kcef_search_step_over_dgemm_n{n}"] = step_cost(rows) / product_cost(n)
    figures["kcef_shared_folds_with_gradient_over_refits_n1000"] = step_cost(rows) / refit_cost(rows)
    for n, d in ((250, 2), (500, 2), (1000, 2), (500, 5), (500, 11)):
        seconds, megabytes = fit_cost(n, d)
        figures[f"kcef_fit_cpu_seconds_n{n}_d{d}"] = seconds
        figures[f"kcef_fit_peak_mb_n{n}_d{d}"] = megabytes
    return figures
