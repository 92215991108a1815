"""Pareto k-hat of importance weights: do so few of them matter that the rest tells nothing about the sum?

Beyond a high threshold, weights follow a generalised Pareto distribution of shape k; moments of order 1 / k and above
do not exist. k > 1/2 means infinite variance, and above 0.7 sums of any affordable number of weights are misleading
(Vehtari et al., Pareto smoothed importance sampling), even where r is bounded and only looks so at this sample size.
"""

import math

import numpy as np

from dkef.core.arrays import Array

TAIL = 256  # largest weights that are kept; a standard error of about (1 + k) / 16
LEAST_TAIL = 20
LARGEST_EXPONENT = 700.0  # of a weight above the threshold, in floating point


def tail_size(n: int) -> int:
    """How many of the largest of n weights make the tail."""
    return min(TAIL, n // 5, int(3 * math.sqrt(n)))


def pareto_k_hat(largest: Array, n: int) -> float | None:
    """k of n weights from the logs of the largest of them, in descending order; None where there are too few.

    Zhang and Stephens (2009): with b = -k / sigma, the profile likelihood of b is averaged over a grid that follows
    the quartile of the data, which is as good as maximum likelihood and never fails to converge.
    """
    size = tail_size(n)
    if size < LEAST_TAIL or len(largest) <= size:
        return None
    above = largest[:size] - largest[size]
    if above[0] > LARGEST_EXPONENT:
        return float(above.mean())  # Hill's estimate, which needs the logs only
    x = np.sort(np.expm1(above))  # excesses over the threshold, in its units
    if x[0] == x[-1]:
        return None
    grid = 30 + int(math.sqrt(size))
    quartile = x[int(size / 4 + 0.5) - 1]
    floor = quartile if quartile > 0 else x[x > 0][0]
    b = 1 / x[-1] + (1 - np.sqrt(grid / (np.arange(1, grid + 1) - 0.5))) / (3 * floor)
    b = b[b != 0]
    shapes = np.log1p(-b[:, None] * x).mean(axis=1)
    log_likelihood = size * (np.log(-b / shapes) - shapes - 1)
    weight = np.exp(log_likelihood - log_likelihood.max())
    mean_b = (weight @ b) / weight.sum()
    return float(np.log1p(-mean_b * x).mean())
