"""Second-order forward propagation: a network's value with its first and second derivative in each input coordinate.

Every input direction d carries (h, d_d h, d_d^2 h) through the layers. Affine maps act on all three alike; an
activation s gives (s(h), s'(h) d_d h, s''(h) (d_d h)^2 + s'(h) d_d^2 h). The cost is O(n d w^2) a layer, and no
Hessian of a layer is ever formed.
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from dkef.models.kef.backend import Tensor, backend_of
from dkef.models.kef.parameters import Layer


class Jet(NamedTuple):
    """Features at n points with their pure derivatives in d coordinates.

    While the map is still affine its derivatives are the same at every point: their leading axis is then 1, and
    broadcasts.
    """

    value: Tensor  # [n, w]
    first: Tensor  # [n or 1, d, w]
    second: Tensor  # [n or 1, d, w]; on the way None stands for the 0 of an affine map


def identity_jet(x: Tensor) -> Jet:
    """The jet of phi(x) = x."""
    return Jet(x, backend_of(x).like(np.eye(x.shape[1])[None], x), None)


def rowwise_matmul(a: Tensor, b: Tensor) -> Tensor:
    """a [n, d, v] times b [v, w] as one flat product, which is faster than n small ones; returns [n, d, w]."""
    ops = backend_of(a)
    n, d, v = a.shape
    return ops.reshape(ops.matmul(ops.reshape(a, (n * d, v)), b), (n, d, b.shape[1]))


def affine(jet: Jet, layer: Layer, x: Tensor) -> Jet:
    """h weight + x skip + bias, with x [n, d] the network's input."""
    value = jet.value @ layer.weight + layer.bias
    first = rowwise_matmul(jet.first, layer.weight)
    second = None if jet.second is None else rowwise_matmul(jet.second, layer.weight)
    if layer.skip is not None:
        value = value + x @ layer.skip
        first = first + layer.skip[None]
    return Jet(value, first, second)


def softplus(jet: Jet) -> Jet:
    """log(1 + exp(h)); its derivative is the logistic function."""
    ops = backend_of(jet.value)
    n, w = jet.value.shape
    slope = ops.reshape(ops.sigmoid(jet.value), (n, 1, w))
    # Not first**2: TensorFlow differentiates powers by more powers.
    second = slope * (1.0 - slope) * (jet.first * jet.first)
    if jet.second is not None:
        second = second + slope * jet.second
    return Jet(ops.softplus(jet.value), slope * jet.first, second)


def network_jet(x: Tensor, layers: Sequence[Layer]) -> Jet:
    """phi(x) and its derivatives for x [n, d]; without layers phi is the identity."""
    jet = identity_jet(x)
    for layer in layers:
        jet = affine(jet, layer, x)
        if layer.activation == "softplus":
            jet = softplus(jet)
    return jet if jet.second is not None else jet._replace(second=0.0 * jet.first)


def features(x: Tensor, layers: Sequence[Layer]) -> Tensor:
    """phi(x) alone; returns [n, w]."""
    h = x
    for layer in layers:
        h = h @ layer.weight + layer.bias
        if layer.skip is not None:
            h = h + x @ layer.skip
        if layer.activation == "softplus":
            h = backend_of(h).softplus(h)
    return h
