"""The loss of a training step as one would first write it: derivatives by automatic differentiation, coordinate by
coordinate, and the gradient by differentiating through the solve."""

from collections.abc import Callable

import tensorflow as tf

from dkef.core.backend import Tensor
from dkef.models.kef.base_measure import base_jet
from dkef.models.kef.graph import KefGraph
from dkef.models.kef.kernels import kernel_matrix
from dkef.models.kef.parameters import KefParameters
from dkef.models.layers import features

Derivatives = tuple[Tensor, Tensor]  # [n, d, m] each


def kernel(parameters: KefParameters, x: Tensor) -> Tensor:
    """k(x_n, z_m); [n, m]."""
    return sum(kernel_matrix(c, features(x, c.layers), features(parameters.z, c.layers)) for c in parameters.components)


def for_each_coordinate(derivatives: Callable[[Tensor], Derivatives], x: Tensor) -> Derivatives:
    """Call with every unit vector in a loop of the graph, which is traced once; results [n, m] become [n, d, m]."""
    signature = (tf.TensorSpec(None, x.dtype), tf.TensorSpec(None, x.dtype))
    first, second = tf.map_fn(derivatives, tf.eye(x.shape[1], dtype=x.dtype), fn_output_signature=signature)
    return tf.transpose(first, (1, 0, 2)), tf.transpose(second, (1, 0, 2))


def by_forward_accumulator(parameters: KefParameters, x: Tensor) -> Derivatives:
    """Two nested forward passes for each coordinate."""

    def along(direction: Tensor) -> Derivatives:
        tangent = tf.broadcast_to(direction, x.shape)
        with tf.autodiff.ForwardAccumulator(x, tangent) as outer:
            with tf.autodiff.ForwardAccumulator(x, tangent) as inner:
                k = kernel(parameters, x)
            slope = inner.jvp(k)
        return slope, outer.jvp(slope)

    return for_each_coordinate(along, x)


def by_nested_tapes(parameters: KefParameters, x: Tensor) -> Derivatives:
    """Nested GradientTapes: a derivative along a direction is the gradient of a gradient in a dummy cotangent."""

    def derivative(f: Callable[[], Tensor], direction: Tensor) -> Tensor:
        dummy = tf.zeros((x.shape[0], parameters.z.shape[0]), x.dtype)
        with tf.GradientTape() as outer:
            outer.watch(dummy)
            with tf.GradientTape() as inner:
                inner.watch(x)
                value = tf.reduce_sum(f() * dummy)
            column = tf.reduce_sum(inner.gradient(value, x) * direction)
        return outer.gradient(column, dummy)

    def along(direction: Tensor) -> Derivatives:
        def slope() -> Tensor:
            return derivative(lambda: kernel(parameters, x), direction)

        return slope(), derivative(slope, direction)

    return for_each_coordinate(along, x)


def step_gradient(
    graph: KefGraph, derivatives: Callable[[KefParameters, Tensor], Derivatives]
) -> Callable[..., Tensor]:
    """Gradient of J on Dv in theta, with tapes all the way through a float64 solve."""

    def gradient(theta: Tensor, fit_rows: Tensor, loss_rows: Tensor) -> Tensor:
        with tf.GradientTape() as tape:
            tape.watch(theta)
            parameters, weights = graph.model(theta)
            n = fit_rows.shape[0]
            first, second = derivatives(parameters, fit_rows)
            q0 = base_jet(parameters.q0, fit_rows)
            Q = tf.einsum("ndm,ndk->mk", first, first) + weights.c * tf.einsum("ndm,ndk->mk", second, second)
            b = tf.einsum("nd,ndm->m", 1.0 + weights.c * q0.second, second) + tf.einsum("nd,ndm->m", q0.first, first)
            Q = tf.cast(Q / n, tf.float64) + tf.cast(weights.alpha, tf.float64) * tf.eye(b.shape[0], dtype=tf.float64)
            L = tf.linalg.cholesky(Q)
            alpha = tf.cast(-tf.linalg.cholesky_solve(L, tf.cast(b / n, tf.float64)[:, None]), theta.dtype)
            first, second = derivatives(parameters, loss_rows)
            q0 = base_jet(parameters.q0, loss_rows)
            slope = q0.first + tf.linalg.matmul(first, alpha)[..., 0]
            bend = q0.second + tf.linalg.matmul(second, alpha)[..., 0]
            loss = tf.reduce_sum(bend + 0.5 * slope**2) / loss_rows.shape[0]
        return tape.gradient(loss, theta)

    return tf.function(gradient, autograph=False)
