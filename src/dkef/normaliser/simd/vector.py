"""Vector arithmetic in LLVM code: what numba's own vectoriser does not find, built by hand.

Each function takes an llvmlite builder and appends instructions on vectors of LANES float32 numbers. Products and sums
may fuse; nothing is re-associated, so results do not depend on how LLVM feels about a loop.
"""

from collections.abc import Callable
from typing import Any

import llvmlite.binding as llvm  # type: ignore[import-untyped]
import numpy as np
from llvmlite import ir
from numba.core import cgutils
from numba.core.errors import TypingError
from numba.np.arrayobj import make_array
from numpy.polynomial import Chebyshev, Polynomial

BLOCK = 64  # samples that are carried through the whole model at once, see tiles.py
PANEL = 6  # outputs of one register tile

Code = tuple[Any, Callable[..., Any]]  # what a numba intrinsic returns: its signature, and what generates the code


def _register_tile() -> tuple[int, int]:
    """(lanes, vectors) such that PANEL x vectors accumulators fit the host's registers."""
    host = llvm.get_host_cpu_features()
    if host.get("avx512f"):
        return 16, 4  # 32 registers of 512 bits
    if host.get("avx"):
        return 8, 2  # 16 registers of 256 bits
    return 4, 4 if host.get("neon") else 2  # 32 or 16 registers of 128 bits


LANES, VECTORS = _register_tile()

FLOAT = ir.FloatType()
DOUBLE = ir.DoubleType()
INDEX = ir.IntType(64)
VECTOR = ir.VectorType(FLOAT, LANES)
DOUBLES = ir.VectorType(DOUBLE, LANES)
LONGS = ir.VectorType(ir.IntType(64), LANES)
INTEGERS = ir.VectorType(ir.IntType(32), LANES)
FUSED = ("contract",)  # lets a product and a sum become one instruction where the host has it

# 2^f for |f| <= 1/2, and P with log2(1 + u) = u P(u) on [0, 1]; the degrees leave less than float32 rounding.
EXP2 = [float(c) for c in Chebyshev.interpolate(np.exp2, 5, domain=[-0.5, 0.5]).convert(kind=Polynomial).coef]
LOG2_1P = [
    float(c)
    for c in Chebyshev.interpolate(lambda u: np.log2(1 + u) / u, 8, domain=[0, 1]).convert(kind=Polynomial).coef
]
# The same in float64, to 1e-10 relative: what follows a sum in float64 shall not spoil it.
EXP2_DOUBLE = [float(c) for c in Chebyshev.interpolate(np.exp2, 7, domain=[-0.5, 0.5]).convert(kind=Polynomial).coef]
_ROUNDER = 1.5 * 2**23  # adding it leaves the nearest integer in the low bits of the significand
_DOUBLE_ROUNDER = 1.5 * 2**52
# 2^-104 stands for all that is smaller: next to 1 it is nothing, and its products with weights above 2^-22 are still no
# subnormal numbers. Each of those costs as much as a hundred others: far samples of a trained q0 made whole runs four
# times slower.
_SMALLEST = -104.0


def splat(value: float, kind: Any = VECTOR) -> ir.Constant:
    return ir.Constant(kind, [value] * LANES)


def integers(value: int) -> ir.Constant:
    return ir.Constant(INTEGERS, [value] * LANES)


def index(value: int) -> ir.Constant:
    return ir.Constant(INDEX, value)


def multiply_add(builder: Any, a: Any, b: Any, c: Any) -> Any:
    """a b + c."""
    return builder.fadd(builder.fmul(a, b, flags=FUSED), c, flags=FUSED)


def horner(builder: Any, x: Any, coefficients: list[Any]) -> Any:
    """sum_k coefficients[k] x^k."""
    total = coefficients[-1]
    for c in reversed(coefficients[:-1]):
        total = multiply_add(builder, total, x, c)
    return total


def maximum(builder: Any, x: Any, floor: float) -> Any:
    return builder.select(builder.fcmp_ordered(">", x, splat(floor)), x, splat(floor))


def exp2(builder: Any, x: Any) -> Any:
    """2^x for x < 128, to 2e-7 relative."""
    x = maximum(builder, x, _SMALLEST)
    shifted = builder.fadd(x, splat(_ROUNDER))
    fraction = builder.fsub(x, builder.fsub(shifted, splat(_ROUNDER)))
    significand = builder.bitcast(horner(builder, fraction, [splat(c) for c in EXP2]), INTEGERS)
    exponent = builder.shl(builder.bitcast(shifted, INTEGERS), integers(23))
    return builder.bitcast(builder.add(significand, exponent), VECTOR)


def exp2_double(builder: Any, x: Any) -> Any:
    """2^x in float64 for -1000 < x < 1000, to 1e-10 relative; elsewhere anything."""
    rounder = splat(_DOUBLE_ROUNDER, DOUBLES)
    shifted = builder.fadd(x, rounder)
    fraction = builder.fsub(x, builder.fsub(shifted, rounder))
    significand = builder.bitcast(horner(builder, fraction, [splat(c, DOUBLES) for c in EXP2_DOUBLE]), LONGS)
    exponent = builder.shl(builder.bitcast(shifted, LONGS), ir.Constant(LONGS, [52] * LANES))
    return builder.bitcast(builder.add(significand, exponent), DOUBLES)


def softplus2(builder: Any, x: Any) -> Any:
    """log2(1 + 2^x): softplus in units of log 2, for which the packed weights make up."""
    minus_magnitude = builder.or_(builder.bitcast(x, INTEGERS), integers(-(2**31)))
    u = exp2(builder, builder.bitcast(minus_magnitude, VECTOR))
    tail = horner(builder, u, [splat(c) for c in LOG2_1P])
    return multiply_add(builder, u, tail, maximum(builder, x, 0.0))


def array_data(context: Any, builder: Any, signature: Any, arguments: Any, position: int) -> Any:
    """Address of the first element of an array argument."""
    return make_array(signature.args[position])(context, builder, arguments[position]).data


def require_contiguous(*arrays: Any) -> None:
    """Stop the compilation of code that would be given arrays with gaps: addresses here are counted from the first."""
    for array in arrays:
        if array.layout != "C":
            raise TypingError(f"{array} is not contiguous")


def address(builder: Any, base: Any, offset: Any) -> Any:
    """Address of base[offset] of an array of float32 or float64."""
    return builder.gep(base, [offset], source_etype=base.type.pointee)


def vector_address(builder: Any, base: Any, v: int, kind: Any = VECTOR) -> Any:
    """Address of the v-th vector of an array."""
    return builder.bitcast(address(builder, base, index(v * LANES)), kind.as_pointer())


def load(builder: Any, base: Any, v: int, kind: Any = VECTOR) -> Any:
    """The v-th vector of an array, which need not be aligned to vectors."""
    return builder.load(
        vector_address(builder, base, v, kind), align=kind.element.width // 8 if kind is INTEGERS else 4
    )


def broadcast(builder: Any, value: Any, kind: Any = VECTOR) -> Any:
    """A number in every lane."""
    undefined = ir.Constant(kind, ir.Undefined)
    return builder.shuffle_vector(builder.insert_element(undefined, value, index(0)), undefined, integers(0))


def load_splat(builder: Any, base: Any, position: int, kind: Any = VECTOR) -> Any:
    """base[position] in every lane."""
    return broadcast(builder, builder.load(address(builder, base, index(position)), align=4), kind)


def any_lane(builder: Any, lanes: Any) -> Any:
    """Whether any of a vector of truth values is true."""
    bits = ir.IntType(LANES)
    return builder.icmp_unsigned("!=", builder.bitcast(lanes, bits), ir.Constant(bits, 0))


def gather(builder: Any, base: Any, positions: Any) -> Any:
    """base[positions], one number a lane."""
    addresses = builder.gep(base, [positions], source_etype=FLOAT)
    addresses.type = ir.VectorType(FLOAT.as_pointer(), LANES)  # llvmlite takes every result for a single pointer
    lanes = ir.VectorType(ir.IntType(1), LANES)
    kind = ir.FunctionType(VECTOR, [addresses.type, ir.IntType(32), lanes, VECTOR])
    name = f"llvm.masked.gather.v{LANES}f32.v{LANES}p0"
    function = cgutils.get_or_insert_function(builder.module, kind, name)
    everywhere = ir.Constant(lanes, [1] * LANES)
    return builder.call(function, [addresses, ir.Constant(ir.IntType(32), 4), everywhere, splat(0.0)])
