"""Who may see whom: orders of the inputs, degrees of the hidden units, and the masks that follow from them.

A unit of degree k depends on inputs of degree at most k; the output of degree k only on inputs of degree below k.
Hence the outputs are the parameters of p(x_k | inputs of lower degree).
"""

import numpy as np

from dkef.core.arrays import Array


def input_order(mode: str, dimension: int, rng: np.random.Generator) -> Array:
    """Degree of each input, a permutation of 1..D: `sequential`, `reversed` or `random`; [D]."""
    degrees = np.arange(1, dimension + 1)
    if mode == "reversed":
        return degrees[::-1].copy()
    return rng.permutation(degrees) if mode == "random" else degrees


def layer_orders(mode: str, dimension: int, layers: int, rng: np.random.Generator) -> Array:
    """Orders of stacked autoregressive layers: each the reverse of the one before, or all random; [layers, D]."""
    first = input_order(mode, dimension, rng)
    if mode == "random":
        rest = [input_order(mode, dimension, rng) for _ in range(1, layers)]
    else:
        rest = [first[:: 1 if layer % 2 == 0 else -1] for layer in range(1, layers)]
    return np.array([first, *rest][:layers], dtype=np.int64).reshape(layers, dimension)


def hidden_degrees(mode: str, width: int, below: Array, dimension: int, rng: np.random.Generator) -> Array:
    """Degrees of a hidden layer above units of degrees `below`; [width].

    `random` draws them uniformly from the smallest degree below to D - 1, `sequential` cycles through 1..D-1. In one
    dimension there is nothing to condition on: every hidden unit has degree 0 and sees no input.
    """
    if dimension == 1:
        return np.zeros(width, dtype=np.int64)
    if mode == "random":
        return rng.integers(below.min(), dimension, size=width)
    return np.arange(width) % (dimension - 1) + 1


def hidden_mask(below: Array, above: Array) -> Array:
    """Connections into a hidden layer: a unit sees degrees up to its own; [len(below), len(above)]."""
    return below[:, None] <= above[None, :]


def output_mask(below: Array, order: Array) -> Array:
    """Connections into the outputs: an output sees only lower degrees than its own; [len(below), D]."""
    return below[:, None] < order[None, :]


def coupling_order(dimension: int, layer: int) -> Array:
    """Degrees 1 (passes unchanged) and 2 (is transformed) of a coupling layer; odd indices pass first; [D]."""
    passes = (np.arange(dimension) + layer) % 2 == 1
    return np.where(passes, 1, 2)
