"""The five flows with random parameters, and the same flows in TensorFlow's float64 as a witness."""

from collections.abc import Mapping
from typing import Any

import numpy as np

from dkef.core.arrays import Array
from dkef.core.streams import rng_for
from dkef.models.flows.density import (
    FlowModel,
    FlowShape,
    base_log_density,
    draw_flow,
    log_density,
    normalise,
    stored_statistics,
    transform,
)

SHAPES: Mapping[str, dict[str, Any]] = {
    "made": {"transform": "autoregressive", "layers": 1, "components": 0, "batch_norm": False},
    "made_mog": {"transform": "autoregressive", "layers": 0, "components": 4, "batch_norm": False},
    "real_nvp": {"transform": "coupling", "layers": 3, "components": 0, "batch_norm": True},
    "maf": {"transform": "autoregressive", "layers": 3, "components": 0, "batch_norm": True},
    "maf_mog": {"transform": "autoregressive", "layers": 2, "components": 4, "batch_norm": True},
}


def example(name: str, dimension: int, order: str = "sequential", degrees: str = "random") -> FlowModel:
    """A flow with random weights, biases and batch normalisation, whose density is neither flat nor wild."""
    shape = FlowShape(dimension=dimension, activation="tanh", shift_activation="relu", **SHAPES[name])
    rng = rng_for("test", "flow", name, dimension)
    drawn, orders = draw_flow(shape, (12, 12), degrees, order, rng)
    parameters = {
        key: value + 0.3 * rng.standard_normal(value.shape) * drawn.free[key] for key, value in drawn.parameters.items()
    }
    for layer in range(shape.layers if shape.batch_norm else 0):
        parameters[f"layer{layer}.mean"] = 0.3 * rng.standard_normal(dimension)
        parameters[f"layer{layer}.variance"] = np.exp(0.3 * rng.standard_normal(dimension))
    return FlowModel(shape, parameters, orders)


class Witness:
    """A flow as TensorFlow functions of x, to be differentiated by TensorFlow."""

    def __init__(self, model: FlowModel) -> None:
        import tensorflow as tf

        self.tf, self.model = tf, model
        self.parameters = {name: tf.constant(array) for name, array in model.parameters.items()}
        self.statistics = stored_statistics(model.shape, self.parameters)

    def log_density(self, x: Any) -> Any:
        return log_density(self.model.shape, self.parameters, x, self.statistics)

    def base_log_density(self, u: Any) -> Any:
        return base_log_density(self.model.shape, self.parameters, u)

    def forward(self, x: Any) -> Any:
        for layer in range(self.model.shape.layers):
            x, _ = transform(self.model.shape, self.parameters, layer, x)
            if self.model.shape.batch_norm:
                x, _ = normalise(self.parameters, layer, x, self.statistics[layer])
        return x

    def derivatives(self, x: Array) -> tuple[Array, Array]:
        """Score and the diagonal of the Hessian at each row, by nested tapes, a coordinate at a time."""
        x = self.tf.constant(x)
        with self.tf.GradientTape(persistent=True) as outer:
            outer.watch(x)
            with self.tf.GradientTape() as inner:
                inner.watch(x)
                total = self.tf.reduce_sum(self.log_density(x))
            score = inner.gradient(total, x)
            columns = self.tf.unstack(score, axis=1)
        second = [outer.gradient(column, x)[:, d] for d, column in enumerate(columns)]
        return score.numpy(), np.stack(second, axis=1)

    def jacobian(self, x: Array) -> Array:
        """du/dx; [n, D, D]."""
        x = self.tf.constant(x)
        with self.tf.GradientTape(persistent=True) as tape:
            tape.watch(x)
            columns = self.tf.unstack(self.forward(x), axis=1)
        return np.stack([tape.gradient(column, x) for column in columns], axis=1)
