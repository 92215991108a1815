"""The objective that a specification names: its random numbers, its view of some rows, its statistics of many."""

import math
from collections.abc import Sequence

import numpy as np

from dkef.core.arrays import Array
from dkef.core.backend import Tensor, backend_of
from dkef.models.kef.density import inducing_features, kernel_jets
from dkef.models.kef.objectives.propagation import approximate_backprop, curvature_propagation, noise_columns
from dkef.models.kef.objectives.views import DifferenceView, GradientView, JetView, View
from dkef.models.kef.packed import in_precision
from dkef.models.kef.parameters import BaseMeasure, KefParameters
from dkef.models.kef.spec import KernelExponentialFamily, Objective
from dkef.models.kef.statistics import Statistics, on_one_thread
from dkef.models.kef.variables import network_shapes

BLOCK = 100  # rows of one contribution to the statistics of many: [100, d, m] stays below 10 MB at d = 43


def draw_noise(spec: KernelExponentialFamily, shape: tuple[int, int], rng: np.random.Generator) -> Array | None:
    """What the objective draws for n rows of d coordinates, see `drawn`."""
    widths = [width for _, width, _ in network_shapes(spec, shape[1])]
    units = spec.components * (sum(widths) + (widths[-1] if widths else shape[1]))
    return drawn(spec.objective, spec.slices, units, shape, rng)


def drawn(
    objective: Objective, slices: int, units: int, shape: tuple[int, int], rng: np.random.Generator
) -> Array | None:
    """Noise of an objective for n rows of d coordinates: [n, s, columns], signs or normal; None where it has none."""
    n, d = shape
    if objective in ("exact", "approximate_backprop"):
        return None
    if objective == "denoising":
        return rng.standard_normal((n, 1, d))
    columns = units if objective == "curvature_propagation" else d
    return 2.0 * rng.integers(2, size=(n, slices, columns)) - 1.0


def view(
    spec: KernelExponentialFamily, parameters: KefParameters, x: Tensor, psi: Sequence[Tensor], noise: Tensor | None
) -> View:
    """What the objective takes of the model at the rows of x [n, d], with noise from `draw_noise`."""
    kind, components = spec.objective, parameters.components
    if kind == "exact":
        return JetView.of(parameters, x, psi, None)
    if kind == "approximate_backprop":
        bends = [approximate_backprop(c, x, own) for c, own in zip(components, psi, strict=True)]
        return GradientView(parameters, x, psi, bends)
    if noise is None:
        raise ValueError(f"the objective {kind} needs noise")
    if kind == "denoising":
        e = noise[:, 0]
        return GradientView(parameters, x + spec.denoising_std * e, psi, None, e / spec.denoising_std)
    if kind == "curvature_propagation":
        sizes = [sum(noise_columns(component, x.shape[1])) for component in components]
        pieces = zip(components, psi, backend_of(x).split(noise, sizes), strict=True)
        return GradientView(parameters, x, psi, [curvature_propagation(c, x, own, v) for c, own, v in pieces])
    directions = noise / math.sqrt(noise.shape[1])
    if kind == "finite_difference":
        return DifferenceView(parameters, x, psi, directions, spec.difference_step)
    if kind == "sliced_vr":
        return GradientView(parameters, x, psi, kernel_jets(parameters, x, psi, directions))
    return JetView.of(parameters, x, psi, directions)


@on_one_thread
def statistics_of_rows(
    spec: KernelExponentialFamily, parameters: KefParameters, x: Array, noise: Array | None, dtype: str
) -> Statistics:
    """Means over the rows of x [n, d], in float64, with features and derivatives in the given precision."""
    narrow = with_precision(parameters, dtype)
    sums: list[Array] = []
    with np.errstate(all="ignore"):  # a diverged theta gives NaN, which the caller looks for
        psi = inducing_features(narrow)
        for begin in range(0, len(x), BLOCK):
            some = slice(begin, begin + BLOCK)
            own = None if noise is None else np.asarray(noise[some], dtype)
            part = view(spec, narrow, np.asarray(x[some], dtype), psi, own).statistics()
            wide = [np.asarray(one, np.float64) for one in part]
            sums = [a + b for a, b in zip(sums, wide, strict=True)] if sums else wide
    return Statistics(*(total / len(x) for total in sums))


def with_precision(parameters: KefParameters, dtype: str) -> KefParameters:
    """The kernel and q0 with all numbers in the given precision."""
    q0 = parameters.q0
    return KefParameters(
        parameters.alpha,
        np.asarray(parameters.z, dtype),
        tuple(in_precision(component, dtype) for component in parameters.components),
        BaseMeasure(*(np.asarray(part, dtype) for part in (q0.mu, q0.sigma, q0.beta))),
    )
