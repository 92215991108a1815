"""The fitted numbers of a kernel exponential family, as plain NumPy, and the density they define.

    log p~(x) = f(x) + log q0(x),   f(x) = sum_m alpha_m k(x, z_m)

This plain form is what training hands over, what a model file holds and what the normaliser compiles; it needs no
TensorFlow.
"""

import functools
import math
import operator
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Self

import numpy as np

from dkef.core.arrays import Array, blocks
from dkef.core.backend import Tensor, backend_of
from dkef.models.layers import Layer, features

# Of the kernel between a block of rows and all inducing points: larger ones leave the cache, and the system has to give
# their memory anew for every block, which takes as long as the kernel does.
BLOCK_BYTES = 1 << 18


@dataclass(frozen=True)
class Component:
    """One kernel of the mixture: Gaussian or linear on the features of its own network.

    gaussian: rho exp(-|phi(x) - phi(y)|^2 / (2 tau));  linear: rho phi(x).phi(y). No layers: phi is the identity.
    """

    kind: str  # gaussian | linear
    rho: float
    tau: float
    layers: tuple[Layer, ...]

    def features(self, x: Array) -> Array:
        """phi(x) for x [n, d]; returns [n, w]."""
        phi: Array = features(x, self.layers)
        return phi

    def kernel(self, x: Array, y: Array) -> Array:
        """rho kappa(phi(x), phi(y)) for x [n, d], y [m, d]; returns [n, m]."""
        k: Array = self.kernel_of_features(self.features(x), self.features(y))
        return k

    def kernel_of_features(self, phi: Tensor, psi: Tensor) -> Tensor:
        """rho kappa(phi_n, psi_m) for features phi [n, w], psi [m, w]; returns [n, m]."""
        ops = backend_of(phi)
        products = ops.matmul(phi, ops.transpose(psi))
        if self.kind == "linear":
            return self.rho * products
        squared = ops.sum(phi * phi, -1)[:, None] - 2.0 * products + ops.sum(psi * psi, -1)
        return self.rho * ops.exp(ops.maximum(squared, 0.0) / (-2.0 * self.tau))


@dataclass(frozen=True)
class BaseMeasure:
    """log q0(x) = -sum_d |x_d - mu_d|^beta_d / (2 sigma_d^2), a product of generalised normals, not normalised."""

    mu: Array  # [d]
    sigma: Array  # [d]
    beta: Array  # [d], each > 1

    def log_density(self, x: Array) -> Array:
        log_q: Array = -(np.abs(x - self.mu) ** self.beta / (2 * self.sigma**2)).sum(axis=1)
        return log_q

    def score(self, x: Array) -> Array:
        """Gradient of log q0 at x [n, d]; returns [n, d]."""
        return self.log_density_and_score(x)[1]

    def log_density_and_score(self, x: Array) -> tuple[Array, Array]:
        """Both with one power, which is what they cost; [n] and [n, d]."""
        u = x - self.mu
        slope = np.abs(u) ** (self.beta - 1) / (2 * self.sigma**2)
        return -(np.abs(u) * slope).sum(axis=1), -self.beta * np.sign(u) * slope

    def sample(self, n: int, rng: np.random.Generator) -> Array:
        """n independent draws, [n, d]: |x_d - mu_d|^beta_d / (2 sigma_d^2) is Gamma distributed with shape 1/beta_d."""
        gamma = rng.standard_gamma(1 / self.beta, size=(n, len(self.mu)))
        sign = rng.integers(2, size=gamma.shape) * 2 - 1
        draws: Array = self.mu + sign * (2 * self.sigma**2 * gamma) ** (1 / self.beta)
        return draws

    def log_normaliser(self) -> float:
        """log of the integral of q0: sum_d log[2 (2 sigma_d^2)^(1/beta_d) Gamma(1 + 1/beta_d)]."""
        log_gamma = np.array([math.lgamma(1 + 1 / beta) for beta in self.beta])
        return float(np.sum(math.log(2) + np.log(2 * self.sigma**2) / self.beta + log_gamma))


@dataclass(frozen=True)
class KefParameters:
    """Everything that determines log p~."""

    alpha: Array  # [m]
    z: Array  # [m, d]
    components: tuple[Component, ...]
    q0: BaseMeasure

    def f(self, x: Array) -> Array:
        """sum_m alpha_m k(x, z_m); returns [n]."""
        seen = [(component, component.features(self.z)) for component in self.components]
        total = np.empty(len(x))
        for rows in blocks(len(x), self.block_rows):
            parts = (component.kernel_of_features(component.features(x[rows]), psi) for component, psi in seen)
            total[rows] = functools.reduce(operator.add, parts) @ self.alpha
        return total

    @property
    def block_rows(self) -> int:
        """Rows at a time such that one matrix of kernel values has BLOCK_BYTES."""
        return max(1, BLOCK_BYTES // (8 * len(self.z)))

    @property
    def least_f(self) -> float | None:
        """A lower bound of f: each kernel value is least (0) or greatest (rho) where that hurts most.

        None for linear kernels, which are not bounded.
        """
        if any(component.kind != "gaussian" for component in self.components):
            return None
        rho = np.array([component.rho for component in self.components], dtype=np.float64)
        return math.fsum(np.minimum(np.outer(self.alpha.astype(np.float64), rho), 0.0).ravel())

    def log_density(self, x: Array) -> Array:
        """log p~(x) for x [n, d], not normalised; returns [n]."""
        return self.f(x) + self.q0.log_density(x)

    def arrays(self) -> dict[str, Array]:
        """All numbers, by flat names."""
        named = {"alpha": self.alpha, "z": self.z, "mu": self.q0.mu, "sigma": self.q0.sigma, "beta": self.q0.beta}
        for r, component in enumerate(self.components):
            named[f"rho_{r}"] = np.asarray(component.rho)
            named[f"tau_{r}"] = np.asarray(component.tau)
            for i, layer in enumerate(component.layers):
                named[f"weight_{r}_{i}"] = layer.weight
                named[f"bias_{r}_{i}"] = layer.bias
                if layer.skip is not None:
                    named[f"skip_{r}_{i}"] = layer.skip
        return named

    def structure(self) -> dict[str, Any]:
        """What `restore` needs beside the arrays."""
        return {
            "components": [{"kind": c.kind, "activations": [la.activation for la in c.layers]} for c in self.components]
        }

    @classmethod
    def restore(cls, structure: Mapping[str, Any], arrays: Mapping[str, Array]) -> Self:
        components = tuple(
            Component(
                entry["kind"],
                float(arrays[f"rho_{r}"]),
                float(arrays[f"tau_{r}"]),
                tuple(
                    Layer(arrays[f"weight_{r}_{i}"], arrays[f"bias_{r}_{i}"], arrays.get(f"skip_{r}_{i}"), activation)
                    for i, activation in enumerate(entry["activations"])
                ),
            )
            for r, entry in enumerate(structure["components"])
        )
        q0 = BaseMeasure(arrays["mu"], arrays["sigma"], arrays["beta"])
        return cls(arrays["alpha"], arrays["z"], components, q0)
