"""Feed-forward networks whose missing connections are zeros.

Masks are used twice: when weights are drawn, and to erase the gradient of what they forbid. A masked weight is
therefore exactly 0 for ever, and the forward pass needs no masks at all.
"""

import itertools
from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np

from dkef.core.arrays import Array
from dkef.core.backend import Tensor
from dkef.models.layers import Layer, features


class Draw(NamedTuple):
    """Initial parameters by name, and arrays of the same shapes with 1 where a parameter is free to move."""

    parameters: dict[str, Array]
    free: dict[str, Array]

    def merge(self, other: "Draw") -> "Draw":
        return Draw(self.parameters | other.parameters, self.free | other.free)


def draw_network(
    prefix: str,
    masks: Sequence[Array],
    rng: np.random.Generator,
    output_bias_free: Array | None = None,
    output_bias_std: float = 0.0,
) -> Draw:
    """Weights N(0, 1 / (fan_in + 1)) under the masks [in, out], biases 0; the output biases may be drawn or held."""
    parameters, free = {}, {}
    for index, mask in enumerate(masks):
        fan_in, units = mask.shape
        weight, bias = f"{prefix}.weight{index}", f"{prefix}.bias{index}"
        parameters[weight] = rng.standard_normal(mask.shape) / np.sqrt(fan_in + 1) * mask
        free[weight] = mask.astype(float)
        parameters[bias], free[bias] = np.zeros(units), np.ones(units)
    if output_bias_free is not None:
        free[bias] = output_bias_free.astype(float)
    parameters[bias] = output_bias_std * rng.standard_normal(units) * free[bias]
    return Draw(parameters, free)


def network(parameters: Mapping[str, Tensor], prefix: str, x: Tensor, activation: str) -> Tensor:
    """Output of a network at x [n, in], with as many hidden layers as it has weights for; [n, out]."""
    count = next(i for i in itertools.count() if f"{prefix}.weight{i}" not in parameters)
    return features(
        x,
        [
            Layer(
                parameters[f"{prefix}.weight{i}"],
                parameters[f"{prefix}.bias{i}"],
                None,
                activation if i < count - 1 else "linear",
            )
            for i in range(count)
        ],
    )
