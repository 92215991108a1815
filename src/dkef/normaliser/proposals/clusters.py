"""Clusters of points with their covariances: expectation maximisation from clusters of k-means.

scikit-learn has both, and takes a second to load, a third of what a small model's log Z costs.
"""

import math
import warnings

import numpy as np
from scipy.special import logsumexp
from threadpoolctl import threadpool_limits  # type: ignore[import-untyped]

from dkef.core.arrays import Array

_ROWS = 5000  # enough for 20 covariances of 43 coordinates
_RIDGE = 1e-3  # of the mean variance, added to each covariance
_STEPS, _GAIN = 50, 1e-2  # at the most, and while the mean log density rises by so much: any clusters will do
_LEAST = 1e-14  # rows of a cluster that has lost them all


def gaussian_clusters(rows: Array, clusters: int, rng: np.random.Generator) -> tuple[Array, Array, Array]:
    """Weights [k], means [k, d] and covariances [k, d, d] of a Gaussian mixture fitted to the rows."""
    from scipy.cluster.vq import kmeans2

    enough = max(1, min(clusters, len(rows) // (2 * rows.shape[1] + 2)))  # rows to tell a covariance from
    ridge = _RIDGE * float(rows.var(axis=0).mean())
    x = rng.permutation(rows)[:_ROWS]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # a cluster may be empty where rows are copies
        _, labels = kmeans2(x, enough, minit="++", rng=rng)
    shares: Array = (labels[:, None] == np.arange(enough)).astype(np.float64)  # [n, k]
    before = -math.inf
    with threadpool_limits(1, user_api="blas"):  # the proposal must not know the machine
        for _ in range(_STEPS):
            fitted = maximised(x, shares, ridge)
            shares, mean_log_density = expected(x, *fitted)
            if mean_log_density - before < _GAIN:
                break
            before = mean_log_density
    return fitted


def maximised(x: Array, shares: Array, ridge: float) -> tuple[Array, Array, Array]:
    """Weights, means and covariances that fit the rows [n, d], of which each cluster has these shares [n, k]."""
    counts = shares.sum(axis=0) + _LEAST
    means = shares.T @ x / counts[:, None]
    covariances = np.empty((len(counts), x.shape[1], x.shape[1]))
    for k, (mean, count) in enumerate(zip(means, counts, strict=True)):
        apart = x - mean
        covariances[k] = (shares[:, k, None] * apart).T @ apart / count + ridge * np.eye(x.shape[1])
    return counts / counts.sum(), means, covariances


def expected(x: Array, weights: Array, means: Array, covariances: Array) -> tuple[Array, float]:
    """Shares [n, k] of the clusters in every row, and the mean log density of the rows."""
    log_p = np.log(weights) + log_normals(x, means, np.linalg.cholesky(covariances))
    total = logsumexp(log_p, axis=1, keepdims=True)
    return np.exp(log_p - total), float(total.mean())


def log_normals(x: Array, means: Array, factors: Array) -> Array:
    """Log densities of normals with covariances L L' at x [n, d]; returns [n, k]."""
    log_p = np.empty((len(x), len(means)))
    for k, (mean, factor) in enumerate(zip(means, factors, strict=True)):
        u = (x - mean) @ np.linalg.inv(factor).T
        log_p[:, k] = -np.log(np.diagonal(factor)).sum() - 0.5 * (u**2).sum(axis=1)
    log_p -= 0.5 * x.shape[1] * math.log(2 * math.pi)
    return log_p
