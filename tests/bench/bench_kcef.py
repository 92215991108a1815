"""KCEF: time and memory of a fit against rows N and dimensions D, and what sharing one inverse between folds saves.

Times are processor seconds of this process, which other work on the machine disturbs less than the clock.
"""

import time
import tracemalloc

import numpy as np

from dkef.core.arrays import Array
from dkef.models.kcef.conditional import Hyper, Rows, Statistics, cross_validated_score, kernel_derivatives
from dkef.models.kcef.spec import Kcef
from dkef.models.protocol import Workbench

FOLDS = 10
HYPER = Hyper(1.0, 1.0, 1e-3)


def rows_in(n: int, d: int) -> Array:
    """Correlated normal rows: whitened data look about like this."""
    rng = np.random.default_rng(0)
    x = rng.standard_normal((n, d))
    x[:, 1:] = 0.8 * x[:, 1:] + 0.6 * np.sin(2 * x[:, :-1])
    return x


def refit_every_fold(rows: Rows) -> list[Array]:
    """beta of each fold by a solve of its own: what the shared inverse replaces."""
    n = len(rows.q1)
    _, _, k2, k3, k4 = kernel_derivatives(rows, HYPER)
    betas = []
    for v in range(FOLDS):
        kept = np.delete(np.arange(n), np.arange(v * n // FOLDS, (v + 1) * n // FOLDS))
        own = [k[np.ix_(kept, kept)] for k in (k2, k3, k4)]
        stats = Statistics.of(own[0], own[1], own[2], rows.q1[kept], np.ones((len(kept), 1)))
        A = stats.G + len(kept) * HYPER.lam * np.eye(len(kept))
        betas.append(np.linalg.solve(A, stats.h[:, 0] / HYPER.lam))
    return betas


def step_cost(rows: Rows) -> float:
    """Processor seconds of one held-out score with its gradient, the best of three."""
    times = []
    for _ in range(3):
        began = time.process_time()
        cross_validated_score(rows, HYPER, FOLDS)
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
    Kcef(rows=n).fit(x[:n], x[n:], Workbench())
    seconds = time.process_time() - began
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    return seconds, peak / 1e6


def measure() -> dict[str, float]:
    figures = {}
    for n in (250, 500, 1000):
        x = rows_in(n, 2)
        rows = Rows.of(x[:, :1], x[:, 1], 2.0)
        figures[f"kcef_search_step_cpu_seconds_n{n}"] = step_cost(rows)
    figures["kcef_shared_folds_with_gradient_over_refits_n1000"] = step_cost(rows) / refit_cost(rows)
    for n, d in ((250, 2), (500, 2), (1000, 2), (500, 5), (500, 11)):
        seconds, megabytes = fit_cost(n, d)
        figures[f"kcef_fit_cpu_seconds_n{n}_d{d}"] = seconds
        figures[f"kcef_fit_peak_mb_n{n}_d{d}"] = megabytes
    return figures
