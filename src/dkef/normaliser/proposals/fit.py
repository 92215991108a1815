"""The defensive mixture proposal of a model: normals of several kinds, in the shares that cost the least variance.

adapted    clusters of the rows that have moved to where the model has its mass (`adapt`), and each once more, wider
modes      Laplace's approximation of the highest peaks (`modes`), and each once more, wider
wide       normals around all rows, ever wider, up to q0
near       narrow normals around every row and inducing point: a deep kernel may leave a peak at every few rows
"""

from collections.abc import Callable, Iterator, Sequence

import numpy as np
from scipy.special import softmax

from dkef.config.schema.normaliser import DefensiveMixtureSettings
from dkef.core.arrays import Array
from dkef.core.streams import rng_for
from dkef.normaliser.integrand import Integrand
from dkef.normaliser.proposals.adapt import adapt
from dkef.normaliser.proposals.clusters import gaussian_clusters, log_normals
from dkef.normaliser.proposals.defensive_mixture import DefensiveMixture
from dkef.normaliser.proposals.modes import Modes, find_modes
from dkef.normaliser.proposals.normals import CutNormals
from dkef.normaliser.proposals.shares import Part, least_variance
from dkef.normaliser.proposals.student import StudentT

FIRST_WIDTH = 1.4  # of the clusters that adaptation begins with
ADAPTED_WIDTHS = (1.2, 1.5)  # at 1, one of 5 million weights once made 15 % of the sum of squares
MODE_WIDTHS = (1.1, 1.6)
WIDE_WIDTHS = (1.0, 1.4, 2.0, 2.8, 4.0)
NEAR_WIDTHS = (("rows", 0.3), ("rows", 0.7), ("local", 0.7))
SHARES = {"adapted": 0.4, "modes": 0.2, "wide": 0.2, "near": 0.2}  # that the weighing begins with
SINGLE_MODES = 20  # with a share of their own; the others have one in common, by their masses

Report = Callable[[str], None]


def fit_defensive_mixture(
    integrand: Integrand, rows: Array, settings: DefensiveMixtureSettings, name: tuple[str | int, ...],
    report: Report = lambda line: None,
) -> DefensiveMixture:  # fmt: skip
    """g for p~, from its training rows [n, d] and its inducing points."""
    q0 = integrand.q0 if integrand.q0 is not None else StudentT.around(rows)
    rng = rng_for("normalise defensive mixture", *name)
    points = np.concatenate([rng.permutation(rows)[: settings.centres], integrand.points])
    integrand.log_density(integrand.rounded(points))  # says so where f is not finite
    modes = find_modes(integrand.gradient, points[-settings.mode_starts :], settings.modes)
    weights, means, covariances = gaussian_clusters(rows, settings.clusters, rng)
    local = np.linalg.cholesky(covariances)
    clusters = CutNormals(weights, means, np.arange(len(means)), local).widened(FIRST_WIDTH)
    first = CutNormals.together([clusters, at_modes(modes.first(SINGLE_MODES))], np.array([0.7, 0.3]))
    adapted = adapt(integrand, DefensiveMixture(q0, first, settings.q0_share), settings, rng, report)
    shared = np.linalg.cholesky(np.atleast_2d(np.cov(rows.T)))[None]
    nearest = np.argmax(log_normals(points, means, local), axis=1)
    even = np.full(len(points), 1 / len(points))
    near = {
        "rows": CutNormals(even, points, np.zeros(len(points), dtype=int), shared),
        "local": CutNormals(even, points, nearest, local),
    }
    around = CutNormals(np.ones(1), rows.mean(axis=0)[None], np.zeros(1, dtype=int), shared)
    parts = [
        *_adapted_parts(adapted.normals),
        *_mode_parts(modes),
        *_alike("wide", [around.widened(width) for width in WIDE_WIDTHS]),
        *_alike("near", [near[kind].widened(width) for kind, width in NEAR_WIDTHS]),
    ]
    draws = settings.adapt_draws * integrand.dimension
    found = least_variance(integrand, q0, parts, settings.q0_share, draws, rng)
    report(f"defensive mixture of {len(found.normals.weights)} normals; {len(modes.x)} modes")
    return found


def at_modes(modes: Modes) -> CutNormals:
    """A normal at every mode, by its mass; none has less than a thousandth of the share of the largest."""
    weights = np.maximum(softmax(modes.log_mass), 1e-3)
    return CutNormals(weights / weights.sum(), modes.x, np.arange(len(modes.x)), modes.factors)


def _adapted_parts(adapted: CutNormals) -> Iterator[Part]:
    for width, share in zip(ADAPTED_WIDTHS, (0.75, 0.25), strict=True):
        shares = share * SHARES["adapted"] * adapted.weights
        yield from map(Part, shares, adapted.widened(width).components())


def _mode_parts(modes: Modes) -> Iterator[Part]:
    """Every large mode alone, the small ones together; and all once more, wider."""
    narrow, wide = (at_modes(modes).widened(width) for width in MODE_WIDTHS)
    single = list(map(Part, 0.6 * SHARES["modes"] * narrow.weights, narrow.components()))
    yield from single[:SINGLE_MODES]
    if rest := single[SINGLE_MODES:]:
        shares = np.array([part.share for part in rest])
        yield Part(shares.sum(), CutNormals.together([p.normals for p in rest], shares / shares.sum()))
    yield Part(0.4 * SHARES["modes"], wide)


def _alike(kind: str, parts: Sequence[CutNormals]) -> Iterator[Part]:
    for part in parts:
        yield Part(SHARES[kind] / len(parts), part)
