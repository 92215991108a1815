"""Real NVP's coupling layer: half the coordinates pass, the others are shifted and scaled by functions of them."""

from collections.abc import Mapping
from itertools import pairwise

import numpy as np

from dkef.core.arrays import Array
from dkef.core.backend import Tensor
from dkef.models.flows.networks import Draw, draw_network, network


def draw_coupling(prefix: str, order: Array, widths: tuple[int, ...], rng: np.random.Generator) -> Draw:
    """Two networks, for scale and shift, from the coordinates of degree 1 to those of degree 2.

    Inputs and outputs of the other half are masked, the output biases too: what passes, passes unchanged.
    """
    sizes = (len(order), *widths, len(order))
    connections = [np.ones(shape, dtype=bool) for shape in pairwise(sizes)]
    connections[0] &= (order == 1)[:, None]
    connections[-1] &= (order == 2)[None, :]
    scale, shift = (
        draw_network(f"{prefix}.{part}", connections, rng, output_bias_free=order == 2) for part in ("scale", "shift")
    )
    return scale.merge(shift)


def coupling_conditionals(
    parameters: Mapping[str, Tensor], prefix: str, x: Tensor, activation: str, shift_activation: str
) -> tuple[Tensor, Tensor]:
    """Shift t and negative log scale -s at x [n, D], both [n, D] and 0 for the coordinates that pass."""
    s = network(parameters, f"{prefix}.scale", x, activation)
    t = network(parameters, f"{prefix}.shift", x, shift_activation)
    return t, -s
