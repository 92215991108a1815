"""Time and memory of FSSD and KSD at the size of HepMass: 174,900 test rows, 22 columns, 100 locations."""

import os
import resource

import numpy as np
from limits import best_time

from dkef.metrics.stein import compare_fssd, fssd, ksd

N, D, J = 174_900, 22, 100
KSD_ROWS = 20_000  # the default of comparison.ksd_max_rows
BANDWIDTH = 6.5  # the median distance of standard normal rows


def peak_gb() -> float:
    """Largest resident size of this process so far."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024**2


def one_shot(x: np.ndarray, score: np.ndarray, v: np.ndarray) -> float:
    """FSSD^2 from the whole n x J x D tensor of features."""
    gap = (x[:, None, :] - v) / BANDWIDTH
    kernel = np.exp(-0.5 * (gap**2).sum(axis=2, keepdims=True))
    tau = (kernel * (score[:, None, :] - gap / BANDWIDTH) / np.sqrt(v.size)).reshape(len(x), -1)
    mu, n = tau.mean(axis=0), len(x)
    return float((n * mu @ mu - (tau**2).sum() / n) / (n - 1))


def measure() -> dict[str, float]:
    rng = np.random.default_rng(0)
    x = rng.standard_normal((N, D))
    score_p, score_q, v = 0.1 - x, -x, x[:J] + 0.2
    before = peak_gb()
    figures = {"fssd_hepmass_seconds": best_time(lambda: fssd(x, score_p, v, BANDWIDTH), 3)}
    figures["fssd_compare_hepmass_seconds"] = best_time(lambda: compare_fssd(x, score_p, score_q, v, BANDWIDTH), 3)
    figures["fssd_hepmass_extra_gb"] = peak_gb() - before
    figures["fssd_hepmass_process_gb"] = peak_gb()
    few, cores = slice(KSD_ROWS), len(os.sched_getaffinity(0))
    for name, threads in (("1_thread", 1), ("all_cores", cores)):
        figures[f"ksd_{KSD_ROWS}_rows_{name}_seconds"] = best_time(
            lambda threads=threads: ksd(x[few], score_p[few], BANDWIDTH, threads=threads), 2
        )
    # The work is n^2 / 2 pairs: what all test rows would take without the cap.
    figures["ksd_hepmass_all_rows_estimated_seconds"] = (
        figures[f"ksd_{KSD_ROWS}_rows_all_cores_seconds"] * (N / KSD_ROWS) ** 2
    )
    figures["ksd_process_gb"] = peak_gb()
    # The same number as the one-shot formula, at a tenth of the rows: the whole tensor would take 3 GB.
    part = slice(N // 10)
    figures["fssd_one_shot_over_blocks"] = best_time(lambda: one_shot(x[part], score_p[part], v), 2) / best_time(
        lambda: fssd(x[part], score_p[part], v, BANDWIDTH), 2
    )
    whole, blocks = one_shot(x[part], score_p[part], v), fssd(x[part], score_p[part], v, BANDWIDTH).statistic
    figures["fssd_one_shot_relative_difference"] = abs(blocks - whole) / abs(whole)
    return figures
