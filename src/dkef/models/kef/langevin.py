"""Metropolis-adjusted Langevin chains on a kernel exponential family, in NumPy."""

import numpy as np

from dkef.core.arrays import Array
from dkef.models.kef.parameters import Component, KefParameters
from dkef.models.layers import features_and_pullback

TARGET_ACCEPTANCE = 0.57  # optimal for Langevin proposals in high dimension


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


def langevin_chains(parameters: KefParameters, start: Array, steps: int, rng: np.random.Generator) -> Array:
    """State of independent chains after `steps` steps from the rows of start [n, d].

    The common step size adapts to the share of accepted proposals in the first half and is then fixed.
    """
    x = start.astype(np.float64)
    field = ScoreField(parameters)
    log_p, score = field(x)
    log_step = np.log(0.1)
    for step in range(steps):
        size = np.exp(log_step)
        noise = rng.standard_normal(x.shape)
        y = x + 0.5 * size**2 * score + size * noise
        log_p_y, score_y = field(y)
        back = (x - y - 0.5 * size**2 * score_y) / size
        log_ratio = log_p_y - log_p + 0.5 * (noise**2 - back**2).sum(axis=1)
        accept = np.log(rng.random(len(x))) < log_ratio
        x, score = np.where(accept[:, None], y, x), np.where(accept[:, None], score_y, score)
        log_p = np.where(accept, log_p_y, log_p)
        if step < steps // 2:
            log_step += (accept.mean() - TARGET_ACCEPTANCE) / np.sqrt(1 + step / 10)
    return x
