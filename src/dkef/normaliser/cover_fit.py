"""Which cover? Candidates of several kinds and widths, and the one with the most effective samples."""

import math
from collections.abc import Callable
from dataclasses import replace

import numpy as np
from scipy.special import logsumexp

from dkef.models.kef_parameters import KefParameters
from dkef.models.protocol import Array
from dkef.normaliser.clusters import gaussian_clusters, log_normals
from dkef.normaliser.cover import Cover
from dkef.normaliser.cover_adapt import adapt
from dkef.normaliser.mixture import Mixture
from dkef.normaliser.settings import CoverSettings
from dkef.streams import rng_for

FIRST_WIDTH = 1.4  # of the clusters that adaptation begins with
ADAPTED_WIDTHS = (1.2, 1.4)  # wider tails: at 1, one of 5 million weights once made 15 % of the sum of squares

Report = Callable[[str], None]


def fit_cover(
    parameters: KefParameters, rows: Array, settings: CoverSettings, name: tuple[str | int, ...],
    report: Report = lambda line: None,
) -> Mixture:  # fmt: skip
    """The g with the largest effective sample size for p~ among all candidates."""
    rng = rng_for("normalise cover", *name)
    found = candidates(parameters, rows, settings, rng, report)
    mixtures = [Mixture(parameters.q0, cover, settings.q0_share) for cover in found.values()]
    shares = effective_shares(parameters, mixtures, settings.pilot_samples, rng)
    best = int(np.argmax(shares))
    report(f"cover: {list(found)[best]}, {shares[best]:.2%} of its samples effective in a pilot run")
    return mixtures[best]


def candidates(
    parameters: KefParameters, rows: Array, settings: CoverSettings, rng: np.random.Generator,
    report: Report = lambda line: None,
) -> dict[str, Cover]:  # fmt: skip
    """Covers of the training rows [n, d] and the inducing points, by their descriptions.

    rows: a normal of the rows' own covariance times width^2 around every row and inducing point;
    local: the same with the covariance of the cluster that the point belongs to;
    clusters: one normal a cluster, its covariance times width^2;
    adapted: clusters that have moved to where the model has its mass.
    """
    weights, means, covariances = gaussian_clusters(rows, settings.clusters, rng)
    local = np.linalg.cholesky(covariances)
    shared = np.linalg.cholesky(np.atleast_2d(np.cov(rows.T)))[None]
    points = np.concatenate([rng.permutation(rows)[: settings.centres], parameters.z])
    even = np.full(len(points), 1 / len(points))
    unit = {
        "rows": Cover(even, points, np.zeros(len(points), dtype=int), shared),
        "local": Cover(even, points, np.argmax(log_normals(points, means, local), axis=1), local),
        "clusters": Cover(weights, means, np.arange(len(means)), local),
    }
    widths = dict.fromkeys(unit, tuple(settings.widths))
    if "adapted" in settings.kinds:
        first = Mixture(parameters.q0, _widened(unit["clusters"], FIRST_WIDTH), settings.q0_share)
        unit["adapted"] = adapt(parameters, first, settings, rng, report).cover
        widths["adapted"] = ADAPTED_WIDTHS
    return {
        f"{kind} of width {width:g}": _widened(unit[kind], width) for kind in settings.kinds for width in widths[kind]
    }


def _widened(cover: Cover, width: float) -> Cover:
    return replace(cover, factors=width * cover.factors)


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
