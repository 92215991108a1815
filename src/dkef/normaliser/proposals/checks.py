"""Are the arrays of a file those of a proposal? Types, shapes and ranges, before anything is drawn from it."""

from collections.abc import Iterator, Mapping

import numpy as np

from dkef.core.arrays import Array

# Types and shapes of all arrays, by kind of proposal; letters are lengths, each the same wherever it stands.
MIXTURE = {
    "weights": "float64 k",
    "centres": "float64 kd",
    "shape": "int64 k",
    "factors": "float64 jdd",
    "q0_share": "float64",
}
SCHEDULE = {"b": "float64 t", "step": "float64 t", "metric": "float64 dd", "steps": "int64", "leapfrog": "int64"}
WIDE = {"wide_centre": "float64 d", "wide_factor": "float64 dd"}  # for models without a q0
LAYOUT: dict[str, dict[str, str]] = {"q0": {}, "mixture": MIXTURE, "annealed": MIXTURE | SCHEDULE}
LARGEST = 1e60  # of any number, and of the inverse of a width: beyond it, squares overflow
MISSING_SHARE = 1e-8  # of weights that add to 1 but for rounding


def fault_of(kind: str, arrays: Mapping[str, Array], dimension: int, wide: bool = False) -> str | None:
    """The first thing that no proposal of this kind for a model of so many columns has; None where all is well.

    wide: whether the model has no q0, so that the proposal has a part of its own in its place.
    """
    if kind not in LAYOUT:
        return f"its kind is {kind!r}, not one of {', '.join(LAYOUT)}"
    layout = LAYOUT[kind] | (WIDE if wide and kind != "q0" else {})
    if (fault := _misfit(layout, arrays, dimension)) is not None:
        return fault
    return next((f"its {name} are not {wanted}" for name, wanted, holds in _ranges(kind, arrays) if not holds), None)


def _misfit(layout: Mapping[str, str], arrays: Mapping[str, Array], dimension: int) -> str | None:
    """The first array that is missing, too many, or of another type or shape."""
    if different := sorted(layout.keys() ^ arrays.keys()):
        return f"it has {'no' if different[0] in layout else 'an extra'} array {different[0]}"
    lengths = {"d": dimension}
    for name, wanted in layout.items():
        found, (dtype, _, letters) = arrays[name], wanted.partition(" ")
        if found.dtype != dtype:
            return f"its {name} are {found.dtype}, not {dtype}"
        fits = found.ndim == len(letters) and 0 not in found.shape
        if not fits or any(lengths.setdefault(x, n) != n for x, n in zip(letters, found.shape, strict=True)):
            return f"its {name} have the shape {found.shape}, which does not fit the rest and {dimension} columns"
        if not (np.abs(found) <= LARGEST).all():
            return f"its {name} are not all finite"
    return None


def _ranges(kind: str, a: Mapping[str, Array]) -> Iterator[tuple[str, str, bool]]:
    """Arrays, what they must be, and whether they are."""
    if kind == "q0":
        return
    weights, shape, factors = a["weights"], a["shape"], a["factors"]
    yield "weights", "positive numbers that add to 1", weights.min() >= 0 and abs(weights.sum() - 1) <= MISSING_SHARE
    yield "shape", f"numbers from 0 to {len(factors) - 1}", shape.min() >= 0 and shape.max() < len(factors)
    yield "factors", "lower triangular with positive diagonals", _are_factors(factors)
    if "wide_factor" in a:
        yield "wide_factor", "lower triangular with a positive diagonal", _are_factors(a["wide_factor"][None])
    yield "q0_share", "between 0 and 1", bool(0 < a["q0_share"] < 1)
    if kind == "annealed":
        b = a["b"]
        yield "b", "rising from 0 to 1", len(b) > 1 and b[0] == 0 and b[-1] == 1 and bool((np.diff(b) >= 0).all())
        yield "step", "positive", bool((a["step"] > 0).all())
        yield "metric", "lower triangular with a positive diagonal", _are_factors(a["metric"][None])
        for name in ("steps", "leapfrog"):
            yield name, "at least 1", bool(a[name] >= 1)


def _are_factors(L: Array) -> bool:
    """Whether matrices [j, d, d] are Cholesky factors that can be inverted."""
    least = np.diagonal(L, axis1=1, axis2=2).min()
    return bool((np.triu(L, 1) == 0).all() and least > 1 / LARGEST)
