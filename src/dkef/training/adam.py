"""Adam on one flat vector, in NumPy."""

from dataclasses import dataclass

import numpy as np

from dkef.core.arrays import Array


@dataclass(frozen=True)
class Adam:
    """State of Adam (Kingma and Ba) with its usual constants; a value, replaced at every step."""

    mean: Array
    square: Array
    count: int = 0

    @classmethod
    def start(cls, size: int) -> "Adam":
        return cls(np.zeros(size), np.zeros(size))

    def step(self, theta: Array, gradient: Array, learning_rate: float) -> tuple[Array, "Adam"]:
        """The vector and the state after one step down the gradient."""
        count = self.count + 1
        mean = 0.9 * self.mean + 0.1 * gradient
        square = 0.999 * self.square + 0.001 * gradient**2
        rate = learning_rate * np.sqrt(1 - 0.999**count) / (1 - 0.9**count)
        return theta - rate * mean / (np.sqrt(square) + 1e-8), Adam(mean, square, count)


def clipped(gradient: Array, norm: float, limit: float) -> Array:
    """The gradient, whose norm is given, shortened to the limit where it is longer."""
    return gradient * (limit / norm) if norm > limit else gradient
