"""Which cover? Candidates of several kinds and widths, and the one with the most effective samples."""

import math
from collections.abc import Callable

import numpy as np
from scipy.special import logsumexp

from dkef.models.kef_parameters import KefParameters
from dkef.models.protocol import Array
from dkef.normaliser.cover import Cover
from dkef.normaliser.mixture import Mixture
from dkef.normaliser.settings import CoverSettings
from dkef.streams import rng_for

_CLUSTERED_ROWS = 5000  # enough for 20 covariances of 43 coordinates
_RIDGE = 1e-3  # of the mean variance, added to each cluster's covariance


def fit_cover(
    parameters: KefParameters, rows: Array, settings: CoverSettings, name: tuple[str | int, ...],
    report: Callable[[str], None] = lambda line: None,
) -> Mixture:  # fmt: skip
    """The g with the largest effective sample size for p~ among all candidates."""
    rng = rng_for("normalise cover", *name)
    found = candidates(rows, parameters.z, settings, rng)
    mixtures = [Mixture(parameters.q0, cover, settings.q0_share) for _, cover in found]
    efficiency = effective_shares(parameters, mixtures, settings.pilot_samples, rng)
    best = int(np.argmax(efficiency))
    report(f"cover: {found[best][0]}, {efficiency[best]:.2%} of its samples effective in the pilot run")
    return mixtures[best]


def candidates(rows: Array, z: Array, settings: CoverSettings, rng: np.random.Generator) -> list[tuple[str, Cover]]:
    """Covers of training rows [n, d] and inducing points z [m, d], each with its description.

    rows: a normal of the rows' own covariance times width^2 around every row and inducing point;
    local: the same with the covariance of the cluster that the point belongs to;
    clusters: one normal a cluster, its covariance times width^2.
    """
    weights, means, covariances = gaussian_clusters(rows, settings.clusters, rng)
    local = np.linalg.cholesky(covariances)
    shared = np.linalg.cholesky(np.atleast_2d(np.cov(rows.T)))[None]
    points = np.concatenate([rng.permutation(rows)[: settings.centres], z])
    even, nearest = np.full(len(points), 1 / len(points)), _nearest(points, means, local)
    found = []
    for width in settings.widths:
        kinds = {
            "rows": lambda w=width: Cover(even, points, np.zeros(len(points), dtype=int), w * shared),
            "local": lambda w=width: Cover(even, points, nearest, w * local),
            "clusters": lambda w=width: Cover(weights, means, np.arange(len(means)), w * local),
        }
        found += [(f"{kind} of width {width:g}", kinds[kind]()) for kind in settings.kinds]
    return found


def effective_shares(parameters: KefParameters, mixtures: list[Mixture], n: int, rng: np.random.Generator) -> Array:
    """Z^2 / E_g r^2 of each g: effective samples per sample, from n samples of each.

    All samples serve all candidates: E_g r^2 = integral of p~^2 / g, by importance sampling from the even mixture of
    all of them. A cover that misses part of the mass cannot hide it, because the others' samples lie there.
    """
    x = np.concatenate([mixture.sample(n, rng) for mixture in mixtures])
    log_p = np.concatenate([parameters.log_density(block) for block in np.array_split(x, max(1, len(x) // 2000))])
    log_g = np.stack([mixture.log_density(x) for mixture in mixtures])
    log_even = logsumexp(log_g, axis=0) - math.log(len(mixtures))
    log_z = logsumexp(log_p - log_even) - math.log(len(x))
    log_squares = logsumexp(2 * log_p - log_g - log_even, axis=1) - math.log(len(x))
    shares: Array = np.exp(2 * log_z - log_squares)
    return shares


def gaussian_clusters(rows: Array, clusters: int, rng: np.random.Generator) -> tuple[Array, Array, Array]:
    """Weights [k], means [k, d] and covariances [k, d, d] of a Gaussian mixture fitted to the rows."""
    from sklearn.mixture import GaussianMixture

    enough = max(1, min(clusters, len(rows) // (2 * rows.shape[1] + 2)))  # rows to tell a covariance from
    ridge = _RIDGE * float(rows.var(axis=0).mean())
    fit = GaussianMixture(enough, reg_covar=ridge, max_iter=50, tol=1e-2, random_state=int(rng.integers(2**31)))
    fit.fit(rng.permutation(rows)[:_CLUSTERED_ROWS])
    return fit.weights_ / fit.weights_.sum(), fit.means_, fit.covariances_


def _nearest(points: Array, means: Array, factors: Array) -> Array:
    """The cluster under which each point is most likely, [n]."""
    log_p = []
    for mean, factor in zip(means, factors, strict=True):
        u = np.linalg.solve(factor, (points - mean).T)
        log_p.append(-0.5 * (u**2).sum(axis=0) - np.log(np.diagonal(factor)).sum())
    nearest: Array = np.argmax(log_p, axis=0)
    return nearest
