"""How a kernel exponential family weighs two components that its kernel cannot see at once.

Appendix C.1 of the paper fits pi N(0, I) + (1 - pi) N(r, I) with a fixed kernel exp(-|x - z|^2 / (2 sigma^2)),
sqrt(D) << sigma << |r|, a nearly flat q0 and one inducing point a component, and predicts exp(f(0) - f(r)), which
should be pi / (1 - pi). `measure` makes that fit over a range of pi and lambda and sets it against the
printed prediction and against the corrected one.

The derivation, with c = lambda sigma^4 / D. Near its centre a component alone gives alpha = (sigma^2 - 1) / (1 + c); by
Proposition 4 a component of share pi has c / pi in place of c. Hence

    f(0) - f(r) = (sigma^2 - 1) [pi / (pi + c) - (1 - pi) / (1 - pi + c)]
                = (sigma^2 - 1) 2 c (pi - 1/2) / (pi (1 - pi) + c + c^2),

where the paper prints 1/2 for the factor 2. For c >> 1 this is 2 D (pi - 1/2) / (sigma^2 lambda), again four times
what is printed. M inducing points close together act as one with lambda / M.
"""

import logging
import math
from dataclasses import dataclass, field
from typing import Annotated

import numpy as np
import pandas as pd
from pydantic import Field

from dkef.config.typed import Count, Positive, Share, section
from dkef.core.arrays import Array
from dkef.core.streams import rng_for

log = logging.getLogger("dkef.metrics.separated")

SOME = Field(min_length=1)
PRINTED, CORRECTED = 0.5, 2.0  # the factor in front of c (sigma^2 - 1) (pi - 1/2)


@section
@dataclass(frozen=True)
class Separated:
    """The experiment: |r| >> sigma >> sqrt(D) and base_std >> |r| put it in the regime of Appendix C.1."""

    dimension: Count = 2
    sigma: Positive = 10.0
    distance: Positive = 80.0
    base_std: Positive = 10_000.0
    rows: Count = 40_000
    # a component; one sits at its centre, more are drawn
    inducing: Annotated[list[Count], SOME] = field(default_factory=lambda: [1, 20])
    shares: Annotated[list[Share], SOME] = field(default_factory=lambda: [k / 10 for k in range(1, 10)])  # pi
    lambdas: Annotated[list[Positive], SOME] = field(default_factory=lambda: [10.0 ** (e / 2) for e in range(-14, 3)])
    seeds: Count = 3


def predicted_log_ratio(pi: Array, lam: Array, sigma: float, d: int, factor: float) -> Array:
    """f(0) - f(r) by Appendix C.1, with the printed or the corrected factor."""
    c = lam * sigma**4 / d
    predicted: Array = factor * c * (sigma**2 - 1) * (pi - 0.5) / (pi * (1 - pi) + c + c**2)
    return predicted


def predicted_limit(pi: Array, lam: Array, sigma: float, d: int, factor: float) -> Array:
    """The same for lambda >> D / sigma^4."""
    limit: Array = factor * d * (pi - 0.5) / (sigma**2 * lam)
    return limit


def score_matching_statistics(x: Array, z: Array, sigma: float, base_std: float) -> tuple[Array, Array]:
    """G [m, m] and b [m] of the closed-form fit for a Gaussian kernel of width sigma and q0 = N(0, base_std^2 I)."""
    gap = (z[None] - x[:, None]) / sigma**2  # [n, m, d]
    k = np.exp(-0.5 * sigma**2 * (gap**2).sum(axis=2))
    first = gap * k[:, :, None]
    second = (gap**2 - 1 / sigma**2) * k[:, :, None]
    G: Array = np.einsum("nmd,nld->ml", first, first, optimize=True) / len(x)
    b: Array = (second.sum(axis=2) - np.einsum("nd,nmd->nm", x / base_std**2, first)).mean(axis=0)
    return G, b


def fit_alpha(G: Array, b: Array, lam: float) -> Array:
    """Solve (G + lambda I) alpha = -b."""
    alpha: Array = -np.linalg.solve(G + lam * np.eye(len(b)), b)
    return alpha


def draw(settings: Separated, pi: float, m: int, rng: np.random.Generator) -> tuple[list[Array], list[Array], Array]:
    """Rows of each component (exact counts), inducing points of each, and the two centres [2, d]."""
    centres = np.zeros((2, settings.dimension))
    centres[1, 0] = settings.distance
    first = round(pi * settings.rows)
    x = [
        centre + rng.normal(size=(n, settings.dimension))
        for centre, n in zip(centres, (first, settings.rows - first), strict=True)
    ]
    z = [centre[None] if m == 1 else rows[rng.choice(len(rows), m)] for centre, rows in zip(centres, x, strict=True)]
    return x, z, centres


def measure(settings: Separated) -> pd.DataFrame:
    """One record for every pi, lambda, number of inducing points and seed.

    Columns log_ratio: f(0) - f(r) of the joint fit; log_ratio_apart: the same from two fits apart with lambda / pi
    and lambda / (1 - pi), which Proposition 4 says is equal; then the predictions and the truth.
    """
    records = []
    for m in settings.inducing:
        for seed in range(settings.seeds):
            for pi in settings.shares:
                x, z, centres = draw(settings, pi, m, rng_for("separated", seed, m, repr(pi)))
                joint = score_matching_statistics(
                    np.concatenate(x), np.concatenate(z), settings.sigma, settings.base_std
                )
                apart = [
                    score_matching_statistics(*part, settings.sigma, settings.base_std)
                    for part in zip(x, z, strict=True)
                ]
                for lam in settings.lambdas:
                    alpha = fit_alpha(*joint, lam)
                    alphas = [fit_alpha(*own, lam / share) for own, share in zip(apart, (pi, 1 - pi), strict=True)]
                    records.append(
                        {
                            "pi": pi, "lambda": lam, "inducing": m, "seed": seed,
                            "log_ratio": _log_ratio(alpha, z, centres, settings.sigma),
                            "log_ratio_apart": _log_ratio(np.concatenate(alphas), z, centres, settings.sigma),
                        }
                    )  # fmt: skip
        log.info("separated components (Appendix C.1), inducing points of each: %d; fits: %d", m, len(records))
    return _with_predictions(pd.DataFrame(records), settings)


def _log_ratio(alpha: Array, z: list[Array], centres: Array, sigma: float) -> float:
    """f(0) - f(r)."""
    squared = ((centres[:, None] - np.concatenate(z)[None]) ** 2).sum(axis=2)
    f = np.exp(-squared / (2 * sigma**2)) @ alpha
    return float(f[0] - f[1])


def _with_predictions(table: pd.DataFrame, settings: Separated) -> pd.DataFrame:
    pi, lam = table["pi"].to_numpy(), (table["lambda"] / table["inducing"]).to_numpy()
    sigma, d = settings.sigma, settings.dimension
    return table.assign(
        printed=predicted_log_ratio(pi, lam, sigma, d, PRINTED),
        corrected=predicted_log_ratio(pi, lam, sigma, d, CORRECTED),
        printed_limit=predicted_limit(pi, lam, sigma, d, PRINTED),
        corrected_limit=predicted_limit(pi, lam, sigma, d, CORRECTED),
        truth=np.log(pi / (1 - pi)),
    )


def verdict(table: pd.DataFrame) -> dict[str, float | str]:
    """Relative error of each formula over the fits with one inducing point a component, and which the fits follow."""
    rows = table[(table["inducing"] == 1) & (table["pi"] != 0.5)]
    size = math.sqrt((rows["log_ratio"] ** 2).mean())
    error = {key: math.sqrt(((rows["log_ratio"] - rows[key]) ** 2).mean()) / size for key in ("printed", "corrected")}
    follows = min(error, key=lambda key: error[key])
    gap = float((table["log_ratio"] - table["log_ratio_apart"]).abs().max())
    sentence = (
        f"The fits follow the {follows} formula: relative error {error['corrected']:.1%} for the corrected one, "
        f"{error['printed']:.0%} for the printed one."
    )
    return {
        "relative_error_printed": error["printed"],
        "relative_error_corrected": error["corrected"],
        "largest_gap_to_separate_fits": gap,
        "follows": follows,
        "sentence": sentence,
    }
