"""The feature network, on arrays, tensors or jets, forward and backward."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from dkef.core.backend import Tensor, backend_of
from dkef.models.jets import Jet, functions_of, input_product


@dataclass(frozen=True)
class Layer:
    """h -> activation(h weight + bias + x skip), with x the network's own input."""

    weight: Tensor  # [fan_in, width]
    bias: Tensor  # [width]
    skip: Tensor | None  # [d, width], or None
    activation: str  # softplus | tanh | relu | linear


def affine(layer: Layer, h: Tensor, x: Tensor) -> Tensor:
    """h weight + bias + x skip, before the activation."""
    value = h @ layer.weight + layer.bias
    return value if layer.skip is None else value + input_product(x, layer.skip)


def features(x: Tensor, layers: Sequence[Layer]) -> Tensor:
    """phi(x) [n, w] for x [n, d], which may be a jet; without layers phi is the identity."""
    functions, h = functions_of(x), x
    for layer in layers:
        h = affine(layer, h, x)
        if layer.activation != "linear":
            h = getattr(functions, layer.activation)(h)
    return h


def feature_jet(x: Tensor, layers: Sequence[Layer], directions: Tensor | None = None) -> Jet:
    """phi(x) with its derivatives in each coordinate, for x [n, d]; zeros of an affine phi are spelt out.

    With directions [n, s, d] they are along these.
    """
    jet: Jet = features(Jet.seed(x) if directions is None else Jet.along(x, directions), layers)
    return Jet(jet.value, jet.first, 0.0 * jet.first if jet.second is None else jet.second)


def features_and_pullback(x: Tensor, layers: Sequence[Layer]) -> tuple[Tensor, Callable[[Tensor], Tensor]]:
    """phi(x) [n, w], and the map that takes v [n, w] to the gradient of v.phi in x [n, d].

    Layers without relu only. Reverse differentiation costs two passes, where jets cost 2 d + 1.
    """
    ops, phi, slopes = backend_of(x), x, []
    for layer in layers:
        phi, slope = affine(layer, phi, x), 1.0
        if layer.activation == "softplus":
            phi, slope = ops.softplus_with_slope(phi)
        elif layer.activation == "tanh":
            phi = ops.tanh(phi)
            slope = 1.0 - phi * phi
        slopes.append(slope)

    def pullback(v: Tensor) -> Tensor:
        through_skips = 0.0
        for layer, slope in zip(reversed(layers), reversed(slopes), strict=True):
            v = v * slope
            if layer.skip is not None:
                through_skips = through_skips + ops.matmul_transposed(v, layer.skip)
            v = ops.matmul_transposed(v, layer.weight)
        return through_skips + v

    return phi, pullback
