"""Which cover? Candidates of several kinds and widths, and the one with the most effective samples."""

import math
from collections.abc import Callable, Sequence

import numpy as np
from scipy.special import logsumexp

from dkef.config.schema.normaliser import CoverSettings
from dkef.core.arrays import Array
from dkef.core.streams import rng_for
from dkef.models.kef.parameters import KefParameters
from dkef.normaliser.proposals.clusters import gaussian_clusters, log_normals
from dkef.normaliser.proposals.cover import Cover
from dkef.normaliser.proposals.cover_adapt import adapt
from dkef.normaliser.proposals.cover_weigh import weigh
from dkef.normaliser.proposals.mixture import Mixture, log_p, rounded
from dkef.normaliser.simd.program import pack

FIRST_WIDTH = 1.4  # of the clusters that adaptation begins with
ADAPTED_WIDTH = 1.2  # wider tails: at 1, one of 5 million weights once made 15 % of the sum of squares
# A few thousand samples tell bad from good, not good from best, which rare ones decide: the best few get more of them.
FINALISTS, FINAL_FACTOR = 3, 10
# What `bridged` adds to the adapted clusters, and the shares of h that `weigh` begins with:
HALO_WIDTH, HALO_SHARE = 1.5, 0.2  # each cluster once more, wider
BRIDGE_WIDTHS, BRIDGE_SHARE = (1.0, 1.4, 2.0, 2.8, 4.0), 0.2  # normals around all rows
# Narrow normals around each row: a deep kernel may leave a peak at every few rows, too many for a score of clusters.
NEAR, NEAR_SHARE = (("rows", 0.3), ("rows", 0.7), ("local", 0.7)), 0.2

Report = Callable[[str], None]


def fit_cover(
    parameters: KefParameters, rows: Array, settings: CoverSettings, name: tuple[str | int, ...],
    report: Report = lambda line: None,
) -> Mixture:  # fmt: skip
    """The g of all candidates with the largest share of effective samples for p~."""
    rng = rng_for("normalise cover", *name)
    found = candidates(parameters, rows, settings, rng, report)
    mixtures = {kind: Mixture(parameters.q0, cover, settings.q0_share) for kind, cover in found.items()}
    first = _ranked(parameters, mixtures, settings.pilot_samples, rng)
    finalists = {kind: mixtures[kind] for kind, _ in first[:FINALISTS]}
    best, share = _ranked(parameters, finalists, FINAL_FACTOR * settings.pilot_samples, rng)[0]
    report(f"cover: {best}, {share:.2%} of its samples effective in a pilot run")
    return mixtures[best]


def _ranked(
    parameters: KefParameters, mixtures: dict[str, Mixture], samples: int, rng: np.random.Generator
) -> list[tuple[str, float]]:
    """The names of g with their shares of effective samples, the best first."""
    shares = effective_shares(parameters, list(mixtures.values()), samples, rng)
    return sorted(zip(mixtures, shares.tolist(), strict=True), key=lambda pair: -pair[1])


def candidates(
    parameters: KefParameters, rows: Array, settings: CoverSettings, rng: np.random.Generator,
    report: Report = lambda line: None,
) -> dict[str, Cover]:  # fmt: skip
    """Covers of the training rows [n, d] and the inducing points, by their descriptions.

    rows: a normal of the rows' own covariance times width^2 around every row and inducing point;
    local: the same with the covariance of the cluster that the point belongs to;
    clusters: one normal a cluster, its covariance times width^2;
    adapted: clusters that have moved to where the model has its mass;
    bridged: adapted with wider tails beside it, ever wider normals around all rows up to q0, and narrow ones around
        each row and inducing point, in the shares that make the second moment of r least.
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
    found = {
        f"{kind} of width {width:g}": cover.widened(width)
        for kind, cover in unit.items() if kind in settings.kinds for width in settings.widths
    }  # fmt: skip
    if not {"adapted", "bridged"} & set(settings.kinds):
        return found
    first = Mixture(parameters.q0, unit["clusters"].widened(FIRST_WIDTH), settings.q0_share)
    adapted = adapt(parameters, first, settings, rng, report).cover
    if "adapted" in settings.kinds:
        found[f"adapted of width {ADAPTED_WIDTH:g}"] = adapted.widened(ADAPTED_WIDTH)
    if "bridged" in settings.kinds:
        around = Cover(np.ones(1), rows.mean(axis=0)[None], np.zeros(1, dtype=int), shared)
        near = [unit[kind].widened(width) for kind, width in NEAR]
        draws = settings.adapt_draws * adapted.dimension
        bridged = weigh(parameters, *_bridged(adapted, around, near), settings.q0_share, draws, rng)
        found["bridged"] = bridged.cover
    return found


def _bridged(adapted: Cover, around: Cover, near: Sequence[Cover]) -> tuple[list[Cover], Array]:
    """The parts of the cover `bridged`, with the shares that `weigh` begins with."""
    bridge = [around.widened(width) for width in BRIDGE_WIDTHS]
    groups = (
        (1 - HALO_SHARE - BRIDGE_SHARE - NEAR_SHARE, adapted.components(), adapted.weights),
        (HALO_SHARE, adapted.widened(HALO_WIDTH).components(), adapted.weights),
        (BRIDGE_SHARE, bridge, np.full(len(bridge), 1 / len(bridge))),
        (NEAR_SHARE, near, np.full(len(near), 1 / len(near))),
    )
    parts = [part for _, group, _ in groups for part in group]
    return parts, np.concatenate([share * weights for share, _, weights in groups])


def effective_shares(parameters: KefParameters, mixtures: list[Mixture], n: int, rng: np.random.Generator) -> Array:
    """Z^2 / E_g r^2 of each g: effective samples per sample, from n samples of each.

    All samples serve all candidates: E_g r^2 = integral of p~^2 / g, by importance sampling from the even mixture of
    all of them. A cover that misses part of the mass cannot hide it, because the others' samples lie there.
    """
    x = rounded(np.concatenate([mixture.sample(n, rng) for mixture in mixtures]))
    log_target = log_p(pack(parameters), parameters, x)
    log_g = np.stack([mixture.log_density(x) for mixture in mixtures])
    log_even = logsumexp(log_g, axis=0) - math.log(len(mixtures))
    log_z = logsumexp(log_target - log_even) - math.log(len(x))
    log_squares = logsumexp(2 * log_target - log_g - log_even, axis=1) - math.log(len(x))
    shares: Array = np.exp(2 * log_z - log_squares)
    return shares
