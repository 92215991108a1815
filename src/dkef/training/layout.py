"""Where each named parameter lies in the one flat vector that training moves."""

import math
from collections.abc import Collection, Mapping
from dataclasses import dataclass

import numpy as np

from dkef.core.arrays import Array
from dkef.core.backend import Tensor, backend_of


@dataclass(frozen=True)
class Layout:
    """Shapes of the trained quantities, in their order in the vector, and the values of those that are not trained.

    With one vector an optimiser step is a handful of operations, not hundreds.
    """

    shapes: dict[str, tuple[int, ...]]
    constants: dict[str, Array]

    @classmethod
    def of(cls, values: Mapping[str, Array], frozen: Collection[str] = ()) -> "Layout":
        return cls(
            {name: value.shape for name, value in values.items() if name not in frozen},
            {name: value for name, value in values.items() if name in frozen},
        )

    @property
    def sizes(self) -> list[int]:
        return [math.prod(shape) for shape in self.shapes.values()]

    def pack(self, values: Mapping[str, Array]) -> Array:
        """The trained quantities as one vector, in float64."""
        return np.concatenate([np.ravel(values[name]) for name in self.shapes]).astype(np.float64)

    def unpack(self, theta: Tensor) -> dict[str, Tensor]:
        """All quantities by name, of the library and precision of theta."""
        ops = backend_of(theta)
        pieces = ops.split(theta, self.sizes)
        named = {k: ops.reshape(piece, shape) for (k, shape), piece in zip(self.shapes.items(), pieces, strict=True)}
        return named | {name: ops.like(value, theta) for name, value in self.constants.items()}

    def mask(self, *prefixes: str) -> Array:
        """1 where the vector holds a quantity whose name starts with one of the prefixes, else 0."""
        flags = [
            np.full(size, float(name.startswith(prefixes))) for name, size in zip(self.shapes, self.sizes, strict=True)
        ]
        return np.concatenate(flags)
