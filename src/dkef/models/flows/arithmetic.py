"""The arithmetics in which one and the same log density is computed.

A flow is written once, with operators and the few functions below. In TensorFlow's arithmetic it can be trained; in
NumPy's it is evaluated in float64; on jets it yields its own derivatives. Whatever is tested of one holds for all.
"""

from collections.abc import Sequence
from typing import Any, Protocol

import numpy as np

from dkef.core.arrays import Array
from dkef.models.flows.taylor import Jet

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

    def split(self, a: Value, parts: int) -> Sequence[Value]:
        """The last axis in equal parts, one after the other."""
        ...

    def unfold(self, a: Value, rows: int) -> Value:
        """The last axis as a matrix with so many rows."""
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

    def split(self, a: Array, parts: int) -> Sequence[Array]:
        return np.split(a, parts, axis=-1)

    def unfold(self, a: Array, rows: int) -> Array:
        return a.reshape(*a.shape[:-1], rows, -1)


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

    def split(self, a: Jet, parts: int) -> Sequence[Jet]:
        pieces = (NUMPY.split(array, parts) for array in (a.value, a.first, a.second))
        return [Jet(*piece) for piece in zip(*pieces, strict=True)]

    def unfold(self, a: Jet, rows: int) -> Jet:
        return Jet(NUMPY.unfold(a.value, rows), NUMPY.unfold(a.first, rows), NUMPY.unfold(a.second, rows))


class TensorFlowArithmetic:
    """Tensors, with TensorFlow's gradients."""

    def __init__(self) -> None:
        from dkef.core.tensorflow import tf  # 5 seconds, and evaluation does without

        self.exp = tf.exp
        self.tanh = tf.tanh
        self.relu = tf.nn.relu
        self._tf = tf

    def sum(self, a: Value) -> Value:
        return self._tf.reduce_sum(a, axis=-1)

    def log_sum_exp(self, a: Value) -> Value:
        return self._tf.reduce_logsumexp(a, axis=-1)

    def split(self, a: Value, parts: int) -> Sequence[Value]:
        pieces: Sequence[Value] = self._tf.split(a, parts, axis=-1)
        return pieces

    def unfold(self, a: Value, rows: int) -> Value:
        return self._tf.reshape(a, [-1, rows, a.shape[-1] // rows])


NUMPY = NumpyArithmetic()
JETS = JetArithmetic()
