"""Kernel exponential families of many shapes, and their log Z by quadrature."""

import numpy as np
from numpy.polynomial.legendre import leggauss
from scipy.special import logsumexp

from dkef.core.streams import rng_for
from dkef.models.kef.parameters import BaseMeasure, Component, KefParameters
from dkef.models.layers import Layer


def random_layers(
    rng: np.random.Generator, d: int, widths: tuple[int, ...], skips: tuple[int, ...], top: str
) -> tuple[Layer, ...]:
    fan_in, layers = d, []
    for number, width in enumerate(widths):
        layers.append(
            Layer(
                weight=rng.normal(size=(fan_in, width)) / np.sqrt(fan_in),
                bias=0.5 * rng.normal(size=width),
                skip=rng.normal(size=(d, width)) / np.sqrt(d) if number in skips else None,
                activation=top if number == len(widths) - 1 else "softplus",
            )
        )
        fan_in = width
    return tuple(layers)


def random_kef(
    seed: int = 0, d: int = 2, m: int = 20, widths: tuple[int, ...] = (10, 10, 10), skips: tuple[int, ...] = (2,),
    taus: tuple[float, ...] = (0.5, 2.0), kind: str = "gaussian", top: str = "softplus", alpha_scale: float = 1.0,
) -> KefParameters:  # fmt: skip
    rng = rng_for("test kef", seed, d, m)
    components = tuple(Component(kind, 1 / len(taus), tau, random_layers(rng, d, widths, skips, top)) for tau in taus)
    q0 = BaseMeasure(0.3 * rng.normal(size=d), rng.uniform(0.8, 1.6, d), rng.uniform(1.4, 4.0, d))
    return KefParameters(alpha_scale * rng.normal(size=m), rng.normal(size=(m, d)), components, q0)


def log_r_on_grid(parameters: KefParameters, nodes: int = 120) -> tuple[np.ndarray, np.ndarray]:
    """(log r, log weight) at the points of a Gauss-Legendre rule for expectations under q0, in one or two dimensions.

    The range leaves out less than exp(-40) of q0 in each coordinate; each half line has its own rule because
    |x - mu|^beta is not smooth at mu.
    """
    t, w = leggauss(nodes)
    q0 = parameters.q0
    axes, log_weights = [], []
    for mu, sigma, beta in zip(q0.mu, q0.sigma, q0.beta, strict=True):
        reach = (2 * sigma**2 * 40) ** (1 / beta)
        u = np.concatenate([-reach * (t[::-1] + 1) / 2, reach * (t + 1) / 2])
        axes.append(mu + u)
        log_weights.append(np.log(np.concatenate([w[::-1], w]) * reach / 2) - np.abs(u) ** beta / (2 * sigma**2))
    x = np.stack(np.meshgrid(*axes, indexing="ij"), axis=-1).reshape(-1, len(axes))
    log_w = sum(np.meshgrid(*log_weights, indexing="ij")).ravel() - q0.log_normaliser()
    return parameters.f(x) + q0.log_normaliser(), log_w


def log_moment(parameters: KefParameters, power: int = 1) -> float:
    """log E r^power under q0, by quadrature; power 1 is log Z."""
    log_r, log_w = log_r_on_grid(parameters)
    return float(logsumexp(power * log_r + log_w))
