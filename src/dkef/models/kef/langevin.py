"""The score of a kernel exponential family as Markov chains need it, in NumPy."""

import numpy as np

from dkef.core.arrays import Array
from dkef.models.kef.parameters import Component, KefParameters
from dkef.models.layers import features_and_pullback


class ScoreField:
    """log p~ and its gradient by reverse differentiation, w times cheaper than second-order jets."""

    def __init__(self, parameters: KefParameters) -> None:
        self.parameters = parameters
        self._psi = [component.features(parameters.z) for component in parameters.components]

    def __call__(self, x: Array) -> tuple[Array, Array]:
        """log p~ [n] and its gradient [n, d] at x [n, d]."""
        parameters = self.parameters
        log_p, score = parameters.q0.log_density(x), parameters.q0.score(x)
        for component, psi in zip(parameters.components, self._psi, strict=True):
            value, gradient = _component_gradient(component, psi, parameters.alpha, x)
            log_p = log_p + value
            score = score + gradient
        return log_p, score


def _component_gradient(component: Component, psi: Array, alpha: Array, x: Array) -> tuple[Array, Array]:
    """sum_m alpha_m k(x, z_m) and its gradient in x for one component with inducing features psi [m, w]."""
    phi, pullback = features_and_pullback(x, component.layers)
    if component.kind == "linear":
        value = component.rho * (phi @ (psi.T @ alpha))
        back = np.broadcast_to(component.rho * (psi.T @ alpha), phi.shape)
    else:
        weights = component.kernel_of_features(phi, psi) * alpha
        value = weights.sum(axis=1)
        back = (weights @ psi - value[:, None] * phi) / component.tau
    return value, pullback(back)
