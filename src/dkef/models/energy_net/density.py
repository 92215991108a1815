"""The density of an energy network.

    log p~(x) = f(x) + log q0(x),   f(x) = sum_k v_k s(h_k(x)),   log q0(x) = -sum_d |x_d - mu_d|^beta / (2 sigma_d^2)

with h the last hidden layer of a network of softplus units and s its activation.

Z is finite for all weights. With s = tanh, |f| <= sum_k |v_k|, so that exp(-sum |v|) Z_0 <= Z <= exp(sum |v|) Z_0 with
Z_0 the integral of q0; the same lower bound of f is what Proposition 1 needs. With s = softplus, all layers are
Lipschitz, hence f(x) <= c + C |x|, and q0 falls faster than exp(-C |x|) because beta > 1; but f may fall without limit
and states no lower bound. f has no constant: a score does not see it, and log Z would only take it back.
"""

from collections.abc import Mapping, Sequence
from typing import Any, Self

import numpy as np

from dkef.core.arrays import Array, in_blocks
from dkef.core.backend import Tensor
from dkef.core.errors import DkefError
from dkef.models.energy_net.spec import EnergyNetwork
from dkef.models.kef.base_measure import base_jet
from dkef.models.kef.density import plus
from dkef.models.kef.kernels import Expansion
from dkef.models.kef.parameters import BaseMeasure
from dkef.models.langevin import langevin_chains
from dkef.models.layers import Layer, feature_jet, features, features_and_pullback
from dkef.models.protocol import DensityModel, Evaluation

SAMPLING_STEPS = 500
ROWS = 4096  # a block, where only values or scores are needed


def layers_of(values: Mapping[str, Tensor], top_activation: str) -> tuple[Layer, ...]:
    """The network of named weights; the last layer is the linear unit v, without a constant."""
    hidden = sum(name.startswith("bias_") for name in values)
    activations = ["softplus"] * (hidden - 1) + [top_activation]
    inner = [Layer(values[f"weight_{i}"], values[f"bias_{i}"], None, s) for i, s in enumerate(activations)]
    return (*inner, Layer(values["v"][:, None], 0.0, None, "linear"))


def density_jet(layers: Sequence[Layer], q0: BaseMeasure, x: Tensor) -> Expansion:
    """log p~ [n] with its first and second derivatives [n, d] at x [n, d], on arrays or tensors."""
    f = feature_jet(x, layers)
    return plus(Expansion(f.value[..., 0], f.first[..., 0], f.second[..., 0]), base_jet(q0, x))


class EnergyModel(DensityModel, of=EnergyNetwork):
    """A fitted energy network; needs no TensorFlow."""

    def __init__(self, weights: Mapping[str, Array], q0: BaseMeasure, top_activation: str) -> None:
        """weights: weight_i [fan_in, w] and bias_i [w] of every hidden layer, and v [w]."""
        self.weights, self._q0, self.top_activation = dict(weights), q0, top_activation
        self.layers = layers_of(self.weights, top_activation)
        for name, array in self.arrays().items():
            if not np.isfinite(array).all():
                raise DkefError(f"energy network: {name} holds a value that is not finite; lower the learning rate")
        if not ((q0.beta > 1).all() and (q0.sigma > 0).all()):
            raise DkefError(f"energy network: q0 needs beta > 1 and sigma > 0, found {q0.beta} and {q0.sigma}")

    @property
    def dimension(self) -> int:
        return len(self._q0.mu)

    @property
    def q0(self) -> BaseMeasure:
        return self._q0

    @property
    def least_f(self) -> float | None:
        return -float(np.abs(self.weights["v"]).sum()) if self.top_activation == "tanh" else None

    def evaluate(self, x: Array, batch: int = 1000) -> Evaluation:
        return Evaluation(*in_blocks(lambda rows: density_jet(self.layers, self._q0, rows), x, batch))

    def log_density(self, x: Array) -> Array:
        (log_p,) = in_blocks(lambda rows: [features(rows, self.layers)[:, 0] + self._q0.log_density(rows)], x, ROWS)
        return log_p

    def score(self, x: Array) -> Array:
        return self.log_density_and_score(x)[1]

    def log_density_and_score(self, x: Array) -> tuple[Array, Array]:
        """By reverse differentiation, whose cost does not grow with d."""
        log_p, score = in_blocks(self._field, x, ROWS)
        return log_p, score

    def _field(self, x: Array) -> tuple[Array, Array]:
        f, pullback = features_and_pullback(x, self.layers)
        return f[:, 0] + self._q0.log_density(x), pullback(np.ones_like(f)) + self._q0.score(x)

    def sample(self, n: int, rng: np.random.Generator) -> Array:
        """n approximate draws [n, d]: a Markov chain for each starts at a draw of q0, which reaches all modes."""
        return langevin_chains(self.log_density_and_score, self._q0.sample(n, rng), SAMPLING_STEPS, rng)

    def arrays(self) -> dict[str, Array]:
        return self.weights | {"mu": self._q0.mu, "sigma": self._q0.sigma, "beta": self._q0.beta}

    def settings(self) -> dict[str, Any]:
        return {"top_activation": self.top_activation}

    @classmethod
    def restore(cls, settings: Mapping[str, Any], arrays: Mapping[str, Array]) -> Self:
        weights = {name: np.asarray(array, dtype=np.float64) for name, array in arrays.items()}
        q0 = BaseMeasure(weights.pop("mu"), weights.pop("sigma"), weights.pop("beta"))
        return cls(weights, q0, settings["top_activation"])
