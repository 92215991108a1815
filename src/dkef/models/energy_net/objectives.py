"""What an energy network is trained by: objectives of kernel families (`dkef.models.kef.objectives`), for one network.

With s = grad log p~ and H its Hessian each is a loss of a row that all parameters are trained by, so there is no alpha:

    exact                                          tr H + |s|^2 / 2, along all coordinates
    sliced, finite_difference                      sum_u [ u'Hu + (u's)^2 / 2 ] along few directions u
    sliced_vr                                      sum_u u'Hu + |s|^2 / 2
    curvature_propagation, approximate_backprop    another way to tr H, + |s|^2 / 2
    denoising                                      |s|^2 / 2 + s.e / std at x + std e

The derivatives of log q0 are known. s takes one backward pass, whatever the dimension.
"""

import math
from collections.abc import Sequence

import numpy as np

from dkef.core.arrays import Array
from dkef.core.backend import Tensor, backend_of
from dkef.models.energy_net.density import density_jet
from dkef.models.energy_net.spec import EnergyNetwork
from dkef.models.kef.base_measure import base_jet
from dkef.models.kef.objectives.choice import drawn
from dkef.models.kef.objectives.propagation import diagonal_laplacian, propagated
from dkef.models.kef.objectives.views import base_along
from dkef.models.kef.parameters import BaseMeasure
from dkef.models.layers import Layer, feature_jet, features, features_and_pullback


def draw_noise(spec: EnergyNetwork, shape: tuple[int, int], rng: np.random.Generator) -> Array | None:
    """What the objective draws for n rows of d coordinates; one sign for each hidden unit and for the output."""
    return drawn(spec.objective, spec.slices, spec.layers * spec.width + 1, shape, rng)


def exact(layers: Sequence[Layer], q0: BaseMeasure, x: Tensor) -> Tensor:
    """sum_d [ d_d^2 log p~ + (d_d log p~)^2 / 2 ] at each row (Hyvarinen 2005); [n]."""
    log_p = density_jet(layers, q0, x)
    return backend_of(x).sum(log_p.second + 0.5 * log_p.first * log_p.first, -1)


def loss_rows(spec: EnergyNetwork, layers: Sequence[Layer], q0: BaseMeasure, x: Tensor, noise: Tensor | None) -> Tensor:
    """The objective at each row of x [n, d], with noise from `draw_noise`; [n]."""
    ops, kind = backend_of(x), spec.objective
    if kind == "exact":
        return exact(layers, q0, x)
    if kind in ("sliced", "finite_difference") and noise is not None:
        u = noise / math.sqrt(noise.shape[1])
        base = base_along(base_jet(q0, x), u)
        first, second = along(spec, layers, x, u)
        first, second = first + base.first, second + base.second
        return ops.sum(second + 0.5 * first * first, -1)
    if kind == "denoising" and noise is not None:
        e = noise[:, 0]
        s = score(layers, q0, x + spec.denoising_std * e)
        return ops.sum(s * (0.5 * s + e / spec.denoising_std), -1)
    s = score(layers, q0, x)
    return trace_of_network(spec, layers, x, noise) + ops.sum(base_jet(q0, x).second + 0.5 * s * s, -1)


def score(layers: Sequence[Layer], q0: BaseMeasure, x: Tensor) -> Tensor:
    """Gradient of log p~ at each row, by one backward pass; [n, d]."""
    f, pullback = features_and_pullback(x, layers)
    return pullback(0.0 * f + 1.0) + base_jet(q0, x).first


def along(spec: EnergyNetwork, layers: Sequence[Layer], x: Tensor, u: Tensor) -> tuple[Tensor, Tensor]:
    """u'grad f and u'Hess(f) u along directions u [n, s, d], or their differences; [n, s] each."""
    if spec.objective != "finite_difference":
        jet = feature_jet(x, layers, u)
        return jet.first[..., 0], jet.second[..., 0]
    ops, (n, s, d) = backend_of(x), u.shape
    t = spec.difference_step / math.sqrt(d)  # as |v|^2 = d for signs v = sqrt(s) u

    def value(at: Tensor) -> Tensor:
        return ops.reshape(features(ops.reshape(at, (n * s, d)), layers), (n, s))

    shift, middle = t * math.sqrt(s) * u, features(x, layers)
    plus, minus = value(x[:, None] + shift), value(x[:, None] - shift)
    return (plus - minus) / (2 * t * math.sqrt(s)), (plus + minus - 2.0 * middle) / (t * t * s)


def trace_of_network(spec: EnergyNetwork, layers: Sequence[Layer], x: Tensor, noise: Tensor | None) -> Tensor:
    """tr Hess f at each row: estimated along directions or by signs, or without mixed derivatives; [n]."""
    ops = backend_of(x)
    if spec.objective == "approximate_backprop" or noise is None:
        return diagonal_laplacian(x, layers)[2][:, 0]
    if spec.objective == "sliced_vr":
        return ops.sum(feature_jet(x, layers, noise / math.sqrt(noise.shape[1])).second[..., 0], -1)
    signs = ops.split(noise, [layer.weight.shape[1] for layer in layers])
    return ops.sum(propagated(x, layers, signs, 0.0 * signs[-1]).second[..., 0], -1)
