"""The few array functions that kernel mathematics needs, from NumPy or from TensorFlow.

The mathematics in `jets`, `kernels` and `base_measure` is written once: on NumPy arrays it evaluates a fitted model
in float64 without importing TensorFlow, on tensors it is what training differentiates and compiles.
"""

import functools
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.special import expit

Tensor = Any  # np.ndarray or tf.Tensor: both know +, *, **, @ and indexing with None


@dataclass(frozen=True)
class Backend:
    """Functions of the same meaning in both libraries."""

    exp: Callable[[Tensor], Tensor]
    log: Callable[[Tensor], Tensor]
    abs: Callable[[Tensor], Tensor]
    sign: Callable[[Tensor], Tensor]
    sigmoid: Callable[[Tensor], Tensor]
    softplus: Callable[[Tensor], Tensor]
    maximum: Callable[[Tensor, float], Tensor]
    matmul: Callable[[Tensor, Tensor], Tensor]
    matmul_transposed: Callable[[Tensor, Tensor], Tensor]  # a b' of the last two axes
    concatenate: Callable[[Sequence[Tensor]], Tensor]  # along the last axis
    reshape: Callable[[Tensor, Sequence[int]], Tensor]
    transpose: Callable[[Tensor], Tensor]  # of a matrix
    sum: Callable[[Tensor, int], Tensor]  # over one axis
    mean: Callable[[Tensor, int], Tensor]
    split: Callable[[Tensor, Sequence[int]], Sequence[Tensor]]  # a vector into pieces of given sizes
    constant: Callable[[Tensor], Tensor]  # the same values, not differentiated
    like: Callable[[np.ndarray, Tensor], Tensor]  # an array in the library and precision of the second argument


NUMPY = Backend(
    exp=np.exp,
    log=np.log,
    abs=np.abs,
    sign=np.sign,
    sigmoid=expit,
    softplus=lambda x: np.logaddexp(0.0, x),
    maximum=np.maximum,
    matmul=np.matmul,
    matmul_transposed=lambda a, b: np.matmul(a, np.swapaxes(b, -1, -2)),
    concatenate=lambda parts: np.concatenate(parts, axis=-1),
    reshape=lambda x, shape: np.reshape(x, tuple(shape)),
    transpose=np.transpose,
    sum=lambda x, axis: np.sum(x, axis=axis),
    mean=lambda x, axis: np.mean(x, axis=axis),
    split=lambda x, sizes: np.split(x, np.cumsum(sizes)[:-1]),
    constant=lambda x: x,
    like=lambda values, other: values.astype(other.dtype),
)


@functools.cache
def tensorflow_backend() -> Backend:
    """The same functions on tensors."""
    from dkef.core.tensorflow import tf

    return Backend(
        exp=tf.exp,
        log=tf.math.log,
        abs=tf.abs,
        sign=tf.sign,
        sigmoid=tf.sigmoid,
        softplus=tf.math.softplus,
        maximum=tf.maximum,
        matmul=tf.matmul,
        matmul_transposed=lambda a, b: tf.matmul(a, b, transpose_b=True),
        concatenate=lambda parts: tf.concat(parts, axis=-1),
        reshape=tf.reshape,
        transpose=tf.transpose,
        sum=lambda x, axis: tf.reduce_sum(x, axis=axis),
        mean=lambda x, axis: tf.reduce_mean(x, axis=axis),
        split=lambda x, sizes: tf.split(x, list(sizes)),
        constant=tf.stop_gradient,
        like=lambda values, other: tf.constant(values, dtype=other.dtype),
    )


def backend_of(x: Tensor) -> Backend:
    """The library that an array belongs to."""
    return NUMPY if isinstance(x, np.ndarray) else tensorflow_backend()
