"""Shares of the parts of h by what importance sampling pays for them, not by the mass they hold.

Adaptation gives a component the share of Z that it covers. Where little mass is spread thinly, between the clusters
and q0 or in narrow peaks near the rows, that means few samples of very large weights, and those make the variance. The
shares w that minimise the second moment are another matter, and a convex one:

    E_g r^2  =  integral of p~^2 / g_w,     g_w = eps q0 + (1 - eps) sum_k w_k h_k,

estimated from draws of earlier g: y from their mean G with c = p~^2 / G leaves sum_n c_n / g_w(y_n) to minimise. Its
gradient in w_k is minus (1 - eps) sum_n c_n h_k / g_w^2, and w_k <- w_k sqrt(of that), made to add to 1, converges to
the minimum (the multiplicative rule of optimal designs, with the power that suits a sum of 1 / g). Every round draws
from the latest g, so that regions whose cost was underrated are found, and keeps all earlier draws.
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from scipy.special import logsumexp

from dkef.core.arrays import Array
from dkef.models.protocol import BaseDensity
from dkef.normaliser.integrand import Integrand
from dkef.normaliser.proposals.defensive_mixture import DefensiveMixture
from dkef.normaliser.proposals.normals import CutNormals
from dkef.normaliser.simd.vector import PANEL

ROUNDS, UPDATES = 4, 60
BLOCK_DRAWS = 4096  # taken at once, so that only the float32 terms of all draws fill memory
FIRST_SHARE = 0.1  # of the shares that it began with: draws that have not been seen may need any part
THIN_BELOW = 1e-3  # a part of many components that deserves less than this is left out: it costs more than it saves


class Part(NamedTuple):
    """Components that share one weight in h."""

    share: float  # where the search begins
    normals: CutNormals


def least_variance(
    integrand: Integrand, q0: BaseDensity, parts: Sequence[Part], q0_share: float, draws: int, rng: np.random.Generator
) -> DefensiveMixture:
    """g with the least second moment over the draws of all rounds, without the parts that it can do without."""
    first = np.array([part.share for part in parts])
    first = first / first.sum()
    normals = [part.normals for part in parts]
    free = _free_shares(integrand, q0, normals, first, q0_share, draws, rng)
    kept = [i for i, h in enumerate(normals) if free[i] >= THIN_BELOW or len(h.weights) <= PANEL]
    shares = _with_first(free[kept] / free[kept].sum(), first[kept] / first[kept].sum())
    return DefensiveMixture(q0, CutNormals.together([normals[i] for i in kept], shares), q0_share)


def _with_first(free: Array, first: Array) -> Array:
    mixed: Array = (1 - FIRST_SHARE) * free + FIRST_SHARE * first
    return mixed


def _free_shares(
    integrand: Integrand, q0: BaseDensity, parts: Sequence[CutNormals], first: Array, q0_share: float, draws: int,
    rng: np.random.Generator,
) -> Array:  # fmt: skip
    """The best shares beside FIRST_SHARE of the first ones [k] of the parts h_k."""
    shares, free = [first], first
    # Of all draws, in units of the g a draw came from: log p~, eps q0 and the parts (1 - eps) h_k.
    all_log_r, all_q0_terms = np.empty(ROUNDS * draws), np.empty(ROUNDS * draws)
    all_terms = np.empty((ROUNDS * draws, len(parts)), np.float32)
    for before in range(0, ROUNDS * draws, draws):
        mixture = DefensiveMixture(q0, CutNormals.together(parts, shares[-1]), q0_share)
        x = integrand.rounded(mixture.sample(draws, rng))
        for at in range(0, draws, BLOCK_DRAWS):
            here = x[at : at + BLOCK_DRAWS]
            rows = slice(before + at, before + at + len(here))
            log_q0 = mixture.log_q0_part(here)
            log_terms = np.log1p(-q0_share) + np.stack([part.log_density(here) for part in parts], axis=1)
            log_g = np.logaddexp(log_q0, logsumexp(log_terms + np.log(shares[-1]), axis=1))
            all_log_r[rows] = integrand.log_density(here) - log_g
            all_q0_terms[rows] = np.exp(log_q0 - log_g)
            all_terms[rows] = np.exp(log_terms - log_g[:, None])
        log_r, q0_terms, terms = (a[: before + draws] for a in (all_log_r, all_q0_terms, all_terms))
        pooled = np.mean([q0_terms + terms @ w.astype(np.float32) for w in shares], axis=0)  # G
        kept = (q0_terms + FIRST_SHARE * (terms @ first.astype(np.float32))) / (1 - FIRST_SHARE)
        free = least_second_moment(shares[-1], terms, kept, np.exp(2 * (log_r - log_r.max())) / pooled)
        shares.append(_with_first(free, first))
    return free


def least_second_moment(shares: Array, terms: Array, kept: Array, costs: Array) -> Array:
    """w >= 0, adding to 1, with the least sum_n costs_n / (kept_n + sum_k w_k terms_nk)."""
    w = shares.astype(terms.dtype)
    for _ in range(UPDATES):
        gradient = (costs / (kept + terms @ w) ** 2).astype(terms.dtype) @ terms
        w = w * np.sqrt(gradient / gradient.max())
        w = w / w.sum()
    normalised: Array = np.asarray(w, dtype=float) / w.sum(dtype=float)
    return normalised
