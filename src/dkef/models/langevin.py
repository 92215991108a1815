"""Metropolis-adjusted Langevin chains on any density with a score, in NumPy."""

from collections.abc import Callable

import numpy as np

from dkef.core.arrays import Array

TARGET_ACCEPTANCE = 0.57  # optimal for Langevin proposals in high dimension


def langevin_chains(
    field: Callable[[Array], tuple[Array, Array]], start: Array, steps: int, rng: np.random.Generator
) -> Array:
    """State of independent chains after `steps` steps from the rows of start [n, d].

    field: log density [n] and its gradient [n, d] at points [n, d]. The common step size adapts to the share of
    accepted proposals in the first half and is then fixed.
    """
    x = start.astype(np.float64)
    log_p, score = field(x)
    log_step = np.log(0.1)
    for step in range(steps):
        size = np.exp(log_step)
        noise = rng.standard_normal(x.shape)
        y = x + 0.5 * size**2 * score + size * noise
        log_p_y, score_y = field(y)
        back = (x - y - 0.5 * size**2 * score_y) / size
        log_ratio = log_p_y - log_p + 0.5 * (noise**2 - back**2).sum(axis=1)
        accept = np.log(rng.random(len(x))) < log_ratio
        x, score = np.where(accept[:, None], y, x), np.where(accept[:, None], score_y, score)
        log_p = np.where(accept, log_p_y, log_p)
        if step < steps // 2:
            log_step += (accept.mean() - TARGET_ACCEPTANCE) / np.sqrt(1 + step / 10)
    return x
