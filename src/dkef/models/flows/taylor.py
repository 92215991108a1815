"""Second-order Taylor arithmetic: a value with its first and second derivative in each of D directions."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from dkef.core.arrays import Array


@dataclass(frozen=True, slots=True)
class Jet:
    """A function of x in R^D at n points: value [n, ...], d/dx_d and d^2/dx_d^2, both [D, n, ...].

    No mixed derivatives, hence no Hessian: D directions cost D + 1 forward passes, and a nonlinearity is evaluated
    once a point, not once a direction. Derivatives may have 1 in place of n while they are the same at all points.
    """

    value: Array
    first: Array
    second: Array

    __array_ufunc__ = None  # array * jet must come to Jet.__rmul__

    @classmethod
    def seed(cls, x: Array) -> Jet:
        """The identity function at x [n, D]."""
        directions = np.eye(x.shape[1])[:, None, :]
        return cls(x, directions, np.zeros_like(directions))

    def through(self, value: Array, slope: Array, bend: Array | float | None = None) -> Jet:
        """f(self), given f, f' and f'' at self.value; no `bend` where f'' is 0."""
        second = slope * self.second
        if bend is not None:
            second += bend * np.square(self.first)
        return Jet(value, slope * self.first, second)

    def __add__(self, other: Any) -> Jet:
        if isinstance(other, Jet):
            return Jet(self.value + other.value, self.first + other.first, self.second + other.second)
        return Jet(self.value + other, self.first, self.second)

    def __mul__(self, other: Any) -> Jet:
        if not isinstance(other, Jet):
            return Jet(self.value * other, self.first * other, self.second * other)
        if other is self:
            return self.through(self.value * self.value, 2.0 * self.value, 2.0)
        first = self.first * other.value + self.value * other.first
        second = self.second * other.value + self.value * other.second + 2.0 * (self.first * other.first)
        return Jet(self.value * other.value, first, second)

    def __matmul__(self, W: Array) -> Jet:
        return Jet(self.value @ W, _product(self.first, W), _product(self.second, W))

    __radd__ = __add__
    __rmul__ = __mul__

    def __neg__(self) -> Jet:
        return Jet(-self.value, -self.first, -self.second)

    def __sub__(self, other: Any) -> Jet:
        return self.__add__(-other)

    def __rsub__(self, other: Any) -> Jet:
        return self.__neg__().__add__(other)

    def __getitem__(self, key: Any) -> Jet:
        """Part of the trailing axes; the key begins with `...`."""
        return Jet(self.value[key], self.first[key], self.second[key])


def _product(a: Array, W: Array) -> Array:
    """a @ W as one matrix product; NumPy would make a call for each direction."""
    return (a.reshape(-1, a.shape[-1]) @ W).reshape(*a.shape[:-1], W.shape[1])
