"""Exact draws from q0, a product of generalised normals, by counter and by inverse transform.

Coordinate d of q0 has density proportional to exp(-|x_d - mu_d|^beta_d / (2 sigma_d^2)), so that
x_d = mu_d +- (2 sigma_d^2)^(1/beta_d) Q(p) with p uniform on (0, 1) and Q the quantile of the upper tail of
|u| for the density proportional to exp(-|u|^beta):   Q(p) = G(p)^(1/beta),  G the inverse of the regularised upper
incomplete gamma function of shape 1/beta.

Random words come from Philox4x32-10 (Salmon et al. 2011): word j of counter c is a fixed function of (key, c), so
any sample of any chunk can be drawn anywhere, in any order, and streams with different counters never meet.
"""

from typing import Any, NamedTuple

import numpy as np
from numba import types
from scipy.special import gammainccinv, gammaincinv

from dkef.core.arrays import Array
from dkef.core.compiled import intrinsic, njit
from dkef.models.kef.parameters import BaseMeasure
from dkef.normaliser.simd import vector as vec
from dkef.normaliser.simd.vector import BLOCK, LANES

# Q is tabulated as a cubic in each of SPLIT cells per factor of two in p, from p = 1 down to 2^-BINADES. The cell is
# then just the leading bits of the float32 p, and no logarithm is needed; the cells that are hit often fit in L1.
BINADES = 64
SPLIT_BITS = 4
SPLIT = 1 << SPLIT_BITS
CELLS = BINADES * SPLIT + 1  # one more for p = 1 itself
_CELL_SHIFT = 23 - SPLIT_BITS  # bits of the significand below those that name the cell
_FIRST_CELL = (127 - BINADES) << SPLIT_BITS

# A word below this (probability 2^-12) is extended by 32 further bits, so that tails keep float32 resolution.
_REFINE_BELOW = 1 << 20
_REFINED = np.uint32(1 << 31)  # counters of these further bits: set in the word that numbers coordinates


class Proposal(NamedTuple):
    """q0 in the form the sampler reads; x_d = mu_d +- scale_d Q(p), Q in table number table[d]."""

    mu: Array  # float32 [d]
    scale: Array  # float32 [d]
    table: Array  # int64 [d]
    cubics: Array  # float32 [tables, CELLS, 4], coefficients in the position within the cell, from -1/2 to 1/2


class Stream(NamedTuple):
    """Names 2^32 samples: a key of the model and the two counter words that number stage and chunk."""

    key0: np.uint32
    key1: np.uint32
    stage: np.uint32
    chunk: np.uint32


def tail_quantile(beta: float, p: Array) -> Array:
    """Q(p): what |u| exceeds with probability p, for the density proportional to exp(-|u|^beta)."""
    shape = 1.0 / beta
    # Each inverse is accurate where its own argument is small.
    gamma = np.where(p < 0.5, gammainccinv(shape, np.minimum(p, 0.5)), gammaincinv(shape, 1 - np.maximum(p, 0.5)))
    quantile: Array = gamma**shape
    return quantile


def quantile_cubics(beta: float) -> Array:
    """Cubic of Q in every cell, interpolated at Chebyshev nodes; float32 [CELLS, 4]."""
    nodes = 0.5 * np.cos(np.pi * (np.arange(4) + 0.5) / 4)  # in units of a cell, about its centre
    cell = np.arange(BINADES * SPLIT)
    width = np.exp2(cell // SPLIT - BINADES) / SPLIT
    left = np.exp2(cell // SPLIT - BINADES) * (1 + (cell % SPLIT) / SPLIT)
    p = left[:, None] + width[:, None] * (nodes + 0.5)
    cubics = np.linalg.solve(np.vander(nodes, 4, increasing=True), tail_quantile(beta, p).T).T
    return np.vstack([cubics, np.zeros(4)]).astype(np.float32, order="C")  # Q(1) = 0


def proposal(q0: BaseMeasure) -> Proposal:
    """Tables for q0; coordinates with one exponent share one."""
    betas, table = np.unique(q0.beta.astype(np.float64), return_inverse=True)
    scale = (2 * q0.sigma.astype(np.float64) ** 2) ** (1 / q0.beta.astype(np.float64))
    cubics = np.stack([quantile_cubics(float(beta)) for beta in betas])
    return Proposal(q0.mu.astype(np.float32), scale.astype(np.float32), table.astype(np.int64), cubics)


@njit
def philox(c0, c1, c2, c3, k0, k1):  # type: ignore[no-untyped-def]
    """Four random 32-bit words of counter (c0, c1, c2, c3) under key (k0, k1)."""
    for _ in range(10):
        p0 = np.uint64(0xD2511F53) * np.uint64(c0)
        p1 = np.uint64(0xCD9E8D57) * np.uint64(c2)
        c0 = np.uint32(p1 >> np.uint64(32)) ^ np.uint32(c1) ^ np.uint32(k0)
        c2 = np.uint32(p0 >> np.uint64(32)) ^ np.uint32(c3) ^ np.uint32(k1)
        c1 = np.uint32(p1)
        c3 = np.uint32(p0)
        k0 = np.uint32(k0 + np.uint32(0x9E3779B9))
        k1 = np.uint32(k1 + np.uint32(0xBB67AE85))
    return c0, c1, c2, c3


@njit
def draw_words(words, stream, first, group):  # type: ignore[no-untyped-def]
    """Fill words uint32 [4, BLOCK]: coordinates 4 group .. 4 group + 3 of samples first .. first + BLOCK - 1."""
    for i in range(BLOCK):
        w0, w1, w2, w3 = philox(
            np.uint32(first + i), np.uint32(group), stream.chunk, stream.stage, stream.key0, stream.key1
        )
        words[0, i] = w0
        words[1, i] = w1
        words[2, i] = w2
        words[3, i] = w3


@njit
def tail_probabilities(p, words, stream, first, d):  # type: ignore[no-untyped-def]
    """p float32 [BLOCK] of coordinate d from one random word each: bit 0 is the sign, the rest is p."""
    smallest = np.uint32(0xFFFFFFFF)
    for i in range(BLOCK):
        p[i] = np.float32(words[i] | np.uint32(1)) * np.float32(2.0**-32)
        smallest = min(smallest, words[i])
    if smallest < np.uint32(_REFINE_BELOW):
        for i in range(BLOCK):
            if words[i] < np.uint32(_REFINE_BELOW):
                more, _, _, _ = philox(
                    np.uint32(first + i), np.uint32(d) | _REFINED, stream.chunk, stream.stage, stream.key0, stream.key1
                )
                p[i] = ((words[i] >> np.uint32(1)) + (more + 0.5) * 2.0**-32) * 2.0**-31


@intrinsic
def transform(typingctx: Any, x: Any, p: Any, words: Any, mu: Any, scale: Any, cubics: Any) -> vec.Code:
    """x float32 [BLOCK] = mu +- scale Q(p), the sign from bit 0 of each word; cubics [CELLS, 4]."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        x, p, words = (vec.array_data(context, builder, signature, arguments, k) for k in range(3))
        cubics = vec.array_data(context, builder, signature, arguments, 5)
        mu, scale = (vec.broadcast(builder, value) for value in arguments[3:5])
        for v in range(BLOCK // LANES):
            bits = vec.load(builder, p, v, vec.INTEGERS)
            cell = builder.sub(builder.lshr(bits, vec.integers(_CELL_SHIFT)), vec.integers(_FIRST_CELL))
            inside = builder.sitofp(builder.and_(bits, vec.integers((1 << _CELL_SHIFT) - 1)), vec.VECTOR)
            at = vec.multiply_add(builder, inside, vec.splat(2.0**-_CELL_SHIFT), vec.splat(-0.5))
            first = builder.mul(cell, vec.integers(4))
            positions = [builder.add(first, vec.integers(k)) for k in range(4)]
            q = vec.horner(builder, at, [vec.gather(builder, cubics, position) for position in positions])
            sign = builder.shl(vec.load(builder, words, v, vec.INTEGERS), vec.integers(31))
            signed = builder.bitcast(builder.xor(builder.bitcast(q, vec.INTEGERS), sign), vec.VECTOR)
            builder.store(vec.multiply_add(builder, scale, signed, mu), vec.vector_address(builder, x, v), align=4)
        return context.get_dummy_value()

    vec.require_contiguous(x, p, words, cubics)
    return types.void(x, p, words, types.float32, types.float32, cubics), generate


@njit
def draw_block(x, proposal, stream, first, words, p):  # type: ignore[no-untyped-def]
    """Fill x float32 [d, BLOCK] with samples first .. first + BLOCK - 1 of a stream.

    words: uint32 [4, BLOCK] and p: float32 [BLOCK] are scratch.
    """
    dimension = len(proposal.mu)
    for group in range((dimension + 3) // 4):
        draw_words(words, stream, first, group)
        for j in range(min(4, dimension - 4 * group)):
            d = 4 * group + j
            tail_probabilities(p, words[j], stream, first, d)
            transform(x[d], p, words[j], proposal.mu[d], proposal.scale[d], proposal.cubics[proposal.table[d]])
