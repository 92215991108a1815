"""Second-order forward arithmetic: a function's value with its first and second derivative in each coordinate.

Every coordinate d carries (h, d_d h, d_d^2 h) through a computation. Affine maps act on all three alike; a function s
gives (s(h), s'(h) d_d h, s''(h) (d_d h)^2 + s'(h) d_d^2 h). There are no mixed derivatives, hence no Hessian: d
coordinates cost about 2 d + 1 evaluations, and s is evaluated once a point, not once a coordinate. The same holds along
any directions u, with the derivatives u'grad h and u'Hess(h) u: few of them cost little, however many coordinates.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from dkef.core.backend import Functions, Tensor, backend_of


@dataclass(frozen=True, slots=True)
class Jet:
    """A function of x in R^d at n points, in NumPy or TensorFlow.

    While the function is still affine its derivatives are the same at every point: their axis of points is then 1, and
    broadcasts. Numbers and arrays that meet a jet are constants: they have no axis of points, or one of length 1.

    The axis of coordinates is 1 where products with a matrix for each point follow, and 0 where NumPy works on few
    columns: [d, n, 11] times [n, 11] is a third faster than [n, d, 11] times [n, 1, 11].
    """

    value: Tensor  # [n, ...]
    first: Tensor  # [n or 1, d, ...], or [d, n or 1, ...]
    second: Tensor  # the same; None is the 0 of an affine map
    axis: int = 1  # of the coordinates in the derivatives
    identity: bool = False  # the function is x itself, along its coordinates: products with it are known

    __array_ufunc__ = None  # array * jet must come to Jet.__rmul__

    @staticmethod
    def seed(x: Tensor, axis: int = 1) -> Jet:
        """The identity function at x [n, d]."""
        return Jet(x, backend_of(x).like(np.expand_dims(np.eye(x.shape[1]), 1 - axis), x), None, axis, True)

    @staticmethod
    def along(x: Tensor, directions: Tensor) -> Jet:
        """The identity function at x [n, d] with derivatives along directions [n, s, d] in place of coordinates."""
        return Jet(x, directions, None)

    @property
    def shape(self) -> Any:
        return self.value.shape

    def lifted(self, a: Tensor) -> Tensor:
        """A number for each point, [n, ...], with an axis for the coordinates: [n, 1, ...] or [1, n, ...]."""
        return backend_of(a).expand_dims(a, self.axis)

    def through(self, value: Tensor, slope: Tensor, bend: Tensor = None) -> Jet:
        """f(self), given f, and f' and f'' lifted, at self.value; no `bend` where f'' is 0."""
        second = None if bend is None else bend * (self.first * self.first)  # TensorFlow is slow on gradients of **2
        if second is None:
            second = None if self.second is None else slope * self.second
        elif self.second is not None:
            second += slope * self.second  # in place on arrays, whose buffers should stay few and in the cache
        return Jet(value, slope * self.first, second, self.axis)

    def each(self, linear: Callable[[Tensor], Tensor]) -> Jet:
        """A linear function of the trailing axes, applied to the value and to its derivatives."""
        value, first = linear(self.value), linear(self.first)
        return Jet(value, first, None if self.second is None else linear(self.second), self.axis)

    def __add__(self, other: Any) -> Jet:
        if not isinstance(other, Jet):
            return Jet(self.value + other, self.first, self.second, self.axis)
        value, first = self.value + other.value, self.first + other.first
        second = other.second if self.second is None else self.second
        if self.second is not None and other.second is not None:
            second = self.second + other.second
        elif second is not None and second.shape[2:] != first.shape[2:]:
            second = second + 0.0 * first
        return Jet(value, first, second, self.axis)

    def __mul__(self, other: Any) -> Jet:
        if not isinstance(other, Jet):
            return self.each(lambda part: part * other)
        a, b = self.lifted(self.value), self.lifted(other.value)
        if other is self:
            return self.through(self.value * self.value, 2.0 * a, 2.0)
        second = 2.0 * (self.first * other.first)
        if self.second is not None:
            second = second + self.second * b
        if other.second is not None:
            second = second + a * other.second
        return Jet(self.value * other.value, self.first * b + a * other.first, second, self.axis)

    def __matmul__(self, W: Tensor) -> Jet:
        value, first = self.value @ W, flat_matmul(self.first, W)
        return Jet(value, first, None if self.second is None else flat_matmul(self.second, W), self.axis)

    __radd__ = __add__
    __rmul__ = __mul__

    def __neg__(self) -> Jet:
        return self.each(lambda part: -part)

    def __sub__(self, other: Any) -> Jet:
        return self.__add__(-other)

    def __rsub__(self, other: Any) -> Jet:
        return self.__neg__().__add__(other)

    def __getitem__(self, key: Any) -> Jet:
        """Part of the trailing axes; the key begins with `...`."""
        return self.each(lambda part: part[key])


def input_product(x: Tensor, W: Tensor) -> Tensor:
    """x W for a network's input x; where it is a jet along coordinates, the derivatives are W and need no product."""
    if isinstance(x, Jet) and x.identity:
        return Jet(x.value @ W, W[None] if x.axis else W[:, None], None, x.axis)
    return x @ W


def flat_matmul(a: Tensor, W: Tensor) -> Tensor:
    """a [..., v] times W [v, w] as one flat product, which is faster than many small ones; returns [..., w]."""
    ops = backend_of(a)
    return ops.reshape(ops.matmul(ops.reshape(a, (-1, a.shape[-1])), W), (*a.shape[:-1], W.shape[1]))


def _exp(a: Jet) -> Jet:
    value = backend_of(a.value).exp(a.value)
    e = a.lifted(value)
    return a.through(value, e, e)


def _tanh(a: Jet) -> Jet:
    t = backend_of(a.value).tanh(a.value)
    slope = 1.0 - t * t
    return a.through(t, a.lifted(slope), a.lifted(-2.0 * t * slope))


def _relu(a: Jet) -> Jet:
    """The rectifier's second derivative is 0: its kink, a null set, is ignored."""
    ops = backend_of(a.value)
    value = ops.relu(a.value)
    return a.through(value, a.lifted(ops.sign(value)))


def _softplus(a: Jet) -> Jet:
    value, slope = backend_of(a.value).softplus_with_slope(a.value)
    slope = a.lifted(slope)
    return a.through(value, slope, slope * (1.0 - slope))


def _log_sum_exp(a: Jet) -> Jet:
    """Derivatives are moments under w = softmax(a): f' = E a', f'' = E a'' + Var a'."""
    ops = backend_of(a.value)
    value = ops.log_sum_exp(a.value)
    w = a.lifted(ops.exp(a.value - value[..., None]))
    first = ops.einsum("...k,...k->...", w, a.first)
    deviation = a.first - first[..., None]
    spread = deviation * deviation
    second = ops.einsum("...k,...k->...", w, spread if a.second is None else a.second + spread)
    return Jet(value, first, second, a.axis)


def _split(a: Jet, sizes: Any) -> list[Jet]:
    """Pieces of the last axis."""
    split = backend_of(a.value).split
    seconds = [None] * len(sizes) if a.second is None else split(a.second, sizes)
    pieces = zip(split(a.value, sizes), split(a.first, sizes), seconds, strict=True)
    return [Jet(*parts, a.axis) for parts in pieces]


JETS = Functions(
    exp=_exp,
    tanh=_tanh,
    relu=_relu,
    softplus=_softplus,
    sum=lambda a, axis: a.each(lambda part: backend_of(part).sum(part, axis)),
    log_sum_exp=_log_sum_exp,
    split=_split,
    unfold=lambda a, rows: a.each(lambda part: backend_of(part).unfold(part, rows)),
)


def functions_of(x: Tensor) -> Functions:
    """Functions of the jet or of the library that an array belongs to."""
    return JETS if isinstance(x, Jet) else backend_of(x)
