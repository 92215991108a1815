"""A kernel laid out for compiled loops: all components in one array, widths padded with zeros."""

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from dkef.core.arrays import Array
from dkef.core.backend import NUMPY
from dkef.models.kef.loops import LANES, scale_kernel
from dkef.models.kef.parameters import Component, KefParameters
from dkef.models.layers import Layer, affine

# Squares of what is kept stay above the smallest normal float32; less than this changes no sum of its terms.
SMALLEST_KERNEL = 2.0**-62


def whole_lanes(n: int) -> int:
    """n rounded up to a multiple of LANES."""
    return -(-n // LANES) * LANES


class Rows(NamedTuple):
    """What the networks and kernels are at n rows."""

    slope: Array  # [r, l, n, v]: first derivative of each activation; 0 in padding
    bend: Array  # [r, l, n, v]: its second derivative
    phi: Array  # [r, n, v]: centred features, and |phi|^2 / 2 in the extra column of a Gaussian component
    k: Array  # [r, n, m']: kernel values of Gaussian components, 1 for linear ones


@dataclass(frozen=True)
class PackedKernel:
    """r components with networks of l >= 1 layers on d coordinates, and m inducing points.

    v is the largest width plus one and m' is m plus two extra columns, both in whole lanes. A network of fewer layers
    ends in layers that do nothing.
    """

    components: tuple[Component, ...]
    m: int
    start: Array  # [r, d, v]
    weight: Array  # [r, l - 1, v, v]
    skip: Array  # [r, l - 1, d, v]
    basis: Array  # [r, v, m']: the columns -b_m of `kernels`
    norms: Array  # [r, m']: |phi(z)|^2 / (2 tau)
    centre: Array  # [r, v]: mean of phi(z), subtracted from the features of Gaussian components
    column: Array  # [r]: place of the extra column of p and s
    gaussian: Array  # [r]: truth values

    @classmethod
    def of(cls, parameters: KefParameters, dtype: str) -> "PackedKernel":
        components = tuple(in_precision(component, dtype) for component in parameters.components)
        z = np.asarray(parameters.z, dtype)
        (m, d), depth = z.shape, max([1, *(len(c.layers) for c in components)])
        v = whole_lanes(1 + max(width for c in components for width in widths(c, d)))
        R, columns = len(components), whole_lanes(m + 2)
        packed = cls(
            components,
            m,
            np.zeros((R, d, v), dtype),
            np.zeros((R, depth - 1, v, v), dtype) + np.eye(v, dtype=dtype),
            np.zeros((R, depth - 1, d, v), dtype),
            np.zeros((R, v, columns), dtype),
            np.zeros((R, columns), dtype),
            np.zeros((R, v), dtype),
            np.zeros(R, np.int64),
            np.array([c.kind == "gaussian" for c in components]),
        )
        for r, component in enumerate(components):
            packed._put_network(r, component, d)
            packed._put_basis(r, component, z)
        return packed

    def _put_network(self, r: int, component: Component, d: int) -> None:
        if not component.layers:
            self.start[r, :, :d] = np.eye(d)
        for i, layer in enumerate(component.layers):
            fan_in, w = layer.weight.shape
            if i == 0:
                self.start[r, :, :w] = layer.weight if layer.skip is None else layer.weight + layer.skip
                continue
            self.weight[r, i - 1] = 0.0
            self.weight[r, i - 1, :fan_in, :w] = layer.weight
            if layer.skip is not None:
                self.skip[r, i - 1, :, :w] = layer.skip

    def _put_basis(self, r: int, component: Component, z: Array) -> None:
        psi = z
        for layer in component.layers:
            psi = activated(layer, affine(layer, psi, z))[0]
        m, w = psi.shape
        self.column[r] = w
        if component.kind == "linear":
            self.basis[r, :w, :m] = component.rho * psi.T
            return
        self.centre[r, :w] = psi.mean(axis=0)
        psi = psi - self.centre[r, :w]  # differences stay, and the expanded squares lose fewer digits
        self.basis[r, :w, :m] = psi.T / component.tau
        self.basis[r, w, :m] = -1.0 / component.tau
        self.norms[r, :m] = (psi * psi).sum(axis=1) / (2 * component.tau)

    @property
    def arrays(self) -> tuple[Array, ...]:
        """What the compiled loops need of it."""
        return self.start, self.weight, self.skip, self.basis, self.column, self.gaussian

    def rows(self, x: Array) -> Rows:
        """Activations, features and kernel values at x [n, d], which is of the kernel's precision."""
        (R, v, columns), layers, n = self.basis.shape, 1 + self.weight.shape[1], len(x)
        slope, bend = np.zeros((R, layers, n, v), x.dtype), np.zeros((R, layers, n, v), x.dtype)
        phi, k = np.zeros((R, n, v), x.dtype), np.ones((R, n, columns), x.dtype)
        for r, component in enumerate(self.components):
            h = x
            for i, layer in enumerate(component.layers):
                h, first, second = activated(layer, affine(layer, h, x))
                slope[r, i, :, : h.shape[1]], bend[r, i, :, : h.shape[1]] = first, second
            slope[r, len(component.layers) :] = 1.0  # of layers that do nothing
            w = h.shape[1]
            phi[r, :, :w] = h - self.centre[r, :w]
            if component.kind == "gaussian":
                phi[r, :, w] = 0.5 * np.square(phi[r, :, :w]).sum(axis=1)
                self._kernel_values(r, phi[r], k[r])
        return Rows(slope, bend, phi, k)

    def _kernel_values(self, r: int, phi: Array, k: Array) -> None:
        """rho exp(-|phi(x) - phi(z)|^2 / (2 tau)) into k [n, m']."""
        np.dot(phi, self.basis[r], out=k)
        k -= self.norms[r]
        np.minimum(k, 0.0, out=k)
        np.exp(k, out=k)
        scale_kernel(k, self.components[r].rho, k.dtype.type(SMALLEST_KERNEL))


def widths(component: Component, d: int) -> list[int]:
    """Of the outputs of its layers, the last of which are the features."""
    return [layer.weight.shape[1] for layer in component.layers] or [d]


def in_precision(component: Component, dtype: str) -> Component:
    """The component with all numbers in the given precision."""
    number = np.dtype(dtype).type
    layers = tuple(
        Layer(
            np.asarray(layer.weight, dtype),
            np.asarray(layer.bias, dtype),
            None if layer.skip is None else np.asarray(layer.skip, dtype),
            layer.activation,
        )
        for layer in component.layers
    )
    return Component(component.kind, number(component.rho), number(component.tau), layers)


def activated(layer: Layer, h: Array) -> tuple[Array, Array | float, Array | float]:
    """The layer's output for its pre-activation, and the first and second derivative of its activation."""
    if layer.activation == "linear":
        return h, 1.0, 0.0
    if layer.activation != "softplus":
        raise ValueError(
            f"a kernel network has the activation {layer.activation!r}; only softplus and linear are known"
        )
    value, slope = NUMPY.softplus_with_slope(h)
    return value, slope, slope * (1.0 - slope)
