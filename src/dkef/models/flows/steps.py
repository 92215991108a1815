"""The TensorFlow side of maximum likelihood: many Adam steps in one compiled call, and the validation pass."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple, Self

import numpy as np

from dkef.core.arrays import Array
from dkef.models.flows.arithmetic import TensorFlowArithmetic, Value
from dkef.models.flows.density import EPSILON, FlowShape, log_density, transform
from dkef.models.flows.spec import Flow

Moments = tuple[Value, Value]  # mean and variance of each coordinate, [D]

BETA1, BETA2, ADAM_EPSILON = 0.9, 0.999, 1e-8


@dataclass(frozen=True)
class Layout:
    """Where each named parameter lies in one flat vector: Adam is then a handful of operations, not hundreds."""

    shapes: tuple[tuple[str, tuple[int, ...]], ...]

    @classmethod
    def of(cls, parameters: Mapping[str, Array]) -> Self:
        return cls(tuple((name, array.shape) for name, array in parameters.items()))

    @property
    def sizes(self) -> list[int]:
        return [int(np.prod(shape)) for _, shape in self.shapes]

    def pack(self, parameters: Mapping[str, Array]) -> Array:
        return np.concatenate([parameters[name].ravel() for name, _ in self.shapes]).astype(np.float32)

    def unpack(self, theta: Array) -> dict[str, Array]:
        parts = np.split(theta, np.cumsum(self.sizes)[:-1])
        return {name: part.reshape(shape) for (name, shape), part in zip(self.shapes, parts, strict=True)}


class Advanced(NamedTuple):
    """State of Adam after some steps, and the mean training loss along the way."""

    theta: Value
    m: Value
    v: Value
    mean_loss: Value


@dataclass(frozen=True)
class Compiled:
    """Training and validation of one flow, as TensorFlow functions of float32 arrays."""

    # (theta [P], m [P], v [P], iterations done, minibatches [K, B, D], steps to take <= K) -> Advanced
    advance: Callable[..., Advanced]
    # (theta [P], training rows behind batch normalisation [n, D], validation rows [n', D]) -> mean log density
    validate: Callable[..., Value]


def compile_flow(spec: Flow, shape: FlowShape, layout: Layout, free: Array, jit: bool) -> Compiled:
    """Trace, and with `jit` compile, the steps of one flow; `free` [P] is 0 where masks forbid a weight."""
    from dkef.core.tensorflow import tf

    density = TrainedDensity(tf, shape, layout)

    def step(theta: Value, m: Value, v: Value, iteration: Value, x: Value) -> Advanced:
        with tf.GradientTape() as tape:
            tape.watch(theta)
            loss = -tf.reduce_mean(density.log_density(theta, x))
        # The penalty is weight_decay / 2 |theta|^2 over all parameters, as in the MAF code.
        gradient = tape.gradient(loss, theta) * free + spec.weight_decay * theta
        change, m, v = adam(tf, gradient, m, v, tf.cast(iteration + 1, tf.float32))
        return Advanced(theta - spec.learning_rate * change, m, v, loss)

    def advance(theta: Value, m: Value, v: Value, iteration: Value, batches: Value, steps: Value) -> Advanced:
        def body(k: Value, theta: Value, m: Value, v: Value, total: Value) -> tuple[Value, ...]:
            done = step(theta, m, v, iteration + k, batches[k])
            return k + 1, done.theta, done.m, done.v, total + done.mean_loss

        start = (tf.constant(0), theta, m, v, tf.constant(0.0))
        _, theta, m, v, total = tf.while_loop(lambda k, *_: k < steps, body, start)
        return Advanced(theta, m, v, total / tf.cast(steps, tf.float32))

    def validate(theta: Value, rows: Value, valid: Value) -> Value:
        return tf.reduce_mean(density.log_density(theta, valid, density.statistics(theta, rows)))

    def compiled(function: Callable[..., Any], *signature: Any) -> Callable[..., Any]:
        traced = tf.function(function, signature, jit_compile=jit).get_concrete_function()
        return lambda *arrays: traced(*map(tf.convert_to_tensor, arrays))

    vector, count = tf.TensorSpec(free.shape), tf.TensorSpec([], tf.int32)
    rows, minibatches = tf.TensorSpec([None, shape.dimension]), tf.TensorSpec([None, None, shape.dimension])
    return Compiled(
        compiled(advance, vector, vector, vector, count, minibatches, count), compiled(validate, vector, rows, rows)
    )


def adam(tf: Any, gradient: Value, m: Value, v: Value, t: Value) -> tuple[Value, Value, Value]:
    """Step of Adam number t = 1, 2, ... at unit learning rate, and its running means; all [P]."""
    m = BETA1 * m + (1.0 - BETA1) * gradient
    v = BETA2 * v + (1.0 - BETA2) * gradient * gradient
    correction = tf.sqrt(1.0 - BETA2**t) / (1.0 - BETA1**t)
    return correction * m / (tf.sqrt(v) + ADAM_EPSILON), m, v


class TrainedDensity:
    """The log density as a function of the flat parameter vector, in TensorFlow."""

    def __init__(self, tf: Any, shape: FlowShape, layout: Layout) -> None:
        self.tf, self.shape, self.layout = tf, shape, layout
        self.ops = TensorFlowArithmetic()

    def log_density(self, theta: Value, x: Value, statistics: list[Moments] | None = None) -> Value:
        """log p(x) [n]; batch normalisation by the given moments of each layer, or by those of x itself."""
        parameters = self.unpack(theta)

        def normalise_layer(layer: int, u: Value) -> tuple[Value, Value]:
            return normalise(self.tf, parameters, layer, u, statistics[layer] if statistics else moments(self.tf, u))

        return log_density(self.ops, self.shape, parameters, x, normalise_layer)

    def statistics(self, theta: Value, rows: Value) -> list[Moments]:
        """Moments of what leaves each layer when it is fed these rows."""
        if not self.shape.batch_norm:
            return []
        parameters, u, found = self.unpack(theta), rows, []
        for layer in range(self.shape.layers):
            u, _ = transform(self.ops, self.shape, parameters, layer, u)
            found.append(moments(self.tf, u))
            u, _ = normalise(self.tf, parameters, layer, u, found[-1])
        return found

    def unpack(self, theta: Value) -> dict[str, Value]:
        parts = self.tf.split(theta, self.layout.sizes)
        return {
            name: self.tf.reshape(part, shape) for (name, shape), part in zip(self.layout.shapes, parts, strict=True)
        }


def moments(tf: Any, u: Value) -> Moments:
    """Mean and variance (divisor n) of each column of u [n, D]."""
    mean = tf.reduce_mean(u, axis=0)
    return mean, tf.reduce_mean(tf.square(u - mean), axis=0)


def normalise(
    tf: Any, parameters: Mapping[str, Value], layer: int, u: Value, statistics: Moments
) -> tuple[Value, Value]:
    """exp(g) (u - mean) / sqrt(variance + eps) + b [n, D], and its log determinant, a scalar."""
    mean, variance = statistics
    log_slope = parameters[f"layer{layer}.log_gain"] - 0.5 * tf.math.log(variance + EPSILON)
    return (u - mean) * tf.exp(log_slope) + parameters[f"layer{layer}.offset"], tf.reduce_sum(log_slope)
