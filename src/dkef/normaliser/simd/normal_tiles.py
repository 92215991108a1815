"""Sums of normal densities as vector code: terms w 2^(v.u - |v|^2 / 2 - |u|^2 / 2) of whitened points u and centres v.

A point far from the origin lies close to some centre, so that exponents are small differences of large terms and need
float64. Most components have nothing to say of most points, though, for they are cut off at a distance. An upper bound
of the exponent in float32, computed in register tiles as in `tiles`, tells which (`near_bits`), and only what is left
is computed. Coordinates are scaled by sqrt(log2 e), so that powers of two are what is asked for.
"""

from typing import Any

from llvmlite import ir  # type: ignore[import-untyped]
from numba import types
from numba.core import cgutils
from numba.np.arrayobj import make_array

from dkef.core.compiled import intrinsic
from dkef.normaliser.simd import vector as vec
from dkef.normaliser.simd.tiles import STRIP, accumulate, start
from dkef.normaliser.simd.vector import BLOCK, DOUBLES, LANES, PANEL, VECTORS, Code

PAIRS = max(1, VECTORS // 2)  # vectors of float64 in a strip of these tiles, each of which fills two registers
DOUBLE_STRIP = LANES * PAIRS
CHAINS = 2  # sums of every other coordinate in `add_near`: one alone would wait for its last addition


def _row(builder: Any, base: Any, number: Any) -> Any:
    """Address of a row of BLOCK points."""
    return vec.address(builder, base, builder.mul(number, vec.index(BLOCK)))


def _store(builder: Any, value: Any, base: Any, v: int) -> None:
    builder.store(value, vec.vector_address(builder, base, v, DOUBLES), align=4)


def _products(builder: Any, sums: list[list[Any]], rows: Any, count: Any, weights: list[Any], step: Any) -> None:
    """sums[p][v] += sum_k weights[p][k step] rows[k, v] over `count` rows."""
    with cgutils.for_range(builder, count) as loop:
        row = _row(builder, rows, loop.index)
        values = [vec.load(builder, row, v, DOUBLES) for v in range(PAIRS)]
        place = builder.mul(loop.index, step)
        for weight, slots in zip(weights, sums, strict=True):
            factor = vec.load_splat(builder, vec.address(builder, weight, place), 0, DOUBLES)
            for value, slot in zip(values, slots, strict=True):
                builder.store(vec.multiply_add(builder, factor, value, builder.load(slot)), slot)


def _tile(builder: Any) -> list[list[Any]]:
    return [[cgutils.alloca_once(builder, DOUBLES) for _ in range(PAIRS)] for _ in range(PANEL)]


def _panel_rows(builder: Any, rows: Any, first: Any) -> list[Any]:
    return [_row(builder, rows, builder.add(first, vec.index(p))) for p in range(PANEL)]


@intrinsic
def whiten_tile(typingctx: Any, points: Any, first: Any, centred: Any, strip: Any, exact: Any, at: Any) -> Code:
    """points[i] = u_i = sum_k B_ik centred[k] - start_i for PANEL rows i from `first` on, for one strip of points.

    Takes |u|^2 / 2 of these rows from points[rows]. points: float64 [., BLOCK]; centred: float64 [rows, BLOCK];
    exact[at:] holds start [rows] and the lower triangular B [rows, rows].
    """

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        _, first, _, strip, _, at = arguments
        points, centred, exact = (vec.array_data(context, builder, signature, arguments, k) for k in (0, 2, 4))
        points, centred = vec.address(builder, points, strip), vec.address(builder, centred, strip)
        rows = builder.extract_value(make_array(signature.args[2])(context, builder, arguments[2]).shape, 0)
        starts = vec.address(builder, exact, at)
        sums = _tile(builder)
        for p, slots in enumerate(sums):
            place = vec.address(builder, starts, builder.add(first, vec.index(p)))
            begin = builder.fsub(vec.splat(0.0, DOUBLES), vec.load_splat(builder, place, 0, DOUBLES))
            for slot in slots:
                builder.store(begin, slot)
        matrix = vec.address(builder, starts, rows)
        lines = [builder.mul(builder.add(first, vec.index(p)), rows) for p in range(PANEL)]
        weights = [vec.address(builder, matrix, line) for line in lines]
        _products(builder, sums, centred, builder.add(first, vec.index(PANEL)), weights, vec.index(1))
        norms = _row(builder, points, rows)
        targets = _panel_rows(builder, points, first)
        for v in range(PAIRS):
            square = vec.load(builder, norms, v, DOUBLES)
            for target, slots in zip(targets, sums, strict=True):
                value = builder.load(slots[v])
                _store(builder, value, target, v)
                half = builder.fmul(value, vec.splat(-0.5, DOUBLES))
                square = vec.multiply_add(builder, half, value, square)
            _store(builder, square, norms, v)
        return context.get_dummy_value()

    vec.require_contiguous(points, centred, exact)
    i = types.int64
    return types.void(points, i, centred, i, exact, i), generate


@intrinsic
def slope_tile(typingctx: Any, slope: Any, first: Any, pull: Any, strip: Any, exact: Any, at: Any) -> Code:
    """slope[i] += sum_k B_ki pull[2 + k] for PANEL rows i from `first` on, for one strip of points.

    slope: float64 [rows, BLOCK]; pull: float64 [2 + rows, BLOCK]; exact[at:] holds the lower triangular B [rows, rows].
    """

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        _, first, _, strip, _, at = arguments
        slope, pull, exact = (vec.array_data(context, builder, signature, arguments, k) for k in (0, 2, 4))
        slope, pull = vec.address(builder, slope, strip), vec.address(builder, pull, strip)
        rows = builder.extract_value(make_array(signature.args[0])(context, builder, arguments[0]).shape, 0)
        targets, sums = _panel_rows(builder, slope, first), _tile(builder)
        for target, slots in zip(targets, sums, strict=True):
            for v, slot in enumerate(slots):
                builder.store(vec.load(builder, target, v, DOUBLES), slot)
        diagonal = vec.address(builder, exact, builder.add(at, builder.mul(first, builder.add(rows, vec.index(1)))))
        weights = [vec.address(builder, diagonal, vec.index(p)) for p in range(PANEL)]
        _products(
            builder,
            sums,
            _row(builder, pull, builder.add(first, vec.index(2))),
            builder.sub(rows, first),
            weights,
            rows,
        )
        for target, slots in zip(targets, sums, strict=True):
            for v, slot in enumerate(slots):
                _store(builder, builder.load(slot), target, v)
        return context.get_dummy_value()

    vec.require_contiguous(slope, pull, exact)
    i = types.int64
    return types.void(slope, i, pull, i, exact, i), generate


@intrinsic
def near_bits(typingctx: Any, rough: Any, strip: Any, panels: Any, at: Any, count: Any, least: Any) -> Code:
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
    """v.u - |v|^2 / 2 - |u|^2 / 2 at LANES points, for the site whose numbers begin at `site`."""
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


def _add_terms(
    builder: Any, exponents: Any, rates: Any, widths: Any, weights: Any, least: Any, sums: list[Any]
) -> None:
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


def _add_to_row(builder: Any, rows: Any, number: Any, value: Any) -> None:
    row = _row(builder, rows, number)
    _store(builder, builder.fadd(vec.load(builder, row, 0, DOUBLES), value, flags=vec.FUSED), row, 0)


@intrinsic
def add_near(
    typingctx: Any, results: Any, at_point: Any, points: Any, norm: Any, count: Any, exact: Any, rates: Any,
    widths: Any, at: Any, least: Any,
) -> Code:  # fmt: skip
    """Add sum_t w_t 2^(r_t x) over the r_t x of at least `least`, for one site and LANES points from `at_point` on.

    x = v.u - |v|^2 / 2 - |u|^2 / 2. points: float64 [., BLOCK], u in `count` rows and -|u|^2 / 2 in row `norm`;
    exact[at:] holds, PANEL numbers apart, -|v|^2 / 2, v [count] and w [widths]; exact[rates:] holds r [widths].
    results: float64 [BLOCK] takes the sum; if it is [2 + count, BLOCK], its first row does, and the others take s and
    s v with s = sum_t r_t w_t 2^(r_t x).
    """

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        _, at_point, _, norm, count, _, rates, widths, at, least = arguments
        results, points, exact = (vec.array_data(context, builder, signature, arguments, k) for k in (0, 2, 5))
        results, points = vec.address(builder, results, at_point), vec.address(builder, points, at_point)
        site = vec.address(builder, exact, at)
        exponents = _exponents(builder, points, norm, count, site)
        sums = [cgutils.alloca_once(builder, DOUBLES) for _ in range(signature.args[0].ndim)]
        for slot in sums:
            builder.store(vec.splat(0.0, DOUBLES), slot)
        weights = vec.address(builder, site, builder.mul(builder.add(count, vec.index(1)), vec.index(PANEL)))
        _add_terms(builder, exponents, vec.address(builder, exact, rates), widths, weights, least, sums)
        for number, slot in enumerate(sums):
            _add_to_row(builder, results, vec.index(number), builder.load(slot))
        if len(sums) > 1:
            slope = builder.load(sums[1])
            with cgutils.for_range(builder, count) as loop:
                place = vec.address(builder, site, builder.mul(loop.index, vec.index(PANEL)))
                moment = builder.fmul(vec.load_splat(builder, place, PANEL, DOUBLES), slope, flags=vec.FUSED)
                _add_to_row(builder, results, builder.add(loop.index, vec.index(2)), moment)
        return context.get_dummy_value()

    vec.require_contiguous(results, points, exact)
    i = types.int64
    return types.void(results, i, points, i, i, exact, i, i, i, types.float64), generate


assert BLOCK % STRIP == 0
assert BLOCK % DOUBLE_STRIP == 0
