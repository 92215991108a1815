"""The log density of a flow: x -> u through invertible layers to a base density, in any arithmetic.

MADE is one autoregressive layer over N(0, I), MADE-MOG a base density without layers; Real NVP, MAF and MAF-MOG stack
layers with batch normalisation after each.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np

from dkef.core.arrays import Array
from dkef.models.flows import masks
from dkef.models.flows.arithmetic import Arithmetic, Value
from dkef.models.flows.coupling import coupling_conditionals, draw_coupling
from dkef.models.flows.made import LOG_2PI, draw_made, gaussian_conditionals, mixture_log_density
from dkef.models.flows.networks import Draw

EPSILON = 1e-5  # added to the variances of batch normalisation, as in the MAF code

Normalise = Callable[[int, Value], tuple[Value, Value]]  # (layer, u) -> batch-normalised u, log determinant


@dataclass(frozen=True)
class FlowShape:
    """What the parameter arrays alone do not say."""

    dimension: int
    transform: str  # autoregressive | coupling
    layers: int
    components: int  # of the MADE-MOG base; 0 is the base N(0, I)
    batch_norm: bool
    activation: str  # tanh | relu
    shift_activation: str  # of the shift networks of coupling layers


def draw_flow(
    shape: FlowShape, widths: tuple[int, ...], degrees: str, input_order: str, rng: np.random.Generator
) -> tuple[Draw, Array]:
    """Initial parameters, and the degree of each coordinate in each layer and in the base; [layers + 1, D]."""
    orders = masks.layer_orders(input_order, shape.dimension, shape.layers + 1, rng)
    drawn = Draw({}, {})
    for layer in range(shape.layers):
        prefix = f"layer{layer}"
        if shape.transform == "coupling":
            orders[layer] = masks.coupling_order(shape.dimension, layer)
            drawn = drawn.merge(draw_coupling(prefix, orders[layer], widths, rng))
        else:
            drawn = drawn.merge(draw_made(prefix, orders[layer], widths, degrees, (2, 1), rng))
        if shape.batch_norm:
            names = (f"{prefix}.log_gain", f"{prefix}.offset")
            zeros = {name: np.zeros(shape.dimension) for name in names}
            drawn = drawn.merge(Draw(zeros, {name: np.ones(shape.dimension) for name in names}))
    if shape.components:
        # Equal components would stay equal: their output biases start at random.
        base = draw_made("base", orders[-1], widths, degrees, (3, shape.components), rng, output_bias_std=1.0)
        drawn = drawn.merge(base)
    return drawn, orders


def conditionals(
    ops: Arithmetic, shape: FlowShape, parameters: Mapping[str, Value], layer: int, x: Value
) -> tuple[Value, Value]:
    """Shift t and log slope a of one layer u = (x - t(x)) exp(a(x)); both [n, D], triangular in the layer's order."""
    prefix = f"layer{layer}"
    if shape.transform == "coupling":
        return coupling_conditionals(ops, parameters, prefix, x, shape.activation, shape.shift_activation)
    return gaussian_conditionals(ops, parameters, prefix, x, shape.activation)


def transform(
    ops: Arithmetic, shape: FlowShape, parameters: Mapping[str, Value], layer: int, x: Value
) -> tuple[Value, Value]:
    """u [n, D] of one layer, before batch normalisation, and its log determinant [n]."""
    t, a = conditionals(ops, shape, parameters, layer, x)
    return (x - t) * ops.exp(a), ops.sum(a)


def base_log_density(ops: Arithmetic, shape: FlowShape, parameters: Mapping[str, Value], u: Value) -> Value:
    """Log density of the base at u [n, D]; [n]."""
    if shape.components:
        return mixture_log_density(ops, parameters, "base", u, shape.activation)
    return -0.5 * ops.sum(u * u) - 0.5 * LOG_2PI * shape.dimension


def log_density(
    ops: Arithmetic, shape: FlowShape, parameters: Mapping[str, Value], x: Value, normalise: Normalise
) -> Value:
    """log p(x) = log base(u(x)) + log |det du/dx| at x [n, D]; [n]."""
    u, log_det = x, 0.0
    for layer in range(shape.layers):
        u, step = transform(ops, shape, parameters, layer, u)
        log_det = step + log_det
        if shape.batch_norm:
            u, step = normalise(layer, u)
            log_det = log_det + step
    return base_log_density(ops, shape, parameters, u) + log_det
