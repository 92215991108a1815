"""The kernel exponential family as a fitted model: log p~(x) = sum_m alpha_m k(x, z_m) + log q0(x)."""

import functools
import operator
from collections.abc import Mapping, Sequence
from typing import Any, Self

import numpy as np

from dkef.core.arrays import Array, in_blocks
from dkef.core.backend import Tensor
from dkef.core.errors import DkefError
from dkef.models.kef.base_measure import base_jet
from dkef.models.kef.kernels import Expansion, KernelJet, expansion, kernel_jet
from dkef.models.kef.langevin import ScoreField
from dkef.models.kef.parameters import BaseMeasure, KefParameters
from dkef.models.kef.spec import KernelExponentialFamily
from dkef.models.langevin import langevin_chains
from dkef.models.layers import feature_jet, features
from dkef.models.protocol import DensityModel, Evaluation

LIPSCHITZ_ACTIVATIONS = ("softplus", "linear")
SAMPLING_STEPS = 500


def inducing_features(parameters: KefParameters) -> list[Tensor]:
    """phi(z) of each component; [m, w] each."""
    return [features(parameters.z, component.layers) for component in parameters.components]


def kernel_jets(
    parameters: KefParameters, x: Tensor, psi: Sequence[Tensor], directions: Tensor | None = None
) -> list[KernelJet]:
    """What the derivatives of each component's kernel between the rows of x [n, d] and z are made of.

    They are in each coordinate, or along directions [n, s, d].
    """
    return [
        kernel_jet(component, feature_jet(x, component.layers, directions), own)
        for component, own in zip(parameters.components, psi, strict=True)
    ]


def f_jet(parameters: KefParameters, jets: Sequence[KernelJet], alpha: Tensor) -> Expansion:
    """f with its derivatives at the rows of the jets, for the c coefficient vectors alpha [c, m]."""
    parts = [expansion(component, jet, alpha) for component, jet in zip(parameters.components, jets, strict=True)]
    return plus(*parts)


def plus(*parts: Expansion) -> Expansion:
    """The sum of functions, derivative by derivative."""
    return Expansion(*(functools.reduce(operator.add, terms) for terms in zip(*parts, strict=True)))


def density_jet(parameters: KefParameters, x: Tensor, alpha: Tensor) -> Expansion:
    """log p~ [n] with its first and second derivatives [n, d] at x [n, d], for any coefficients alpha [m]."""
    return log_density_jet(parameters, kernel_jets(parameters, x, inducing_features(parameters)), x, alpha)


def log_density_jet(parameters: KefParameters, jets: Sequence[KernelJet], x: Tensor, alpha: Tensor) -> Expansion:
    """The same from the kernel jets of x."""
    f = f_jet(parameters, jets, alpha[None])
    return plus(base_jet(parameters.q0, x), Expansion(*(part[..., 0] for part in f)))


def require_normalisable(parameters: KefParameters) -> None:
    """Stop unless the conditions of Proposition 2 hold, under which exp(f) q0 has a finite integral for every f.

    q0 must fall faster than exponentially in every coordinate (beta_d > 1), and kappa(phi(x), phi(x)) must grow no
    faster than |x|^2, as it does for Gaussian and linear kernels on networks with Lipschitz activations.
    """
    reason = _obstacle(parameters)
    if reason:
        raise DkefError(f"kernel exponential family: exp(f) q0 cannot be shown to be normalisable, because {reason}")


def _obstacle(parameters: KefParameters) -> str | None:
    q0 = parameters.q0
    for name, array in parameters.arrays().items():
        if not np.isfinite(array).all():
            return f"{name} holds a value that is not finite; lower the learning rate"
    if not (q0.beta > 1).all():
        d = int(np.argmin(q0.beta))
        return f"beta[{d}] = {q0.beta[d]:.4g} and the tails of q0 need beta > 1; raise the floor of beta or fix q0"
    if not (np.abs(q0.sigma) > 0).all():
        return f"sigma[{int(np.argmin(np.abs(q0.sigma)))}] of q0 is 0; fix q0 or lower the learning rate"
    for r, component in enumerate(parameters.components):
        if component.kind not in ("gaussian", "linear"):
            return (
                f"component {r} is a {component.kind!r} kernel, which may grow faster than the square of its "
                "features; use gaussian or linear"
            )
        if component.rho < 0 or component.tau <= 0:
            return f"component {r} has rho {component.rho:.4g}, tau {component.tau:.4g}; it needs rho >= 0 and tau > 0"
        for layer in component.layers:
            if component.kind == "linear" and layer.activation not in LIPSCHITZ_ACTIVATIONS:
                return f"component {r} has the activation {layer.activation!r}, not known to be Lipschitz; use softplus"
    return None


class KefModel(DensityModel, of=KernelExponentialFamily):
    """A kernel exponential family with the parameters of a finished fit; needs no TensorFlow."""

    def __init__(self, parameters: KefParameters) -> None:
        require_normalisable(parameters)
        self.parameters = parameters

    @property
    def dimension(self) -> int:
        return int(self.parameters.z.shape[1])

    @property
    def q0(self) -> BaseMeasure:
        return self.parameters.q0

    @property
    def least_f(self) -> float | None:
        return self.parameters.least_f

    def evaluate(self, x: Array, batch: int = 1000) -> Evaluation:
        return Evaluation(*in_blocks(lambda own: density_jet(self.parameters, own, self.parameters.alpha), x, batch))

    def log_density(self, x: Array) -> Array:
        return self.parameters.log_density(np.asarray(x, dtype=np.float64))

    def score(self, x: Array) -> Array:
        return self.log_density_and_score(x)[1]

    def log_density_and_score(self, x: Array) -> tuple[Array, Array]:
        log_p, score = in_blocks(ScoreField(self.parameters), x, self.parameters.block_rows)
        return log_p, score

    def sample(self, n: int, rng: np.random.Generator) -> Array:
        """n draws by Markov chain, one chain a draw; returns [n, d].

        The draws are approximate: chains of Metropolis-adjusted Langevin steps start at inducing points, and modes
        that the chains do not cross between keep the share of the inducing points that they began with. Exact
        rejection from q0 accepts next to nothing beyond two dimensions.
        """
        start = self.parameters.z[rng.integers(len(self.parameters.z), size=n)]
        return langevin_chains(ScoreField(self.parameters), start, SAMPLING_STEPS, rng)

    def arrays(self) -> dict[str, Array]:
        return self.parameters.arrays()

    def settings(self) -> dict[str, Any]:
        return self.parameters.structure()

    @classmethod
    def restore(cls, settings: Mapping[str, Any], arrays: Mapping[str, Array]) -> Self:
        wide = {name: np.asarray(array, dtype=np.float64) for name, array in arrays.items()}
        return cls(KefParameters.restore(settings, wide))
