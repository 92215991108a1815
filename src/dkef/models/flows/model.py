"""Fitted flows: MADE, MADE-MOG, Real NVP, MAF and MAF-MOG, evaluated and sampled by NumPy in float64."""

from collections.abc import Iterator, Mapping
from dataclasses import asdict
from typing import Any, Self

import numpy as np

from dkef.core.arrays import Array
from dkef.models.flows.arithmetic import JETS, NUMPY, Value
from dkef.models.flows.density import EPSILON, FlowShape, conditionals, log_density, transform
from dkef.models.flows.made import mixture_conditionals
from dkef.models.flows.taylor import Jet
from dkef.models.protocol import DensityModel, Evaluation

ROWS = 4096  # rows a block where only values are needed
JET_BYTES = 1 << 20  # of the largest array of derivatives: with more, they leave the cache and take up to twice as long


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
        if not shape.batch_norm:
            return model
        u = np.array(train, dtype=np.float64)
        for layer in range(shape.layers):
            for rows in blocks(len(u), ROWS):
                u[rows], _ = transform(NUMPY, shape, model.parameters, layer, u[rows])
            model.parameters[f"layer{layer}.mean"] = u.mean(axis=0)
            model.parameters[f"layer{layer}.variance"] = u.var(axis=0)
            u, _ = model.normalise(layer, u)
        return model

    @property
    def dimension(self) -> int:
        return self.shape.dimension

    def affine(self, layer: int) -> tuple[Array, Array]:
        """Batch normalisation of a layer as u -> exp(log_slope) (u - mean) + offset: log_slope, [D], and mean."""
        variance = self.parameters[f"layer{layer}.variance"]
        log_slope = self.parameters[f"layer{layer}.log_gain"] - 0.5 * np.log(variance + EPSILON)
        return log_slope, self.parameters[f"layer{layer}.mean"]

    def normalise(self, layer: int, u: Value) -> tuple[Value, Array]:
        log_slope, mean = self.affine(layer)
        return (u - mean) * np.exp(log_slope) + self.parameters[f"layer{layer}.offset"], log_slope.sum()

    def evaluate(self, x: Array, batch: int = 1000) -> Evaluation:
        x = np.asarray(x, dtype=np.float64)
        evaluation = Evaluation(np.empty(len(x)), np.empty(x.shape), np.empty(x.shape))
        for rows in blocks(len(x), min(batch, self.jet_rows())):
            jet = log_density(JETS, self.shape, self.parameters, Jet.seed(x[rows]), self.normalise)
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
            log_p[rows] = log_density(NUMPY, self.shape, self.parameters, x[rows], self.normalise)
        return log_p

    def forward(self, x: Array) -> Array:
        """The base variable u of each row of x; [n, D]."""
        u = np.array(x, dtype=np.float64)
        for layer in range(self.shape.layers):
            u, _ = transform(NUMPY, self.shape, self.parameters, layer, u)
            if self.shape.batch_norm:
                u, _ = self.normalise(layer, u)
        return u

    def inverse(self, u: Array) -> Array:
        """The rows x that `forward` takes to u; [n, D]."""
        for layer in reversed(range(self.shape.layers)):
            if self.shape.batch_norm:
                log_slope, mean = self.affine(layer)
                u = (u - self.parameters[f"layer{layer}.offset"]) * np.exp(-log_slope) + mean
            u = self.solve_layer(layer, u)
        return u

    def solve_layer(self, layer: int, u: Array) -> Array:
        """x with u = (x - t(x)) exp(a(x)), degree after degree: t and a of degree k depend on lower degrees only."""
        x = np.zeros_like(u)
        for degree in np.unique(self.orders[layer]):
            now = self.orders[layer] == degree
            t, a = conditionals(NUMPY, self.shape, self.parameters, layer, x)
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
            conditionals = mixture_conditionals(NUMPY, self.parameters, "base", u, self.shape.activation)
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


def blocks(n: int, rows: int) -> Iterator[slice]:
    """0..n in consecutive slices of at most `rows`."""
    return (slice(start, min(start + rows, n)) for start in range(0, n, rows))
