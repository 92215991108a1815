"""The TensorFlow side of maximum likelihood: many Adam steps in one compiled call, and the validation pass."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

from dkef.core.arrays import Array
from dkef.core.backend import Tensor
from dkef.models.flows.density import FlowShape, layer_statistics, log_density, transform
from dkef.models.flows.spec import Flow
from dkef.training.adam import Adam
from dkef.training.layout import Layout


class Advanced(NamedTuple):
    """State of Adam after some steps, and the mean training loss along the way."""

    theta: Tensor
    mean: Tensor
    square: Tensor
    mean_loss: Tensor


@dataclass(frozen=True)
class Compiled:
    """Training and validation of one flow, as TensorFlow functions of float32 arrays."""

    # (theta [P], Adam's mean [P] and square [P], steps done, minibatches [K, B, D], steps to take <= K) -> Advanced
    advance: Callable[..., Advanced]
    # (theta [P], training rows behind batch normalisation [n, D], validation rows [n', D]) -> mean log density
    validate: Callable[..., Tensor]


def compile_flow(spec: Flow, shape: FlowShape, layout: Layout, free: Array, jit: bool) -> Compiled:
    """Trace, and with `jit` compile, the steps of one flow; `free` [P] is 0 where masks forbid a weight."""
    from dkef.core.tensorflow import tf

    def step(theta: Tensor, adam: Adam, x: Tensor) -> tuple[Tensor, Adam, Tensor]:
        with tf.GradientTape() as tape:
            tape.watch(theta)
            loss = -tf.reduce_mean(log_density(shape, layout.unpack(theta), x, None, spec.stable_mixture))
        # The penalty is weight_decay / 2 |theta|^2 over all parameters, as in the MAF code.
        gradient = tape.gradient(loss, theta) * free + spec.weight_decay * theta
        return *adam.step(theta, gradient, spec.learning_rate), loss

    def advance(theta: Tensor, mean: Tensor, square: Tensor, done: Tensor, batches: Tensor, steps: Tensor) -> Advanced:
        def body(k: Tensor, theta: Tensor, mean: Tensor, square: Tensor, total: Tensor) -> tuple[Tensor, ...]:
            theta, adam, loss = step(theta, Adam(mean, square, tf.cast(done + k, tf.float32)), batches[k])
            return k + 1, theta, adam.mean, adam.square, total + loss

        start = (tf.constant(0), theta, mean, square, tf.constant(0.0))
        _, theta, mean, square, total = tf.while_loop(lambda k, *_: k < steps, body, start)
        return Advanced(theta, mean, square, total / tf.cast(steps, tf.float32))

    def validate(theta: Tensor, rows: Tensor, valid: Tensor) -> Tensor:
        parameters = layout.unpack(theta)
        statistics = layer_statistics(
            shape, parameters, rows, lambda layer, u: transform(shape, parameters, layer, u)[0]
        )
        return tf.reduce_mean(log_density(shape, parameters, valid, statistics, spec.stable_mixture))

    def compiled(function: Callable[..., Any], *signature: Any) -> Callable[..., Any]:
        # No branch depends on a tensor; to look for one would take a second.
        traced = tf.function(function, signature, autograph=False, jit_compile=jit).get_concrete_function()
        return lambda *arrays: traced(*map(tf.convert_to_tensor, arrays))

    vector, count = tf.TensorSpec(free.shape), tf.TensorSpec([], tf.int32)
    rows, minibatches = tf.TensorSpec([None, shape.dimension]), tf.TensorSpec([None, None, shape.dimension])
    return Compiled(
        compiled(advance, vector, vector, vector, count, minibatches, count), compiled(validate, vector, rows, rows)
    )
