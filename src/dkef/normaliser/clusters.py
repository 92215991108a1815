"""Clusters of points with their covariances."""

import warnings

import numpy as np

from dkef.models.protocol import Array

_ROWS = 5000  # enough for 20 covariances of 43 coordinates
_RIDGE = 1e-3  # of the mean variance, added to each covariance


def gaussian_clusters(rows: Array, clusters: int, rng: np.random.Generator) -> tuple[Array, Array, Array]:
    """Weights [k], means [k, d] and covariances [k, d, d] of a Gaussian mixture fitted to the rows."""
    from sklearn.exceptions import ConvergenceWarning
    from sklearn.mixture import GaussianMixture

    enough = max(1, min(clusters, len(rows) // (2 * rows.shape[1] + 2)))  # rows to tell a covariance from
    ridge = _RIDGE * float(rows.var(axis=0).mean())
    fit = GaussianMixture(enough, reg_covar=ridge, max_iter=50, tol=1e-2, random_state=int(rng.integers(2**31)))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # any cover will do; a better one costs more than it saves
        fit.fit(rng.permutation(rows)[:_ROWS])
    return fit.weights_ / fit.weights_.sum(), fit.means_, fit.covariances_
