"""Whether kernels follow the density: their contours along and across its level sets."""

import numpy as np

from dkef.core.arrays import Array

CONTOUR = 0.9  # of the kernel, as Figure 2 draws it
SUPPORT = 9.0  # nats below the maximum of a log density: what Figure 2 shows of it


def elongation(kernel: Array, kernel_axis: Array, positions: Array, truth: Array, axis: Array) -> float | None:
    """How much longer the kernel's contours are along the truth's level sets than across them; 1 for round kernels.

    kernel [k, m, m] around positions [k, 2] on kernel_axis [m], true log density [n, n] on axis [n]. The median over
    those positions where the truth has mass; None where there is none.
    """
    with np.errstate(invalid="ignore"):  # outside a bounded support
        slopes = np.gradient(truth, axis, axis)  # along the second coordinate, then along the first
    points = np.stack(np.meshgrid(kernel_axis, kernel_axis, indexing="xy"), axis=-1)
    ratios = []
    for position, around in zip(positions, kernel, strict=True):
        j, i = (int(np.abs(axis - coordinate).argmin()) for coordinate in position)
        across = np.array([slopes[1][i, j], slopes[0][i, j]])
        inside = around >= CONTOUR
        if truth[i, j] < truth.max() - SUPPORT or not np.linalg.norm(across) > 0 or inside.sum() < 3:
            continue
        across /= np.linalg.norm(across)
        offsets = points[inside] - position
        along = np.array([-across[1], across[0]])
        ratios.append(np.sqrt(np.mean((offsets @ along) ** 2) / np.mean((offsets @ across) ** 2)))
    return float(np.median(ratios)) if ratios else None
