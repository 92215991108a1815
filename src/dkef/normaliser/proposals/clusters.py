"""Clusters of points with their covariances."""

import math
import warnings

import numpy as np
from threadpoolctl import threadpool_limits  # type: ignore[import-untyped]

from dkef.core.arrays import Array

_ROWS = 5000  # enough for 20 covariances of 43 coordinates
_RIDGE = 1e-3  # of the mean variance, added to each covariance


def gaussian_clusters(rows: Array, clusters: int, rng: np.random.Generator) -> tuple[Array, Array, Array]:
    """Weights [k], means [k, d] and covariances [k, d, d] of a Gaussian mixture fitted to the rows."""
    from sklearn.exceptions import ConvergenceWarning
    from sklearn.mixture import GaussianMixture

    enough = max(1, min(clusters, len(rows) // (2 * rows.shape[1] + 2)))  # rows to tell a covariance from
    ridge = _RIDGE * float(rows.var(axis=0).mean())
    fit = GaussianMixture(enough, reg_covar=ridge, max_iter=50, tol=1e-2, random_state=int(rng.integers(2**31)))
    with warnings.catch_warnings(), threadpool_limits(1):  # k-means starts threads of its own
        warnings.simplefilter("ignore", ConvergenceWarning)  # any clusters will do
        fit.fit(rng.permutation(rows)[:_ROWS])
    return fit.weights_ / fit.weights_.sum(), fit.means_, fit.covariances_


def log_normals(x: Array, means: Array, factors: Array) -> Array:
    """Log densities of normals with covariances L L' at x [n, d]; returns [n, k]."""
    log_p = np.empty((len(x), len(means)))
    for k, (mean, factor) in enumerate(zip(means, factors, strict=True)):
        u = (x - mean) @ np.linalg.inv(factor).T
        log_p[:, k] = -np.log(np.diagonal(factor)).sum() - 0.5 * (u**2).sum(axis=1)
    log_p -= 0.5 * x.shape[1] * math.log(2 * math.pi)
    return log_p
