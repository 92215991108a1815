"""Small kernel exponential families of every kind and depth, for the tests."""

import numpy as np

from dkef.core.streams import rng_for
from dkef.models.kef.parameters import BaseMeasure, Component, KefParameters
from dkef.models.layers import Layer

DEPTHS = (0, 1, 2, 3)
KINDS = ("gaussian", "linear")


def example_layers(rng: np.random.Generator, d: int, depth: int, w: int, top: str = "softplus") -> tuple[Layer, ...]:
    widths = [d] + [w] * depth
    layers = []
    for i in range(depth):
        last = i == depth - 1
        layers.append(
            Layer(
                weight=rng.normal(size=(widths[i], w)) / np.sqrt(widths[i]),
                bias=rng.normal(size=w),
                skip=rng.normal(size=(d, w)) / np.sqrt(d) if last and depth > 1 else None,
                activation=top if last else "softplus",
            )
        )
    return tuple(layers)


def example_component(
    kind: str, depth: int, d: int = 3, w: int = 5, tau: float = 1.7, rho: float = 0.6, top: str = "softplus"
) -> Component:
    rng = rng_for("test component", kind, depth, d, w, top)
    return Component(kind, rho, tau, example_layers(rng, d, depth, w, top))


def example_base(d: int = 3) -> BaseMeasure:
    rng = rng_for("test base measure", d)
    return BaseMeasure(0.3 * rng.normal(size=d), rng.uniform(1.0, 2.0, d), rng.uniform(1.4, 3.0, d))


def example_parameters(components: tuple[Component, ...], d: int = 3, m: int = 7) -> KefParameters:
    rng = rng_for("test parameters", d, m)
    return KefParameters(rng.normal(size=m), rng.normal(size=(m, d)), components, example_base(d))


def example_points(n: int = 6, d: int = 3) -> np.ndarray:
    return rng_for("test points", n, d).normal(size=(n, d))
