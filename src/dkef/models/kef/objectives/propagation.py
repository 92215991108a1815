"""Two ways to the trace of the Hessian of k(x, z) that go through the networks once, whatever the dimension.

For features phi with Jacobian J and Laplacians L_j = sum_d d_d^2 phi_j, the trace of a kernel kappa(phi(x), phi(z)) is

    tr Hess k = tr(kappa'' J J') + kappa'.L,

and a layer h = a(g), g = W'h_below + skip, passes L on by L = a''(g) sum_d (d_d g)^2 + a'(g) W'L_below. What costs d
passes are the squared gradients sum_d (d_d g_j)^2 = (J_g J_g')_jj of every unit, and J J' at the top.

Curvature propagation (Martens, Sutskever, Swersky 2012) draws a sign v for every unit and feature, sends them
backward, weighted by the roots r of the local curvature, to t = sum_layers J_g' (r v) + J' (r v) [D], and this forward
again: E[r_j v_j (J_g t)_j] = r_j^2 sum_d (d_d g_j)^2, as signs of other units average out. Here r^2 is a''(g) of a
unit and 1 / tau of the Gaussian kernel. In the original an adjoint enters the root on both sides, which makes the
estimate of a sum of kernels another function than the sum of the estimates; here it stays on one side. So the estimate
is linear in alpha and unbiased, with other variance than theirs. Without layers it is that of `sliced_vr`.

Approximate backpropagation (Kingma, LeCun 2010) drops mixed second derivatives of every layer, which forward reads
sum_d (d_d g_j)^2 = sum_i W_ij^2 sum_d (d_d h_i)^2 + sum_d skip_dj^2, and of kappa'' at the top keeps the diagonal. It
equals the exact trace for a linear kernel on one layer; for a Gaussian kernel on the data, or on one layer whose units
see one coordinate each. It does not for a Gaussian kernel on one layer of other weights, which mixes features, nor for
two layers or more.
"""

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from dkef.core.backend import Tensor, backend_of
from dkef.models.jets import Jet, flat_matmul
from dkef.models.kef.kernels import KernelJet, centred, kernel_jet, kernel_matrix
from dkef.models.kef.parameters import Component
from dkef.models.layers import Layer, affine


class Unit(NamedTuple):
    """A layer at n rows: the slope of its activation, and two factors of its second derivative; [n, w] each."""

    slope: Tensor
    back: Tensor  # the root of the second derivative, where it is not negative
    forth: Tensor


def activations(x: Tensor, layers: Sequence[Layer]) -> tuple[Tensor, list[Unit]]:
    """phi(x) [n, w], and what each layer passes on; the factors have finite slopes everywhere, unlike a root."""
    ops, phi, units = backend_of(x), x, []
    for layer in layers:
        g = affine(layer, phi, x)
        if layer.activation == "softplus":
            phi, slope = ops.softplus_with_slope(g)
            e = ops.exp(-0.5 * ops.abs(g))
            root = e / (1.0 + e * e)  # of slope (1 - slope)
            units.append(Unit(slope, root, root))
        elif layer.activation == "tanh":
            phi = ops.tanh(g)
            e = ops.exp(-ops.abs(g))
            root = 2.0 * e / (1.0 + e * e)  # 1 / cosh(g), whose square is the slope
            units.append(Unit(root * root, math.sqrt(2.0) * root, -math.sqrt(2.0) * root * phi))
        elif layer.activation == "linear":
            phi = g
            units.append(Unit(0.0 * g + 1.0, 0.0 * g, 0.0 * g))
        else:
            raise ValueError(f"a network has the activation {layer.activation!r}; softplus, tanh and linear are known")
    return phi, units


def noise_columns(component: Component, d: int) -> list[int]:
    """Numbers of signs for the units of each layer, and for the features."""
    widths = [int(layer.weight.shape[1]) for layer in component.layers]
    return [*widths, widths[-1] if widths else d]


def propagated(x: Tensor, layers: Sequence[Layer], signs: Sequence[Tensor], top: Tensor) -> Jet:
    """phi(x) [n, w], J t and s estimates of its Laplacians [n, s, w], over s; signs of each layer, `top` for phi."""
    ops = backend_of(x)
    phi, units = activations(x, layers)
    back, through_skips = top, 0.0
    for layer, unit, v in zip(reversed(layers), reversed(units), reversed(signs), strict=True):
        back = back * unit.slope[:, None] + unit.back[:, None] * v
        if layer.skip is not None:
            through_skips = through_skips + flat_matmul(back, ops.transpose(layer.skip))
        back = flat_matmul(back, ops.transpose(layer.weight))
    t = through_skips + back  # [n, s, d]
    first, second = t, 0.0 * t
    for layer, unit, v in zip(layers, units, signs, strict=True):
        p = flat_matmul(first, layer.weight)
        if layer.skip is not None:
            p = p + flat_matmul(t, layer.skip)
        slope = unit.slope[:, None]
        first, second = slope * p, unit.forth[:, None] * v * p + slope * flat_matmul(second, layer.weight)
    return Jet(phi, first, second * (1.0 / top.shape[1]))


def curvature_propagation(component: Component, x: Tensor, psi: Tensor, signs: Tensor) -> KernelJet:
    """Factors of s unbiased estimates of the trace at each row of x, over s; signs [n, s, sum of `noise_columns`]."""
    *own, top = backend_of(x).split(signs, noise_columns(component, x.shape[1]))
    if component.kind == "linear":
        return kernel_jet(component, propagated(x, component.layers, own, 0.0 * top), psi)
    root = component.tau**-0.5
    return kernel_jet(component, propagated(x, component.layers, own, root * top), psi, top / (root * top.shape[1]))


def diagonal_laplacian(x: Tensor, layers: Sequence[Layer]) -> tuple[Tensor, Tensor, Tensor]:
    """phi(x), its squared gradients and its Laplacians without mixed derivatives; [n, w] each."""
    ops = backend_of(x)
    phi, units = activations(x, layers)
    ones = ops.like(np.ones((1, x.shape[1])), x)
    squares, laplacian = 0.0 * x + 1.0, 0.0 * x
    for layer, (slope, back, forth) in zip(layers, units, strict=True):
        g = ops.matmul(squares, layer.weight * layer.weight)
        if layer.skip is not None:
            g = g + ops.matmul(ones, layer.skip * layer.skip)
        squares, laplacian = slope * slope * g, back * forth * g + slope * ops.matmul(laplacian, layer.weight)
    return phi, squares, laplacian


def approximate_backprop(component: Component, x: Tensor, psi: Tensor) -> KernelJet:
    """Factors of the approximate trace at each row of x, as one bend; p is 0."""
    ops = backend_of(x)
    phi, squares, laplacian = diagonal_laplacian(x, component.layers)
    if component.kind == "linear":
        s = laplacian[:, None]
        return KernelJet(kernel_matrix(component, phi, psi), 0.0 * s, s, -component.rho * psi)
    phi, psi = centred(phi, psi)
    # With delta = phi - psi: k [ sum_j squares_j (delta_j^2 / tau^2 - 1 / tau) - delta.L / tau ], as -k s.b.
    square, slope = squares / component.tau**2, laplacian / component.tau
    constant = ops.sum(phi * (slope - square * phi), -1) + ops.sum(squares, -1) / component.tau
    s = ops.concatenate([2.0 * square * phi - slope, -square, constant[:, None]])[:, None]
    b = ops.concatenate([psi, psi * psi, ops.like(np.ones((psi.shape[0], 1)), psi)])
    return KernelJet(component.kernel_of_features(phi, psi), 0.0 * s, s, b)
