"""One trained model of a one- or two-dimensional set on a regular grid, for the figures to draw.

The log density where the figure shows it, the truth beside it where it is known, the kernel of a kernel
exponential family around the paper's positions, and what a quadrature over a wider grid says: how much mass the
model has in all, between the modes of a mixture, and where the truth has almost none.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from dkef.core.arrays import Array, log_sum_exp
from dkef.core.hdf5 import write_hdf5
from dkef.data.splits import Splits
from dkef.data.synthetic.distributions import Distribution, NormalMixture
from dkef.metrics.elongation import elongation
from dkef.metrics.integrals import Integrals
from dkef.models.kef.parameters import KefParameters
from dkef.models.protocol import DensityModel


@dataclass(frozen=True)
class Layout:
    """A regular grid of cell centres in each coordinate: wide for quadrature, its middle for the figure."""

    centre: float
    reach: float  # the quadrature covers centre +- reach in each coordinate
    shown: tuple[float, float]  # what the figure shows
    cell: float

    def wide(self) -> Array:
        n = round(2 * self.reach / self.cell)
        return self.centre - self.reach + self.cell * (np.arange(n) + 0.5)

    def is_shown(self) -> Array:
        axis = self.wide()
        return (axis > self.shown[0]) & (axis < self.shown[1])


# A cell of 0.08 is 0.4 of the narrowest ring's width, where the midpoint rule for a Gaussian is exact to 1e-13.
LAYOUTS = {1: Layout(1.0, 24.0, (-3.0, 5.0), 0.008), 2: Layout(0.0, 12.0, (-8.0, 8.0), 0.08)}
KERNEL_POSITIONS = {
    1: np.array([[-1.0], [0.0], [1.0]]),  # Figure 1
    2: np.stack(np.meshgrid(*[np.linspace(-5, 5, 4)] * 2, indexing="xy"), axis=-1).reshape(-1, 2),  # Figure 2
}
KERNEL_STEP = {1: 1, 2: 2}  # the kernel is smooth: in the plane every second cell draws the same contour
CLUSTER_ROWS = 3000
HELD = 0.999  # "where the truth has almost no mass" is outside its densest region of this mass


def points_of(axes: list[Array]) -> Array:
    """All points of the grid, first coordinate fastest; [n^d, d]."""
    return np.stack(np.meshgrid(*axes, indexing="xy"), axis=-1).reshape(-1, len(axes))


def kernel_of(model: DensityModel, positions: Array, points: Array) -> Array | None:
    """k(p, x) / k(p, p) for each position p [k, d] and point x [n, d]: [k, n]; None for models without a kernel.

    Divided by k(p, p), which is 1 for Gaussian kernels, so that a contour at 0.9 means the same everywhere.
    """
    parameters = getattr(model, "parameters", None)
    if not isinstance(parameters, KefParameters) or any(c.kind != "gaussian" for c in parameters.components):
        return None
    k: Array = sum(
        (c.kernel(positions, points) for c in parameters.components), np.zeros((len(positions), len(points)))
    )
    here = np.array([sum(float(c.kernel(p[None], p[None])[0, 0]) for c in parameters.components) for p in positions])
    scaled: Array = k / here[:, None]
    return scaled


def mode_regions(truth: Distribution | None, points: Array) -> dict[str, Array]:
    """For a planar mixture of two normals: the middle half of the way between its modes, and the first one's side."""
    if not (isinstance(truth, NormalMixture) and truth.dimension == 2 and len(truth.weights) == 2):
        return {}
    start, end = truth.means
    way = (points - start) @ (end - start) / float((end - start) @ (end - start))
    return {"between_modes": (way > 0.25) & (way < 0.75), "first_mode": way < 0.5}


def outside_truth(log_truth: Array, log_cell: float) -> Array:
    """Which points lie outside the truth's densest region that holds a share HELD of its mass."""
    mass = np.exp(log_truth + log_cell)
    order = np.argsort(-mass, kind="stable")
    held = np.cumsum(mass[order]) / mass.sum()
    outside = np.ones(len(mass), dtype=bool)
    outside[order[: int(np.searchsorted(held, HELD)) + 1]] = False
    return outside


def masses(log_p: Array, log_cell: float, regions: Mapping[str, Array]) -> dict[str, float]:
    """Share of the model's mass on the grid that lies in each region."""
    total = log_sum_exp(log_p)
    shares = {name: np.exp(log_sum_exp(log_p[mask]) - total) for name, mask in regions.items()}
    return {name: float(share) for name, share in shares.items()}


def describe(
    model: DensityModel, truth: Distribution | None, log_z: float | None, splits: Splits, integrals: Integrals
) -> tuple[dict[str, Array], dict[str, Any]]:
    """As `on_grid`, with the truth's likelihood of the test rows and the clusters of a mixture's training rows.

    log_z: by importance sampling; what is drawn rests on quadrature wherever it can be relied on.
    """
    if not model.normalised and integrals.status == "ok":
        arrays, facts = on_grid(model, truth, integrals.log_z, "quadrature")
    else:
        arrays, facts = on_grid(model, truth, log_z)
    facts |= {"log_z_sampled": log_z, "true_sharp_mass": integrals.true_sharp_mass}
    if truth is not None:
        facts["true_log_likelihood"] = float(np.mean(truth.log_density(splits.test)))
    if (clusters := getattr(model, "clusters", None)) is not None:
        arrays["cluster_points"] = splits.train[:CLUSTER_ROWS]
        arrays["cluster_labels"] = clusters[:CLUSTER_ROWS]
    return arrays, facts


def on_grid(
    model: DensityModel, truth: Distribution | None, log_z: float | None, log_z_from: str = "samples"
) -> tuple[dict[str, Array], dict[str, Any]]:
    """Arrays to draw and facts found by quadrature, for a model of one or two dimensions."""
    d = model.dimension
    layout = LAYOUTS[d]
    axis, keep = layout.wide(), layout.is_shown()
    points = points_of([axis] * d)
    log_cell = d * float(np.log(layout.cell))
    log_p = model.log_density(points).astype(np.float64)
    finite = np.isfinite(log_p) | np.isneginf(log_p)
    usable = np.where(finite, log_p, -np.inf)
    grid_log_z = float(log_sum_exp(usable) + log_cell)
    known = 0.0 if model.normalised else log_z
    used = grid_log_z if known is None else known
    shape, corner = (len(axis),) * d, np.ix_(*[np.flatnonzero(keep)] * d)
    arrays = {"axis": axis[keep], "log_density": (log_p - used).reshape(shape)[corner]}
    regions = mode_regions(truth, points)
    facts: dict[str, Any] = {
        "log_z": used,
        "log_z_from": "model" if model.normalised else "quadrature" if log_z is None else log_z_from,
        "grid_log_mass": grid_log_z - used,  # 0 where the density is normalised and the grid holds it all
        "not_finite": int((~finite).sum()),
    }
    if truth is not None:
        log_truth = truth.log_density(points)
        arrays["true_log_density"] = log_truth.reshape(shape)[corner]
        regions["outside_truth"] = outside_truth(log_truth, log_cell)
        facts["true_masses"] = masses(log_truth, log_cell, regions)
    facts["masses"] = masses(usable, log_cell, regions)
    positions = KERNEL_POSITIONS[d]
    coarse = axis[keep][:: KERNEL_STEP[d]]
    kernel = kernel_of(model, positions, points_of([coarse] * d))
    if kernel is not None:
        arrays |= {"kernel": kernel.reshape(len(positions), *[len(coarse)] * d), "kernel_axis": coarse}
        arrays["kernel_positions"] = positions
        if truth is not None and d == 2:
            facts["kernel_elongation"] = elongation(
                arrays["kernel"], coarse, positions, arrays["true_log_density"], arrays["axis"]
            )
    return arrays, facts


def write_grid(path: Path, arrays: Mapping[str, Array], record: Mapping[str, Any]) -> None:
    """Write arrays in float32, enough for a picture, beside a JSON record of the cell and the facts."""
    kinds = {name: np.int32 if array.dtype.kind in "iu" else np.float32 for name, array in arrays.items()}
    short = {name: array.astype(kinds[name]) for name, array in arrays.items()}
    write_hdf5(path, short, record, compression="gzip", shuffle=True)
