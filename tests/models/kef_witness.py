"""Kernel derivatives, statistics and losses as one would first write them: nested tapes and sums, in float64."""

from typing import NamedTuple

import numpy as np

from dkef.core.arrays import Array
from dkef.models.kef.parameters import Component, KefParameters
from dkef.models.kef.statistics import Statistics


class Taped(NamedTuple):
    """d_i k(x_n, z_m), d_i^2 k(x_n, z_m), and the same of log q0 without m."""

    first: Array  # [n, d, m]
    second: Array  # [n, d, m]
    q0_first: Array  # [n, d]
    q0_second: Array  # [n, d]


def plain_kernel(component: Component, x, y):
    """k(x_n, y_n) of tensors, from differences of features; [n]."""
    import tensorflow as tf

    def features(points):
        h = points
        for layer in component.layers:
            h = h @ layer.weight + layer.bias + (0.0 if layer.skip is None else points @ layer.skip)
            h = tf.math.softplus(h) if layer.activation == "softplus" else h
        return h

    phi, psi = features(x), features(y)
    if component.kind == "linear":
        return component.rho * tf.reduce_sum(phi * psi, -1)
    return component.rho * tf.exp(-tf.reduce_sum((phi - psi) ** 2, -1) / (2 * component.tau))


def taped(function, x: Array) -> tuple[Array, Array]:
    """First and second derivatives of a function of single rows at the rows of x, by nested tapes; [n, d] each."""
    import tensorflow as tf

    point, d = tf.constant(x), x.shape[1]
    with tf.GradientTape(persistent=True) as outer:
        outer.watch(point)
        with tf.GradientTape() as inner:
            inner.watch(point)
            value = function(point)
        slope = inner.gradient(value, point)  # rows are independent, so the gradient of their sum will do
        parts = [slope[:, i] for i in range(d)]
    bends = [outer.gradient(part, point, unconnected_gradients="zero")[:, i] for i, part in enumerate(parts)]
    return slope.numpy(), np.stack(bends, axis=1)


def taped_derivatives(parameters: KefParameters, x: Array) -> Taped:
    import tensorflow as tf

    q0, z, (n, d), m = parameters.q0, parameters.z, x.shape, len(parameters.z)
    other = tf.constant(np.tile(z, (n, 1)))
    pairs = taped(lambda point: sum(plain_kernel(c, point, other) for c in parameters.components), np.repeat(x, m, 0))
    base = taped(lambda point: -tf.reduce_sum(tf.abs(point - q0.mu) ** q0.beta / (2 * q0.sigma**2), -1), x)
    first, second = (np.swapaxes(part.reshape(n, m, d), 1, 2) for part in pairs)
    return Taped(first, second, *base)


def taped_statistics(parameters: KefParameters, x: Array) -> Statistics:
    """Proposition 3, as means over rows."""
    first, second, q0_first, q0_second = taped_derivatives(parameters, x)
    sums = (
        np.einsum("ndm,ndk->mk", first, first),
        np.einsum("ndm,ndk->mk", second, second),
        second.sum(axis=(0, 1)),
        np.einsum("nd,ndm->m", q0_first, first),
        np.einsum("nd,ndm->m", q0_second, second),
    )
    return Statistics(*(part / len(x) for part in sums))


def taped_losses(parameters: KefParameters, x: Array, alpha: Array) -> Array:
    """The score loss at each row; [n]."""
    first, second, q0_first, q0_second = taped_derivatives(parameters, x)
    slope, bend = q0_first + first @ alpha, q0_second + second @ alpha
    return (bend + 0.5 * slope**2).sum(axis=1)
