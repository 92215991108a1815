"""Sums of normal densities as vector code: terms w_k 2^(v_k.u - |v_k|^2 / 2 - |u|^2 / 2).

Exponents are small differences of large terms, since a point far from the origin lies close to some centre; they are
computed in float64. Most components have nothing to say of most points, though, for they are cut off at a distance: an
upper bound of the exponent in float32 tells which (`near_bits`), in register tiles as in `tiles`, and only the rest is
computed. Coordinates are scaled by sqrt(log2 e), so that powers of two are what is asked for.
"""

from typing import Any

from llvmlite import ir
from numba import types
from numba.core import cgutils

from dkef.core.compiled import intrinsic
from dkef.normaliser.simd import vector as vec
from dkef.normaliser.simd.tiles import STRIP, accumulate, start
from dkef.normaliser.simd.vector import BLOCK, DOUBLES, LANES, PANEL, VECTORS, Code

PAIRS = max(1, VECTORS // 2)  # vectors of float64 in a strip of `product_tile`, each of which fills two registers
PRODUCT_STRIP = LANES * PAIRS
CHAINS = 2  # sums of every other coordinate in `add_near`: one alone would wait for its last addition


def _row(builder: Any, base: Any, number: Any) -> Any:
    """Address of a row of BLOCK points."""
    return vec.address(builder, base, builder.mul(number, vec.index(BLOCK)))


def _store(builder: Any, value: Any, base: Any, v: int) -> None:
    builder.store(value, vec.vector_address(builder, base, v, DOUBLES), align=4)


@intrinsic
def product_tile(
    typingctx: Any, out: Any, first: Any, rows: Any, source: Any, count: Any, strip: Any, weights: Any, at: Any,
    by_row: Any, by_output: Any,
) -> Code:  # fmt: skip
    """out[first + p] += sum_k W[k, p] rows[source + k] for p < PANEL and k < count, for one strip of points.

    out, rows: float64 [., BLOCK]; W[k, p] = weights[at + k by_row + p by_output], so that it may lie either way.
    """

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        _, first, _, source, count, strip, _, at, by_row, by_output = arguments
        out, rows, weights = (vec.array_data(context, builder, signature, arguments, k) for k in (0, 2, 6))
        targets = [
            vec.address(builder, _row(builder, out, builder.add(first, vec.index(p))), strip) for p in range(PANEL)
        ]
        base = vec.address(builder, weights, at)
        columns = [vec.address(builder, base, builder.mul(by_output, vec.index(p))) for p in range(PANEL)]
        sums = [[cgutils.alloca_once(builder, DOUBLES) for _ in range(PAIRS)] for _ in range(PANEL)]
        for target, slots in zip(targets, sums, strict=True):
            for v, slot in enumerate(slots):
                builder.store(vec.load(builder, target, v, DOUBLES), slot)
        inputs = vec.address(builder, _row(builder, rows, source), strip)
        with cgutils.for_range(builder, count) as loop:
            row = _row(builder, inputs, loop.index)
            values = [vec.load(builder, row, v, DOUBLES) for v in range(PAIRS)]
            offset = builder.mul(loop.index, by_row)
            for column, slots in zip(columns, sums, strict=True):
                factor = vec.load_splat(builder, vec.address(builder, column, offset), 0, DOUBLES)
                for value, slot in zip(values, slots, strict=True):
                    builder.store(vec.multiply_add(builder, factor, value, builder.load(slot)), slot)
        for target, slots in zip(targets, sums, strict=True):
            for v, slot in enumerate(slots):
                _store(builder, builder.load(slot), target, v)
        return context.get_dummy_value()

    vec.require_contiguous(out, rows, weights)
    i = types.int64
    return types.void(out, i, rows, i, i, i, weights, i, i, i), generate


@intrinsic
def near_bits(
    typingctx: Any, rough: Any, strip: Any, panels: Any, at: Any, count: Any, least: Any
) -> Code:
    """Which components of a panel may have an exponent of at least `least` at some of LANES points of a strip.

    Bit p VECTORS + v speaks of component p and the v-th vector of points. rough: float32 [count + 1, BLOCK], u and an
    upper bound of -|u|^2 / 2; panels[at:] holds upper bounds of -|v|^2 / 2 [PANEL] and v [count, PANEL]. What is not a
    number may be near: float64 decides.
    """

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        _, strip, _, at, count, least = arguments
        points, panels = (vec.array_data(context, builder, signature, arguments, k) for k in (0, 2))
        points, constants = vec.address(builder, points, strip), vec.address(builder, panels, at)
        norms = _row(builder, points, count)
        sums = start(builder, constants, [vec.load(builder, norms, v) for v in range(VECTORS)])
        accumulate(builder, sums, points, count, vec.address(builder, constants, vec.index(PANEL)))
        threshold = vec.broadcast(builder, least)
        bits = vec.index(0)
        for p in range(PANEL):
            for v in range(VECTORS):
                near = builder.fcmp_unordered(">=", builder.load(sums[p][v]), threshold)
                bit = builder.zext(vec.any_lane(builder, near), vec.INDEX)
                bits = builder.or_(bits, builder.shl(bit, vec.index(p * VECTORS + v)))
        return bits

    vec.require_contiguous(rough, panels)
    i = types.int64
    return types.int64(rough, i, panels, i, i, types.float32), generate


@intrinsic
def lowest_bit(typingctx: Any, bits: Any) -> Code:
    """Number of the lowest bit that is set; there must be one."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return builder.cttz(arguments[0], ir.Constant(ir.IntType(1), 1))

    return types.int64(types.int64), generate


def _exponents(builder: Any, points: Any, norm: Any, count: Any, site: Any) -> Any:
    """v.u - |v|^2 / 2 - |u|^2 / 2 at LANES points, for the component whose panel column begins at `site`."""
    chains = [cgutils.alloca_once(builder, DOUBLES) for _ in range(CHAINS)]
    norms = vec.load(builder, _row(builder, points, norm), 0, DOUBLES)
    builder.store(builder.fadd(norms, vec.load_splat(builder, site, 0, DOUBLES)), chains[0])
    for slot in chains[1:]:
        builder.store(vec.splat(0.0, DOUBLES), slot)
    with cgutils.for_range(builder, builder.udiv(count, vec.index(CHAINS))) as loop:
        first = builder.mul(loop.index, vec.index(CHAINS))
        centre = vec.address(builder, site, builder.mul(first, vec.index(PANEL)))
        rows = _row(builder, points, first)
        for i, slot in enumerate(chains):
            factor = vec.load_splat(builder, centre, (1 + i) * PANEL, DOUBLES)
            value = vec.load(builder, vec.address(builder, rows, vec.index(i * BLOCK)), 0, DOUBLES)
            builder.store(vec.multiply_add(builder, factor, value, builder.load(slot)), slot)
    total = builder.load(chains[0])
    for slot in chains[1:]:
        total = builder.fadd(total, builder.load(slot))
    return total


def _add_terms(builder: Any, exponents: Any, rates: Any, widths: Any, weights: Any, least: Any, sums: list[Any]) -> None:
    """sums[0] += w_t 2^(r_t x), sums[1] (if there is one) += r_t w_t 2^(r_t x) over all widths t within their cut."""
    threshold = vec.broadcast(builder, least, DOUBLES)
    with cgutils.for_range(builder, widths) as loop:
        rate = vec.load_splat(builder, vec.address(builder, rates, loop.index), 0, DOUBLES)
        x = builder.fmul(rate, exponents)
        inside = builder.fcmp_ordered(">=", x, threshold)
        with builder.if_then(vec.any_lane(builder, inside)):
            place = builder.mul(loop.index, vec.index(PANEL))
            weight = vec.load_splat(builder, vec.address(builder, weights, place), 0, DOUBLES)
            term = builder.fmul(weight, vec.exp2_double(builder, x))
            term = builder.select(inside, term, vec.splat(0.0, DOUBLES))
            for slot, value in zip(sums, (term, builder.fmul(rate, term)), strict=False):
                builder.store(builder.fadd(builder.load(slot), value), slot)


def _near(context: Any, builder: Any, signature: Any, arguments: Any, wanted: int) -> tuple[list[Any], Any]:
    """The `wanted` sums of `_add_terms` for one site at LANES points; and where the column of its panel begins."""
    _, points_first, _, norm, count, _, rates_at, widths, at, least = arguments
    points, exact = (vec.array_data(context, builder, signature, arguments, k) for k in (2, 5))
    site = vec.address(builder, exact, at)
    exponents = _exponents(builder, vec.address(builder, points, points_first), norm, count, site)
    sums = [cgutils.alloca_once(builder, DOUBLES) for _ in range(wanted)]
    for slot in sums:
        builder.store(vec.splat(0.0, DOUBLES), slot)
    after = builder.mul(builder.add(count, vec.index(1)), vec.index(PANEL))
    weights = vec.address(builder, site, after)
    _add_terms(builder, exponents, vec.address(builder, exact, rates_at), widths, weights, least, sums)
    return [builder.load(slot) for slot in sums], site


def _add_to_row(builder: Any, rows: Any, number: Any, value: Any) -> None:
    row = _row(builder, rows, number)
    _store(builder, builder.fadd(vec.load(builder, row, 0, DOUBLES), value), row, 0)


@intrinsic
def add_near(
    typingctx: Any, total: Any, at_point: Any, points: Any, norm: Any, count: Any, exact: Any, rates: Any, widths: Any,
    at: Any, least: Any,
) -> Code:  # fmt: skip
    """total += sum_t w_t 2^(r_t x) over the r_t x of at least `least`, for one site and LANES points from `at_point` on.

    total: float64 [BLOCK]; points: float64 [., BLOCK], u and in row `norm` -|u|^2 / 2; exact[at:] holds, PANEL numbers
    apart, -|v|^2 / 2, v [count], w [widths]; exact[rates:] holds r [widths].
    """

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        (term,), _ = _near(context, builder, signature, arguments, 1)
        total = vec.address(builder, vec.array_data(context, builder, signature, arguments, 0), arguments[1])
        _add_to_row(builder, total, vec.index(0), term)
        return context.get_dummy_value()

    return _near_signature(total, points, exact), generate


@intrinsic
def pull_near(
    typingctx: Any, pull: Any, at_point: Any, points: Any, norm: Any, count: Any, exact: Any, rates: Any, widths: Any,
    at: Any, least: Any,
) -> Code:  # fmt: skip
    """As `add_near`, with derivatives: with s = sum_t r_t w_t 2^(r_t x), pull[:count] += s v and pull[norm] += s.

    pull: float64 [norm + 2, BLOCK]; the last row takes the sum of `add_near`.
    """

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        (term, slope), site = _near(context, builder, signature, arguments, 2)
        pull = vec.address(builder, vec.array_data(context, builder, signature, arguments, 0), arguments[1])
        _, _, _, norm, count, *_ = arguments
        with cgutils.for_range(builder, count) as loop:
            place = builder.mul(builder.add(loop.index, vec.index(1)), vec.index(PANEL))
            factor = vec.load_splat(builder, vec.address(builder, site, place), 0, DOUBLES)
            _add_to_row(builder, pull, loop.index, builder.fmul(factor, slope, flags=vec.FUSED))
        _add_to_row(builder, pull, norm, slope)
        _add_to_row(builder, pull, builder.add(norm, vec.index(1)), term)
        return context.get_dummy_value()

    return _near_signature(pull, points, exact), generate


def _near_signature(sums: Any, points: Any, exact: Any) -> Any:
    vec.require_contiguous(sums, points, exact)
    i = types.int64
    return types.void(sums, i, points, i, i, exact, i, i, i, types.float64)


assert BLOCK % STRIP == 0 and BLOCK % PRODUCT_STRIP == 0
