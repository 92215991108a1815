"""Weights of a cover's components by what importance sampling pays for them, not by the mass they hold.

Adaptation gives a component the share of Z that it covers. Where little mass is spread thinly, between the clusters
and q0, that means few samples of very large weights, and those make the variance. The weights w that minimise the
second moment are another matter, and a convex one:

    E_g r^2  =  integral of p~^2 / g_w,     g_w = eps q0 + (1 - eps) sum_k w_k N_k,

estimated from draws of earlier g: y from their mean G with c = p~^2 / G leaves sum_n c_n / g_w(y_n) to minimise. Its
gradient in w_k is minus (1 - eps) sum_n c_n N_k / g_w^2, and w_k <- w_k sqrt(of that), made to add to 1, converges to
the minimum (the multiplicative rule of optimal designs, with the power that suits a sum of 1 / g). Every round draws
from the latest g, so that regions whose cost was underrated are found, and keeps all earlier draws.
"""

from dataclasses import replace

import numpy as np
from scipy.special import logsumexp

from dkef.models.kef_parameters import KefParameters
from dkef.models.protocol import Array
from dkef.normaliser.clusters import log_normals
from dkef.normaliser.cover import CUT
from dkef.normaliser.mixture import Mixture, log_ratio
from dkef.normaliser.program import pack

ROUNDS, UPDATES = 4, 60
FIRST_SHARE = 0.1  # of the weights that it began with: draws that have not been seen may need any component


def weigh(parameters: KefParameters, first: Mixture, draws: int, rng: np.random.Generator) -> Mixture:
    """g with the least second moment over the draws of all rounds; every component has a shape of its own."""
    program = pack(parameters)
    covers = [first.cover.weights]
    q0_terms, terms, log_p = np.empty(0), np.empty((0, len(covers[0])), np.float32), np.empty(0)
    for _ in range(ROUNDS):
        mixture = replace(first, cover=replace(first.cover, weights=covers[-1]))
        x = mixture.sample(draws, rng)
        log_terms = _log_components(mixture, x)
        log_q0 = mixture.log_q0_part(x)
        log_g = np.logaddexp(log_q0, logsumexp(log_terms + np.log(covers[-1]), axis=1))
        # Everything in units of the g a draw came from: log p~, eps q0 and the components N_k.
        log_p = np.append(log_p, log_ratio(program, parameters, mixture, x))
        q0_terms = np.append(q0_terms, np.exp(log_q0 - log_g))
        terms = np.concatenate([terms, np.exp(log_terms - log_g[:, None], dtype=np.float32)])
        pooled = np.mean([q0_terms + terms @ w.astype(np.float32) for w in covers], axis=0)  # G
        kept = (q0_terms + FIRST_SHARE * (terms @ covers[0].astype(np.float32))) / (1 - FIRST_SHARE)
        free = least_second_moment(covers[-1], terms, kept, np.exp(2 * (log_p - log_p.max())) / pooled)
        covers.append((1 - FIRST_SHARE) * free + FIRST_SHARE * covers[0])
    return replace(first, cover=replace(first.cover, weights=covers[-1]))


def least_second_moment(weights: Array, terms: Array, kept: Array, costs: Array) -> Array:
    """w >= 0, adding to 1, with the least sum_n costs_n / (kept_n + sum_k w_k terms_nk)."""
    w = weights.astype(terms.dtype)
    for _ in range(UPDATES):
        gradient = (costs / (kept + terms @ w) ** 2).astype(terms.dtype) @ terms
        w = w * np.sqrt(gradient / gradient.max())
        w = w / w.sum()
    normalised: Array = np.asarray(w, dtype=float) / w.sum(dtype=float)
    return normalised


def _log_components(mixture: Mixture, x: Array) -> Array:
    """log of (1 - eps) N_k at x [n, d], -inf beyond the cut; [n, k]."""
    cover = mixture.cover
    log_normal = log_normals(x, cover.centres, cover.factors[cover.shape]) - np.log1p(-CUT)
    inside = log_normal >= cover.log_peaks[cover.shape] - 0.5 * cover.squared_radius
    log_terms: Array = np.where(inside, np.log1p(-mixture.q0_share) + log_normal, -np.inf)
    return log_terms
