"""The density of a flow: x -> u through invertible layers to a base density, on arrays, tensors and jets.

MADE is one autoregressive layer over N(0, I), MADE-MOG a base density without layers; Real NVP, MAF and MAF-MOG stack
layers with batch normalisation after each.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Self

import numpy as np

from dkef.core.arrays import Array, blocks
from dkef.core.backend import NUMPY, Tensor, backend_of
from dkef.models.flows import masks
from dkef.models.flows.coupling import coupling_conditionals, draw_coupling
from dkef.models.flows.made import LOG_2PI, draw_made, gaussian_conditionals, mixture_conditionals, mixture_log_density
from dkef.models.flows.networks import Draw
from dkef.models.jets import Jet, functions_of
from dkef.models.protocol import DensityModel, Evaluation

EPSILON = 1e-5  # added to the variances of batch normalisation, as in the MAF code
ROWS = 2048  # rows a block where only values are needed: arrays of a megabyte, which the system need not give anew
JET_BYTES = 1 << 20  # of the largest array of derivatives: with more, they leave the cache and take up to twice as long

Moments = tuple[Tensor, Tensor]  # mean and variance of each coordinate, [D]


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


def conditionals(shape: FlowShape, parameters: Mapping[str, Tensor], layer: int, x: Tensor) -> tuple[Tensor, Tensor]:
    """Shift t and log slope a of one layer u = (x - t(x)) exp(a(x)); both [n, D], triangular in the layer's order."""
    prefix = f"layer{layer}"
    if shape.transform == "coupling":
        return coupling_conditionals(parameters, prefix, x, shape.activation, shape.shift_activation)
    return gaussian_conditionals(parameters, prefix, x, shape.activation)


def transform(shape: FlowShape, parameters: Mapping[str, Tensor], layer: int, x: Tensor) -> tuple[Tensor, Tensor]:
    """u [n, D] of one layer, before batch normalisation, and its log determinant [n]."""
    t, a = conditionals(shape, parameters, layer, x)
    return (x - t) * functions_of(a).exp(a), functions_of(a).sum(a, -1)


def moments(u: Tensor) -> Moments:
    """Mean and variance (divisor n) of each column of u [n, D]."""
    ops = backend_of(u)
    mean = ops.mean(u, 0)
    centred = u - mean
    return mean, ops.mean(centred * centred, 0)


def normalise(parameters: Mapping[str, Tensor], layer: int, u: Tensor, statistics: Moments) -> tuple[Tensor, Tensor]:
    """Batch normalisation exp(g) (u - mean) / sqrt(variance + eps) + b [n, D], and its log determinant, a scalar."""
    mean, log_slope = affine(parameters, layer, statistics)
    ops = backend_of(mean)
    return (u - mean) * ops.exp(log_slope) + parameters[f"layer{layer}.offset"], ops.sum(log_slope, -1)


def affine(parameters: Mapping[str, Tensor], layer: int, statistics: Moments) -> tuple[Tensor, Tensor]:
    """Mean and log slope of batch normalisation; both [D]."""
    mean, variance = statistics
    return mean, parameters[f"layer{layer}.log_gain"] - 0.5 * backend_of(variance).log(variance + EPSILON)


def layer_statistics(
    shape: FlowShape, parameters: Mapping[str, Tensor], rows: Tensor, through: Callable[[int, Tensor], Tensor]
) -> list[Moments]:
    """Moments of what leaves each layer when the flow is fed these rows; `through` is the transform of a layer."""
    u, found = rows, []
    for layer in range(shape.layers if shape.batch_norm else 0):
        u = through(layer, u)
        found.append(moments(u))
        u, _ = normalise(parameters, layer, u, found[-1])
    return found


def stored_statistics(shape: FlowShape, parameters: Mapping[str, Tensor]) -> list[Moments]:
    """Moments behind the batch normalisation of each layer of a fitted flow, which are among its parameters."""
    layers = range(shape.layers if shape.batch_norm else 0)
    return [(parameters[f"layer{layer}.mean"], parameters[f"layer{layer}.variance"]) for layer in layers]


def base_log_density(shape: FlowShape, parameters: Mapping[str, Tensor], u: Tensor, stable: bool = True) -> Tensor:
    """Log density of the base at u [n, D]; [n]."""
    if shape.components:
        return mixture_log_density(parameters, "base", u, shape.activation, stable)
    return -0.5 * functions_of(u).sum(u * u, -1) - 0.5 * LOG_2PI * shape.dimension


def log_density(
    shape: FlowShape, parameters: Mapping[str, Tensor], x: Tensor, statistics: Sequence[Moments] | None,
    stable: bool = True,
) -> Tensor:  # fmt: skip
    """log p(x) = log base(u(x)) + log |det du/dx| at x [n, D]; [n].

    Batch normalisation is by the given moments of each layer, or by those of x itself, as in training.
    """
    u, log_det = x, 0.0
    for layer in range(shape.layers):
        u, step = transform(shape, parameters, layer, u)
        log_det = step + log_det
        if shape.batch_norm:
            u, step = normalise(parameters, layer, u, statistics[layer] if statistics else moments(u))
            log_det = log_det + step
    return base_log_density(shape, parameters, u, stable) + log_det


class FlowModel(DensityModel):
    """A fitted flow, evaluated by NumPy in float64; batch normalisation uses the statistics in the arrays.

    Rectifiers (Real NVP's shift networks) bend nowhere but at their kinks, which the curvature ignores.
    """

    def __init__(self, shape: FlowShape, parameters: Mapping[str, Array], orders: Array) -> None:
        self.shape = shape
        self.parameters = {name: np.asarray(array, dtype=np.float64) for name, array in parameters.items()}
        self.orders = np.asarray(orders)  # [layers + 1, D], degree of each coordinate in each layer and in the base

    @classmethod
    def with_statistics(cls, shape: FlowShape, parameters: Mapping[str, Array], orders: Array, train: Array) -> Self:
        """The model whose batch normalisation uses the means and variances over all rows of train [n, D]."""
        model = cls(shape, parameters, orders)

        def through(layer: int, u: Array) -> Array:
            parts = [transform(shape, model.parameters, layer, u[rows])[0] for rows in blocks(len(u), ROWS)]
            return np.concatenate(parts)

        found = layer_statistics(shape, model.parameters, np.asarray(train, dtype=np.float64), through)
        for layer, (mean, variance) in enumerate(found):
            model.parameters |= {f"layer{layer}.mean": mean, f"layer{layer}.variance": variance}
        return model

    @property
    def dimension(self) -> int:
        return self.shape.dimension

    @property
    def statistics(self) -> list[Moments]:
        return stored_statistics(self.shape, self.parameters)

    def evaluate(self, x: Array, batch: int = 1000) -> Evaluation:
        x = np.asarray(x, dtype=np.float64)
        evaluation = Evaluation(np.empty(len(x)), np.empty(x.shape), np.empty(x.shape))
        for rows in blocks(len(x), min(batch, self.jet_rows())):
            jet: Jet = log_density(self.shape, self.parameters, Jet.seed(x[rows], axis=0), self.statistics)
            evaluation.log_density[rows] = jet.value
            evaluation.score[rows] = jet.first.T
            evaluation.curvature[rows] = jet.second.T
        return evaluation

    def jet_rows(self) -> int:
        """Rows a block such that one array of derivatives, [D, rows, widest layer], has JET_BYTES."""
        widest = max(int(array.shape[-1]) for array in self.parameters.values())
        return max(1, JET_BYTES // (8 * self.dimension * widest))

    def log_density(self, x: Array) -> Array:
        x = np.asarray(x, dtype=np.float64)
        log_p = np.empty(len(x))
        for rows in blocks(len(x), ROWS):
            log_p[rows] = log_density(self.shape, self.parameters, x[rows], self.statistics)
        return log_p

    def forward(self, x: Array) -> Array:
        """The base variable u of each row of x; [n, D]."""
        u = np.array(x, dtype=np.float64)
        for layer in range(self.shape.layers):
            u, _ = transform(self.shape, self.parameters, layer, u)
            if self.shape.batch_norm:
                u, _ = normalise(self.parameters, layer, u, self.statistics[layer])
        return u

    def inverse(self, u: Array) -> Array:
        """The rows x that `forward` takes to u; [n, D]."""
        for layer in reversed(range(self.shape.layers)):
            if self.shape.batch_norm:
                mean, log_slope = affine(self.parameters, layer, self.statistics[layer])
                u = (u - self.parameters[f"layer{layer}.offset"]) * np.exp(-log_slope) + mean
            u = self.solve_layer(layer, u)
        return u

    def solve_layer(self, layer: int, u: Array) -> Array:
        """x with u = (x - t(x)) exp(a(x)), degree after degree: t and a of degree k depend on lower degrees only."""
        x = np.zeros_like(u)
        for degree in np.unique(self.orders[layer]):
            now = self.orders[layer] == degree
            t, a = conditionals(self.shape, self.parameters, layer, x)
            x[:, now] = t[:, now] + u[:, now] * np.exp(-a[:, now])
        return x

    def sample(self, n: int, rng: np.random.Generator) -> Array:
        noise = rng.standard_normal((n, self.dimension))
        choice = rng.random((n, self.dimension)) if self.shape.components else noise
        x = np.empty_like(noise)
        for rows in blocks(n, ROWS):
            x[rows] = self.inverse(self.base_sample(noise[rows], choice[rows]))
        return x

    def base_sample(self, noise: Array, choice: Array) -> Array:
        """Base draws made of standard normal `noise` and uniform `choice` of components, both [n, D]."""
        if not self.shape.components:
            return noise
        u = np.zeros_like(noise)
        for d in np.argsort(self.orders[-1]):
            conditionals = mixture_conditionals(self.parameters, "base", u, self.shape.activation)
            log_a, mean, half_log_precision = (part[:, d] for part in conditionals)  # [n, K]
            weights = np.exp(log_a - NUMPY.log_sum_exp(log_a)[:, None])
            # The last component takes what rounding leaves: no cumulative weight is needed for it.
            k = (choice[:, d, None] > np.cumsum(weights[:, :-1], axis=1)).sum(axis=1)
            row = np.arange(len(u))
            u[:, d] = mean[row, k] + noise[:, d] * np.exp(-half_log_precision[row, k])
        return u

    def arrays(self) -> dict[str, Array]:
        return self.parameters | {"orders": self.orders}

    def settings(self) -> dict[str, Any]:
        return asdict(self.shape)

    @classmethod
    def restore(cls, settings: Mapping[str, Any], arrays: Mapping[str, Array]) -> Self:
        parameters = {name: array for name, array in arrays.items() if name != "orders"}
        return cls(FlowShape(**settings), parameters, arrays["orders"])
