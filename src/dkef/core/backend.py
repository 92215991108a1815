"""The few array functions that the mathematics needs, from NumPy or from TensorFlow.

A density is written once. On NumPy arrays it evaluates a fitted model in float64 without importing TensorFlow; on
tensors it is what training differentiates and compiles; on jets (`dkef.models.jets`) it gives its own derivatives.
"""

import functools
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from dkef.core.arrays import log_sum_exp

Tensor = Any  # np.ndarray, tf.Tensor or Jet: all know +, -, *, @ and indexing with None


@dataclass(frozen=True)
class Functions:
    """Functions of arrays, tensors and jets."""

    exp: Callable[[Tensor], Tensor]
    tanh: Callable[[Tensor], Tensor]
    relu: Callable[[Tensor], Tensor]
    softplus: Callable[[Tensor], Tensor]
    sum: Callable[[Tensor, int], Tensor]  # over one axis, of a jet counted from the last
    log_sum_exp: Callable[[Tensor], Tensor]  # over the last axis, by subtracting the largest term first
    split: Callable[[Tensor, Sequence[int]], Sequence[Tensor]]  # the last axis into pieces of given sizes
    unfold: Callable[[Tensor, int], Tensor]  # the last axis as a matrix with so many rows


@dataclass(frozen=True)
class Backend(Functions):
    """Functions of arrays and tensors."""

    log: Callable[[Tensor], Tensor]
    sqrt: Callable[[Tensor], Tensor]
    abs: Callable[[Tensor], Tensor]
    sign: Callable[[Tensor], Tensor]
    softplus_with_slope: Callable[[Tensor], tuple[Tensor, Tensor]]
    maximum: Callable[[Tensor, float], Tensor]
    matmul: Callable[[Tensor, Tensor], Tensor]
    matmul_transposed: Callable[[Tensor, Tensor], Tensor]  # a b' of the last two axes
    einsum: Callable[[str, Tensor, Tensor], Tensor]
    concatenate: Callable[[Sequence[Tensor]], Tensor]  # along the last axis
    reshape: Callable[[Tensor, Sequence[int]], Tensor]
    expand_dims: Callable[[Tensor, int], Tensor]  # a new axis at this place
    transpose: Callable[[Tensor], Tensor]  # of a matrix
    mean: Callable[[Tensor, int], Tensor]
    constant: Callable[[Tensor], Tensor]  # the same values, not differentiated
    like: Callable[[np.ndarray, Tensor], Tensor]  # an array in the library and precision of the second argument


def _softplus_with_slope(x: Tensor) -> tuple[Tensor, Tensor]:
    """log(1 + exp(x)) and its derivative from one exponential, which cannot overflow."""
    e = np.exp(-np.abs(x))
    return np.maximum(x, 0.0) + np.log1p(e), np.where(x > 0, 1.0, e) / (1.0 + e)


NUMPY = Backend(
    exp=np.exp,
    tanh=np.tanh,
    relu=lambda x: np.maximum(x, 0.0),
    softplus=lambda x: np.maximum(x, 0.0) + np.log1p(np.exp(-np.abs(x))),
    sum=lambda x, axis: np.sum(x, axis=axis),
    log_sum_exp=lambda x: log_sum_exp(x, axis=-1),
    split=lambda x, sizes: np.split(x, np.cumsum(sizes)[:-1], axis=-1),
    unfold=lambda x, rows: x.reshape(*x.shape[:-1], rows, x.shape[-1] // rows),
    log=np.log,
    sqrt=np.sqrt,
    abs=np.abs,
    sign=np.sign,
    softplus_with_slope=_softplus_with_slope,
    maximum=np.maximum,
    matmul=np.matmul,
    matmul_transposed=lambda a, b: np.matmul(a, np.swapaxes(b, -1, -2)),
    einsum=np.einsum,
    concatenate=lambda parts: np.concatenate(parts, axis=-1),
    reshape=lambda x, shape: np.reshape(x, tuple(shape)),
    expand_dims=np.expand_dims,
    transpose=np.transpose,
    mean=lambda x, axis: np.mean(x, axis=axis),
    constant=lambda x: x,
    like=lambda values, other: values.astype(other.dtype),
)


@functools.cache
def tensorflow_backend() -> Backend:
    """The same functions on tensors."""
    from dkef.core.tensorflow import tf  # 5 seconds, and evaluation does without

    def unfold(x: Tensor, rows: int) -> Tensor:
        leading = [-1 if size is None else size for size in x.shape[:-1]]  # at most the number of rows is not known
        return tf.reshape(x, [*leading, rows, x.shape[-1] // rows])

    return Backend(
        exp=tf.exp,
        tanh=tf.tanh,
        relu=lambda x: tf.nn.relu(x),  # noqa: PLW0108 - loads tf.nn, which few need and takes a quarter of a second
        softplus=tf.math.softplus,
        sum=lambda x, axis: tf.reduce_sum(x, axis=axis),
        log_sum_exp=lambda x: tf.reduce_logsumexp(x, axis=-1),
        split=lambda x, sizes: tf.split(x, list(sizes), axis=-1),
        unfold=unfold,
        log=tf.math.log,
        sqrt=tf.sqrt,
        abs=tf.abs,
        sign=tf.sign,
        softplus_with_slope=lambda x: (tf.math.softplus(x), tf.sigmoid(x)),
        maximum=tf.maximum,
        matmul=tf.matmul,
        matmul_transposed=lambda a, b: tf.matmul(a, b, transpose_b=True),
        einsum=tf.einsum,
        concatenate=lambda parts: tf.concat(parts, axis=-1),
        reshape=tf.reshape,
        expand_dims=tf.expand_dims,
        transpose=tf.transpose,
        mean=lambda x, axis: tf.reduce_mean(x, axis=axis),
        constant=tf.stop_gradient,
        like=lambda values, other: tf.constant(values, dtype=other.dtype),
    )


def backend_of(x: Tensor) -> Backend:
    """The library that an array belongs to."""
    return NUMPY if isinstance(x, np.ndarray | np.generic) else tensorflow_backend()
