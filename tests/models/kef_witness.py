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


def plain_kernel(component: Component, x, z):
    """k(x_n, z_m) of tensors, from differences of features; [n, m]."""
    import tensorflow as tf

    def features(points):
        h = points
        for layer in component.layers:
            h = h @ layer.weight + layer.bias + (0.0 if layer.skip is None else points @ layer.skip)
            h = tf.math.softplus(h) if layer.activation == "softplus" else h
        return h

    phi, psi = features(x), features(z)
    if component.kind == "linear":
        return component.rho * tf.matmul(phi, psi, transpose_b=True)
    return component.rho * tf.exp(-tf.reduce_sum((phi[:, None] - psi) ** 2, -1) / (2 * component.tau))


def taped_derivatives(parameters: KefParameters, x: Array) -> Taped:
    import tensorflow as tf

    q0, z = parameters.q0, tf.constant(parameters.z)

    def kernel_and_base(point):
        k = sum(plain_kernel(component, point, z) for component in parameters.components)
        base = -tf.reduce_sum(tf.abs(point - q0.mu) ** q0.beta / (2 * q0.sigma**2), -1, keepdims=True)
        return tf.concat([k, base], 1)

    point, (d, m) = tf.constant(x), (x.shape[1], parameters.z.shape[0])
    with tf.GradientTape(persistent=True) as outer:
        outer.watch(point)
        with tf.GradientTape(persistent=True) as inner:
            inner.watch(point)
            value = kernel_and_base(point)
            columns = [value[:, j] for j in range(m + 1)]  # of independent rows, so that gradients of sums will do
        slopes = [inner.gradient(column, point) for column in columns]
        parts = [[slope[:, i] for slope in slopes] for i in range(d)]
    bends = [[outer.gradient(part, point, unconnected_gradients="zero")[:, i] for part in parts[i]] for i in range(d)]
    first, second = np.stack(slopes, axis=2), np.transpose(np.array(bends), (2, 0, 1))
    return Taped(first[..., :-1], second[..., :-1], first[..., -1], second[..., -1])


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
