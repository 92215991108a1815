"""Adam on one flat vector, in NumPy or TensorFlow."""

from dataclasses import dataclass

import numpy as np

from dkef.core.backend import Tensor, backend_of


@dataclass(frozen=True)
class Adam:
    """State of Adam (Kingma and Ba) with its usual constants; a value, replaced at every step."""

    mean: Tensor  # [P], running mean of the gradients
    square: Tensor  # [P], of their squares
    count: Tensor = 0  # steps taken

    @classmethod
    def start(cls, size: int, dtype: str = "float64") -> "Adam":
        return cls(np.zeros(size, dtype), np.zeros(size, dtype))

    def step(self, theta: Tensor, gradient: Tensor, learning_rate: float) -> tuple[Tensor, "Adam"]:
        """The vector and the state after one step down the gradient."""
        sqrt, count = backend_of(gradient).sqrt, self.count + 1
        mean = 0.9 * self.mean + 0.1 * gradient
        square = 0.999 * self.square + 0.001 * (gradient * gradient)
        rate = learning_rate * sqrt(1 - 0.999**count) / (1 - 0.9**count)
        return theta - rate * mean / (sqrt(square) + 1e-8), Adam(mean, square, count)


def clipped(gradient: Tensor, norm: float, limit: float) -> Tensor:
    """The gradient, whose norm is given, shortened to the limit where it is longer."""
    return gradient * (limit / norm) if norm > limit else gradient
