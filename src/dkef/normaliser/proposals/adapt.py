"""Normals that follow the model instead of the training rows: population Monte Carlo by weighted EM.

Score matching hardly sees how much mass each cluster has, so a model may weigh them quite unlike the data: one fit to
Parkinsons has 98 % of its mass in two of twenty clusters. Draws of g, weighted by r^t, stand for g^(1-t) p~^t; each
round moves weights, means and covariances of h towards them, with t as large as the effective sample size allows, until
t is 1 (Cappe et al. 2008, with the tempering of annealing). Now and then the components are placed again among the
draws, so that those which have lost their weight come back where it is. What all began with keeps a tenth.
"""

from collections.abc import Callable
from dataclasses import replace

import numpy as np
from scipy.special import logsumexp, softmax

from dkef.config.schema.normaliser import DefensiveMixtureSettings
from dkef.core.arrays import Array
from dkef.normaliser.integrand import Integrand
from dkef.normaliser.proposals.clusters import gaussian_clusters, log_normals
from dkef.normaliser.proposals.defensive_mixture import DefensiveMixture, log_ratio
from dkef.normaliser.proposals.normals import CutNormals

LEAST_SHARE = 0.05  # of the draws, that stay effective under r^t
PRIOR_DRAWS = 3.0  # times d: how many effective draws the covariance of the round before counts for
LEAST_WEIGHT = 1e-6  # of a component, so that none is lost for good
FIRST_SHARE = 0.1  # of the normals that adaptation began with
RENEWAL_DRAWS, RENEWAL_WIDTH = 6000, 1.2


def adapt(
    integrand: Integrand, first: DefensiveMixture, settings: DefensiveMixtureSettings, rng: np.random.Generator,
    report: Callable[[str], None] = lambda line: None,
) -> DefensiveMixture:  # fmt: skip
    """g after the rounds of the settings; every component of the first h must have a shape of its own."""
    mixture, t = first, 0.0

    def weighted_draws() -> tuple[Array, Array]:
        nonlocal t
        x = mixture.sample(settings.adapt_draws * first.normals.dimension, rng)
        log_r = log_ratio(integrand, mixture, x)
        t = _tempering(log_r)
        return x, softmax(t * log_r)

    for pass_number in range(1 + settings.renewals):
        if pass_number > 0:
            mixture = replace(mixture, normals=_renewed(*weighted_draws(), settings.clusters, rng))
        for _ in range(settings.adapt_rounds):
            mixture = replace(mixture, normals=_moved(mixture.normals, *weighted_draws()))
    report(f"normals adapted to the model, the last round with r^{t:.2f}")
    return replace(mixture, normals=mixture.normals.joined(first.normals, FIRST_SHARE))


def _renewed(x: Array, draw_weights: Array, clusters: int, rng: np.random.Generator) -> CutNormals:
    """Clusters of the draws themselves, taken in proportion to their weights."""
    chosen = x[rng.choice(len(x), size=RENEWAL_DRAWS, p=draw_weights)]
    weights, means, covariances = gaussian_clusters(chosen, clusters, rng)
    return CutNormals(weights, means, np.arange(len(means)), RENEWAL_WIDTH * np.linalg.cholesky(covariances))


def _tempering(log_r: Array) -> float:
    """The largest t up to 1 that leaves LEAST_SHARE of the draws effective under r^t."""

    def excess(t: float) -> float:
        log_share = 2 * logsumexp(t * log_r) - logsumexp(2 * t * log_r) - np.log(len(log_r))
        return float(log_share - np.log(LEAST_SHARE))

    if excess(1.0) >= 0:
        return 1.0
    from scipy.optimize import brentq  # a quarter of a second

    return float(brentq(excess, 0.0, 1.0))


def _moved(h: CutNormals, x: Array, draw_weights: Array) -> CutNormals:
    """One step of EM on weighted draws; few draws move a covariance little."""
    shares = draw_weights[:, None] * _responsibilities(h, x)  # [n, k]
    effective = shares.sum(axis=0) ** 2 / np.maximum((shares**2).sum(axis=0), np.finfo(float).tiny)
    d = h.dimension
    centres, factors = h.centres.copy(), h.factors.copy()
    for k in range(len(centres)):
        old, trust = h.factors[k] @ h.factors[k].T, effective[k] / (effective[k] + PRIOR_DRAWS * d)
        w = shares[:, k] / max(shares[:, k].sum(), np.finfo(float).tiny)
        centres[k] += trust * (w @ x - centres[k])
        apart = x - centres[k]
        factors[k] = np.linalg.cholesky(trust * (apart * w[:, None]).T @ apart + (1 - trust) * old)
    weights = shares.sum(axis=0) + LEAST_WEIGHT
    return CutNormals(weights / weights.sum(), centres, h.shape, factors)


def _responsibilities(h: CutNormals, x: Array) -> Array:
    """Probability that a draw came from each component, all taken as whole normals; [n, k]."""
    responsibilities: Array = softmax(np.log(h.weights) + log_normals(x, h.centres, h.factors), axis=1)
    return responsibilities
