"""The innermost steps of the estimator as numba functions made of vector code.

A block of BLOCK samples is carried through the whole model at once. Its workspace `rows`, float32 [n_rows, BLOCK], has
one row per coordinate or feature, samples adjacent, and stays in the L1 cache. Products are computed in register tiles
of PANEL outputs x STRIP samples, and what follows a product (softplus; or the exponential and the sum over inducing
points) happens before anything is stored. Left to a compiler's vectoriser the tiles do not stay in registers, at three
times the cost.

Weights are packed in the order in which they are read: for each tile its constants, then PANEL numbers per input row.
"""

from typing import Any

from numba import types
from numba.core import cgutils

from dkef.core.compiled import intrinsic
from dkef.normaliser.simd import vector as vec
from dkef.normaliser.simd.vector import BLOCK, LANES, PANEL, VECTORS, Code

STRIP = LANES * VECTORS


def _strip_of(builder: Any, rows: Any, row: Any, strip: Any) -> Any:
    """Address of one strip of one row of the workspace."""
    return vec.address(builder, rows, builder.add(builder.mul(row, vec.index(BLOCK)), strip))


def start(builder: Any, constants: Any, common: list[Any] | None) -> list[list[Any]]:
    """Sums [PANEL][VECTORS] that begin at the tile's constants (plus a vector common to all outputs).

    They are stack slots in name only: LLVM keeps them in registers.
    """
    sums = []
    for p in range(PANEL):
        constant = vec.load_splat(builder, constants, p)
        slots = [cgutils.alloca_once(builder, vec.VECTOR) for _ in range(VECTORS)]
        for v, slot in enumerate(slots):
            builder.store(constant if common is None else builder.fadd(constant, common[v]), slot)
        sums.append(slots)
    return sums


def accumulate(builder: Any, sums: list[list[Any]], rows: Any, count: Any, weights: Any) -> None:
    """sums[p][v] += sum_k weights[k, p] rows[k, v] over `count` rows."""
    with cgutils.for_range(builder, count) as loop:
        row = vec.address(builder, rows, builder.mul(loop.index, vec.index(BLOCK)))
        weight = vec.address(builder, weights, builder.mul(loop.index, vec.index(PANEL)))
        values = [vec.load(builder, row, v) for v in range(VECTORS)]
        for p in range(PANEL):
            factor = vec.load_splat(builder, weight, p)
            for value, slot in zip(values, sums[p], strict=True):
                builder.store(vec.multiply_add(builder, factor, value, builder.load(slot)), slot)


@intrinsic
def layer_tile(
    typingctx: Any, rows: Any, strip: Any, weights: Any, at: Any, h: Any, h_count: Any, x: Any, x_count: Any, out: Any,
    softplus: Any,
) -> Code:  # fmt: skip
    """rows[out : out + PANEL] = act(bias + W' rows[h : h + h_count] + S' rows[x : x + x_count]), for one strip.

    weights[at:] holds bias [PANEL], W [h_count, PANEL], S [x_count, PANEL].
    """

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        _, strip, _, at, h, h_count, x, x_count, out, softplus = arguments
        rows = vec.array_data(context, builder, signature, arguments, 0)
        bias = vec.address(builder, vec.array_data(context, builder, signature, arguments, 2), at)
        W = vec.address(builder, bias, vec.index(PANEL))
        S = vec.address(builder, W, builder.mul(h_count, vec.index(PANEL)))
        sums = start(builder, bias, None)
        accumulate(builder, sums, _strip_of(builder, rows, h, strip), h_count, W)
        accumulate(builder, sums, _strip_of(builder, rows, x, strip), x_count, S)
        with builder.if_then(softplus):
            for slot in (slot for slots in sums for slot in slots):
                builder.store(vec.softplus2(builder, builder.load(slot)), slot)
        for p in range(PANEL):
            target = _strip_of(builder, rows, builder.add(out, vec.index(p)), strip)
            for v in range(VECTORS):
                builder.store(builder.load(sums[p][v]), vec.vector_address(builder, target, v), align=4)
        return context.get_dummy_value()

    vec.require_contiguous(rows, weights)
    i = types.int64
    return types.void(rows, i, weights, i, i, i, i, i, i, types.boolean), generate


def _gaussian(context: Any, builder: Any, signature: Any, arguments: Any, out: Any = None) -> Any:
    """What both Gaussian tiles do; their first arguments are alike, and f is the last."""
    _, strip, _, at, phi, count, norm, *_ = arguments
    rows = vec.array_data(context, builder, signature, arguments, 0)
    c = vec.address(builder, vec.array_data(context, builder, signature, arguments, 2), at)
    alpha = vec.address(builder, c, vec.index(PANEL))
    z = vec.address(builder, alpha, vec.index(PANEL))
    norms = _strip_of(builder, rows, norm, strip)
    sums = start(builder, c, [vec.load(builder, norms, v) for v in range(VECTORS)])
    accumulate(builder, sums, _strip_of(builder, rows, phi, strip), count, z)
    f = vec.address(builder, vec.array_data(context, builder, signature, arguments, len(arguments) - 1), strip)
    for v in range(VECTORS):
        total = vec.splat(0.0)
        for p in range(PANEL):
            k = vec.exp2(builder, builder.load(sums[p][v]))
            factor = vec.load_splat(builder, alpha, p)
            if out is None:
                total = vec.multiply_add(builder, factor, k, total)
                continue
            term = builder.fmul(factor, k)
            target = _strip_of(builder, rows, builder.add(out, vec.index(p)), strip)
            builder.store(term, vec.vector_address(builder, target, v), align=4)
            total = builder.fadd(total, term)
        # From tile to tile in float64: alpha changes sign, and what is left of large terms must be right.
        so_far = vec.load(builder, f, v, vec.DOUBLES)
        target = vec.vector_address(builder, f, v, vec.DOUBLES)
        builder.store(builder.fadd(so_far, builder.fpext(total, vec.DOUBLES)), target, align=4)
    return context.get_dummy_value()


@intrinsic
def gaussian_tile(
    typingctx: Any, rows: Any, strip: Any, weights: Any, at: Any, phi: Any, count: Any, norm: Any, f: Any
) -> Code:
    """f += sum_p alpha_p 2^(c_p + rows[norm] + z_p.rows[phi : phi + count]) over PANEL inducing points, for one strip.

    weights[at:] holds c [PANEL], alpha [PANEL], z [count, PANEL]; f: float64 [BLOCK].
    """
    vec.require_contiguous(rows, weights, f)
    i = types.int64
    return types.void(rows, i, weights, i, i, i, i, f), _gaussian


@intrinsic
def kept_gaussian_tile(
    typingctx: Any, rows: Any, strip: Any, weights: Any, at: Any, phi: Any, count: Any, norm: Any, out: Any, f: Any
) -> Code:
    """The same, and its PANEL terms in rows[out : out + PANEL], of which the gradient is made."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return _gaussian(context, builder, signature, arguments, out=arguments[7])

    vec.require_contiguous(rows, weights, f)
    i = types.int64
    return types.void(rows, i, weights, i, i, i, i, i, f), generate


@intrinsic
def times_slope_tile(typingctx: Any, rows: Any, strip: Any, v: Any, s: Any) -> Code:
    """rows[v] *= 1 - 2^-rows[s], the slope of softplus where its value in units of log 2 is rows[s]; for one strip."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        _, strip, v, s = arguments
        rows = vec.array_data(context, builder, signature, arguments, 0)
        source, target = _strip_of(builder, rows, s, strip), _strip_of(builder, rows, v, strip)
        for k in range(VECTORS):
            below = vec.exp2(builder, builder.fsub(vec.splat(0.0), vec.load(builder, source, k)))
            slope = builder.fsub(vec.splat(1.0), below)
            scaled = builder.fmul(vec.load(builder, target, k), slope)
            builder.store(scaled, vec.vector_address(builder, target, k), align=4)
        return context.get_dummy_value()

    vec.require_contiguous(rows)
    i = types.int64
    return types.void(rows, i, i, i), generate
