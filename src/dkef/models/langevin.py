"""Metropolis-adjusted Langevin chains on a kernel exponential family, in NumPy."""

import numpy as np
from scipy.special import expit

from dkef.models.kef_parameters import Component, KefParameters, softplus
from dkef.models.protocol import Array

TARGET_ACCEPTANCE = 0.57  # optimal for Langevin proposals in high dimension


def density_and_score(parameters: KefParameters, x: Array) -> tuple[Array, Array]:
    """log p~ [n] and its gradient [n, d] by reverse differentiation, w times cheaper than second-order jets."""
    q0 = parameters.q0
    u = x - q0.mu
    log_p = q0.log_density(x)
    score = -q0.beta * np.sign(u) * np.abs(u) ** (q0.beta - 1) / (2 * q0.sigma**2)
    for component in parameters.components:
        value, gradient = _component_gradient(component, parameters.z, parameters.alpha, x)
        log_p = log_p + value
        score = score + gradient
    return log_p, score


def _component_gradient(component: Component, z: Array, alpha: Array, x: Array) -> tuple[Array, Array]:
    """sum_m alpha_m k(x, z_m) and its gradient in x for one component."""
    phi, slopes = x, []
    for layer in component.layers:
        h = phi @ layer.weight + layer.bias + (0.0 if layer.skip is None else x @ layer.skip)
        slopes.append(expit(h) if layer.activation == "softplus" else np.ones_like(h))
        phi = softplus(h) if layer.activation == "softplus" else h
    psi = component.features(z)
    if component.kind == "linear":
        value = component.rho * (phi @ (psi.T @ alpha))
        back = np.broadcast_to(component.rho * (psi.T @ alpha), phi.shape)
    else:
        weights = component.kernel(x, z) * alpha
        value = weights.sum(axis=1)
        back = (weights @ psi - value[:, None] * phi) / component.tau
    gradient = np.zeros_like(x)
    for layer, slope in zip(reversed(component.layers), reversed(slopes), strict=True):
        back = back * slope
        if layer.skip is not None:
            gradient += back @ layer.skip.T
        back = back @ layer.weight.T
    return value, gradient + back


def langevin_chains(parameters: KefParameters, start: Array, steps: int, rng: np.random.Generator) -> Array:
    """State of independent chains after `steps` steps from the rows of start [n, d].

    The common step size adapts to the share of accepted proposals in the first half and is then fixed.
    """
    x = start.astype(np.float64)
    log_p, score = density_and_score(parameters, x)
    log_step = np.log(0.1)
    for step in range(steps):
        size = np.exp(log_step)
        noise = rng.standard_normal(x.shape)
        y = x + 0.5 * size**2 * score + size * noise
        log_p_y, score_y = density_and_score(parameters, y)
        back = (x - y - 0.5 * size**2 * score_y) / size
        log_ratio = log_p_y - log_p + 0.5 * (noise**2 - back**2).sum(axis=1)
        accept = np.log(rng.random(len(x))) < log_ratio
        x, score = np.where(accept[:, None], y, x), np.where(accept[:, None], score_y, score)
        log_p = np.where(accept, log_p_y, log_p)
        if step < steps // 2:
            log_step += (accept.mean() - TARGET_ACCEPTANCE) / np.sqrt(1 + step / 10)
    return x
