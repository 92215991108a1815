"""MADE: all conditionals p(x_d | earlier coordinates) from one masked network, Gaussian or mixtures of Gaussians."""

import math
from collections.abc import Mapping, Sequence

import numpy as np

from dkef.core.arrays import Array
from dkef.core.backend import Tensor, backend_of
from dkef.models.flows import masks
from dkef.models.flows.networks import Draw, draw_network, network
from dkef.models.jets import functions_of

LOG_2PI = math.log(2.0 * math.pi)


def draw_made(
    prefix: str,
    order: Array,
    widths: tuple[int, ...],
    degrees: str,
    heads: tuple[int, int],
    rng: np.random.Generator,
    output_bias_std: float = 0.0,
) -> Draw:
    """A network autoregressive in `order` [D]; heads (H, K) give outputs [H, D, K], flattened."""
    dimension = len(order)
    below, connections = order, []
    for width in widths:
        above = masks.hidden_degrees(degrees, width, below, dimension, rng)
        connections.append(masks.hidden_mask(below, above))
        below = above
    kinds, components = heads
    connections.append(np.tile(np.repeat(masks.output_mask(below, order), components, axis=1), kinds))
    return draw_network(prefix, connections, rng, output_bias_std=output_bias_std)


def _parts(a: Tensor, parts: int) -> Sequence[Tensor]:
    """The last axis in equal parts, one after the other."""
    return functions_of(a).split(a, [a.shape[-1] // parts] * parts)


def gaussian_conditionals(
    parameters: Mapping[str, Tensor], prefix: str, x: Tensor, activation: str
) -> tuple[Tensor, Tensor]:
    """Mean and half the log precision of each conditional at x [n, D]; both [n, D]."""
    mean, log_precision = _parts(network(parameters, prefix, x, activation), 2)
    return mean, 0.5 * log_precision


def mixture_conditionals(
    parameters: Mapping[str, Tensor], prefix: str, x: Tensor, activation: str
) -> tuple[Tensor, Tensor, Tensor]:
    """Unnormalised log weights, means and half log precisions of each conditional at x [n, D]; all [n, D, K]."""
    dimension = parameters[f"{prefix}.weight0"].shape[0]
    heads = _parts(network(parameters, prefix, x, activation), 3)
    log_a, mean, log_precision = (functions_of(x).unfold(head, dimension) for head in heads)
    return log_a, mean, 0.5 * log_precision


def mixture_log_density(
    parameters: Mapping[str, Tensor], prefix: str, x: Tensor, activation: str, stable: bool = True
) -> Tensor:
    """log p(x) of a MADE-MOG at x [n, D]; [n].

    Weights are normalised and components summed in the log domain, so that a point far from all components has a
    very negative log density. Without `stable` it is log 0 in float32, as in the authors' code.
    """
    ops = functions_of(x)
    log_a, mean, half_log_precision = mixture_conditionals(parameters, prefix, x, activation)
    z = (x[..., None] - mean) * ops.exp(half_log_precision)
    log_components = log_a + half_log_precision - 0.5 * (z * z)
    if stable:
        log_conditionals = ops.log_sum_exp(log_components) - ops.log_sum_exp(log_a)
    else:  # of tensors or arrays: no derivatives are asked for
        plain = backend_of(x)
        log_total = plain.log(plain.sum(plain.exp(log_a), -1))
        log_conditionals = plain.log(plain.sum(plain.exp(log_components - log_total[..., None]), -1))
    return ops.sum(log_conditionals - 0.5 * LOG_2PI, -1)
