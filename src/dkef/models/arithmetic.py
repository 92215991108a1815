"""The arithmetics in which one and the same log density is computed.

A flow is written once, with operators and the few functions below. In TensorFlow's arithmetic it can be trained; in
NumPy's it is evaluated in float64; on jets it yields its own derivatives. Whatever is tested of one holds for all.
"""

import math
from typing import Any, Protocol

import numpy as np

from dkef.models.protocol import Array
from dkef.models.taylor import Jet

Value = Any  # tf.Tensor, NumPy array or Jet; the last axis is the one that functions act on


class Arithmetic(Protocol):
    """Functions that the operators + - * @ and [..., key] do not cover."""

    def exp(self, a: Value) -> Value: ...

    def tanh(self, a: Value) -> Value: ...

    def relu(self, a: Value) -> Value: ...

    def sum(self, a: Value) -> Value:
        """Sum over the last axis."""
        ...

    def log_sum_exp(self, a: Value) -> Value:
        """log sum exp over the last axis, by subtracting the largest term first."""
        ...

    def unfold(self, a: Value, shape: tuple[int, ...]) -> Value:
        """The last axis reshaped to `shape`, in which -1 stands for the one size that follows."""
        ...


class NumpyArithmetic:
    """Arrays in the precision they come in."""

    def exp(self, a: Array) -> Array:
        return np.exp(a)

    def tanh(self, a: Array) -> Array:
        return np.tanh(a)

    def relu(self, a: Array) -> Array:
        return np.maximum(a, 0.0)

    def sum(self, a: Array) -> Array:
        return np.asarray(a.sum(axis=-1))

    def log_sum_exp(self, a: Array) -> Array:
        largest = a.max(axis=-1)
        return np.asarray(largest + np.log(np.exp(a - largest[..., None]).sum(axis=-1)))

    def unfold(self, a: Array, shape: tuple[int, ...]) -> Array:
        return a.reshape(*a.shape[:-1], *shape)


class JetArithmetic:
    """Values with derivatives. The rectifier's second derivative is 0: its kink, a null set, is ignored."""

    def exp(self, a: Jet) -> Jet:
        e = np.exp(a.value)
        return a.through(e, e, e)

    def tanh(self, a: Jet) -> Jet:
        t = np.tanh(a.value)
        slope = 1.0 - t * t
        return a.through(t, slope, -2.0 * t * slope)

    def relu(self, a: Jet) -> Jet:
        return a.through(np.maximum(a.value, 0.0), (a.value > 0).astype(a.value.dtype))

    def sum(self, a: Jet) -> Jet:
        return Jet(a.value.sum(axis=-1), a.first.sum(axis=-1), a.second.sum(axis=-1))

    def log_sum_exp(self, a: Jet) -> Jet:
        """Derivatives are moments under w = softmax(a): f' = E a', f'' = E a'' + Var a'."""
        value = NUMPY.log_sum_exp(a.value)
        w = np.exp(a.value - value[..., None])
        first = np.einsum("...k,d...k->d...", w, a.first)
        deviation = a.first - first[..., None]
        second = np.einsum("...k,d...k->d...", w, a.second + np.square(deviation))
        return Jet(value, first, second)

    def unfold(self, a: Jet, shape: tuple[int, ...]) -> Jet:
        return Jet(NUMPY.unfold(a.value, shape), NUMPY.unfold(a.first, shape), NUMPY.unfold(a.second, shape))


class TensorFlowArithmetic:
    """Tensors, with TensorFlow's gradients."""

    def __init__(self) -> None:
        import tensorflow as tf  # 5 seconds, and evaluation does without

        self.exp = tf.exp
        self.tanh = tf.tanh
        self.relu = tf.nn.relu
        self._tf = tf

    def sum(self, a: Value) -> Value:
        return self._tf.reduce_sum(a, axis=-1)

    def log_sum_exp(self, a: Value) -> Value:
        return self._tf.reduce_logsumexp(a, axis=-1)

    def unfold(self, a: Value, shape: tuple[int, ...]) -> Value:
        free = a.shape[-1] // -math.prod(shape)  # the size of the axis that is given as -1
        return self._tf.reshape(a, [-1, *(free if size == -1 else size for size in shape)])


NUMPY = NumpyArithmetic()
JETS = JetArithmetic()
