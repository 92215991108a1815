"""Sums of normal densities as vector code: w_k 2^(v_k.u - |v_k|^2 / 2 - |u|^2 / 2) in register tiles.

As in `tiles`, but in float64: the exponent is a small difference of large terms, since a point far from the origin
lies close to some centre. Coordinates are scaled by sqrt(log2 e), so that powers of two are what is asked for.
"""

from collections.abc import Callable
from typing import Any

from numba import types
from numba.core import cgutils

from dkef.core.compiled import intrinsic
from dkef.normaliser.simd import vector as vec
from dkef.normaliser.simd.vector import BLOCK, DOUBLES, LANES, PANEL, VECTORS, Code

PAIRS = max(1, VECTORS // 2)  # vectors of float64, each of which fills two registers
STRIP = LANES * PAIRS


def _exponents(builder: Any, points: Any, count: Any, panel: Any) -> list[list[Any]]:
    """[PANEL][PAIRS] of v_p.u - |v_p|^2 / 2 - |u|^2 / 2, for one strip; the last row of `points` is -|u|^2 / 2."""
    norms = vec.address(builder, points, builder.mul(count, vec.index(BLOCK)))
    common = [vec.load(builder, norms, v, DOUBLES) for v in range(PAIRS)]
    sums = []
    for p in range(PANEL):
        constant = vec.load_splat(builder, panel, p, DOUBLES)
        slots = [cgutils.alloca_once(builder, DOUBLES) for _ in range(PAIRS)]
        for v, slot in enumerate(slots):
            builder.store(builder.fadd(constant, common[v]), slot)
        sums.append(slots)
    centres = vec.address(builder, panel, vec.index(2 * PANEL))
    with cgutils.for_range(builder, count) as loop:
        row = vec.address(builder, points, builder.mul(loop.index, vec.index(BLOCK)))
        centre = vec.address(builder, centres, builder.mul(loop.index, vec.index(PANEL)))
        values = [vec.load(builder, row, v, DOUBLES) for v in range(PAIRS)]
        for p in range(PANEL):
            factor = vec.load_splat(builder, centre, p, DOUBLES)
            for value, slot in zip(values, sums[p], strict=True):
                builder.store(vec.multiply_add(builder, factor, value, builder.load(slot)), slot)
    return [[builder.load(slot) for slot in slots] for slots in sums]


def _terms(builder: Any, arguments: Any, points: Any, panel: Any, use: Callable[[int, int, Any], None]) -> Any:
    """Give every non-zero term to `use`, unless all are beyond the cut; returns whether any is within it.

    The cut is a proven bound for skipping: beyond it a component has no mass at all.
    """
    count, least = arguments[5], vec.broadcast(builder, arguments[6], DOUBLES)
    exponents = _exponents(builder, points, count, panel)
    inside = [[builder.fcmp_ordered(">=", x, least) for x in row] for row in exponents]
    flat = [lanes for row in inside for lanes in row]
    some = flat[0]
    for lanes in flat[1:]:
        some = builder.or_(some, lanes)
    found = vec.any_lane(builder, some)
    nothing = vec.splat(0.0, DOUBLES)
    with builder.if_then(found):
        for p in range(PANEL):
            weight = vec.load_splat(builder, panel, PANEL + p, DOUBLES)
            for v in range(PAIRS):
                term = builder.fmul(weight, vec.exp2_double(builder, exponents[p][v]))
                use(p, v, builder.select(inside[p][v], term, nothing))
    return found


def _addresses(context: Any, builder: Any, signature: Any, arguments: Any) -> tuple[Any, Any, Any]:
    """Where the results, the points and the panel of one strip begin."""
    _, _, strip, _, at, _, _ = arguments
    result, points, weights = (vec.array_data(context, builder, signature, arguments, k) for k in (0, 1, 3))
    return vec.address(builder, result, strip), vec.address(builder, points, strip), vec.address(builder, weights, at)


def _signature(result: Any, points: Any, weights: Any) -> Any:
    vec.require_contiguous(result, points, weights)
    i = types.int64
    return types.boolean(result, points, i, weights, i, i, types.float64)


@intrinsic
def add_normals(
    typingctx: Any, total: Any, points: Any, strip: Any, weights: Any, at: Any, count: Any, least: Any
) -> Code:
    """total += sum_p w_p 2^x_p over the x_p of a panel that are at least `least`, for one strip of points.

    total: float64 [BLOCK]; points: float64 [count + 1, BLOCK], u and -|u|^2 / 2; weights[at:] holds -|v|^2 / 2
    [PANEL], w [PANEL], v [count, PANEL]. Returns whether there was any such x_p.
    """

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        total, points, panel = _addresses(context, builder, signature, arguments)
        sums = [cgutils.alloca_once(builder, DOUBLES) for _ in range(PAIRS)]

        def add(p: int, v: int, term: Any) -> None:
            builder.store(builder.fadd(builder.load(sums[v]), term), sums[v])

        for slot in sums:
            builder.store(vec.splat(0.0, DOUBLES), slot)
        found = _terms(builder, arguments, points, panel, add)
        with builder.if_then(found):
            for v in range(PAIRS):
                new = builder.fadd(vec.load(builder, total, v, DOUBLES), builder.load(sums[v]))
                builder.store(new, vec.vector_address(builder, total, v, DOUBLES), align=4)
        return found

    return _signature(total, points, weights), generate


@intrinsic
def normal_terms(
    typingctx: Any, terms: Any, points: Any, strip: Any, weights: Any, at: Any, count: Any, least: Any
) -> Code:
    """As `add_normals`, but terms float64 [PANEL, BLOCK] takes each w_p 2^x_p; nothing is written where it is False."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        terms, points, panel = _addresses(context, builder, signature, arguments)

        def store(p: int, v: int, term: Any) -> None:
            row = vec.address(builder, terms, vec.index(p * BLOCK))
            builder.store(term, vec.vector_address(builder, row, v, DOUBLES), align=4)

        return _terms(builder, arguments, points, panel, store)

    return _signature(terms, points, weights), generate


assert BLOCK % STRIP == 0
