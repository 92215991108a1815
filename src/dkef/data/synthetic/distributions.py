"""Distributions with known density: sampler, exact log density, exact score and curvature."""

import abc
import math
from dataclasses import dataclass

import numpy as np

from dkef.core.arrays import Array

LOG_2PI = math.log(2 * math.pi)


def log_normal(x: Array, mean: Array | float, std: Array | float) -> Array:
    """Log density of N(mean, std^2) at x, elementwise."""
    standard = (x - mean) / std
    log_p: Array = -0.5 * standard**2 - np.log(std) - 0.5 * LOG_2PI
    return log_p


class Distribution(abc.ABC):
    """A distribution on R^d that can be sampled and whose log density has known derivatives.

    Outside its support a distribution has log density -inf; score and Hessian mean nothing there.
    """

    @property
    def dimension(self) -> int:
        """Number of coordinates d; two, for most."""
        return 2

    @abc.abstractmethod
    def sample(self, n: int, rng: np.random.Generator) -> Array:
        """Draw n independent points; returns [n, d]."""

    @abc.abstractmethod
    def log_density(self, x: Array) -> Array:
        """Normalised log density at x [n, d]; returns [n]."""

    @abc.abstractmethod
    def score(self, x: Array) -> Array:
        """Gradient of the log density at x [n, d]; returns [n, d]."""

    @abc.abstractmethod
    def hessian(self, x: Array) -> Array:
        """Second derivatives of the log density at x [n, d]; returns [n, d, d]."""

    def curvature(self, x: Array) -> Array:
        """Second derivative of the log density in each coordinate at x [n, d]; returns [n, d]."""
        diagonal: Array = np.einsum("nii->ni", self.hessian(x)).copy()
        return diagonal

    def image(self, mean: Array, W: Array) -> "Distribution":
        """The distribution of y = (x - mean) W, the whitened rows say, given that of x."""
        return AffineImage(self, mean, W)


@dataclass(frozen=True)
class NormalMixture(Distribution):
    """Mixture of isotropic normals with weights [k], means [k, d] and standard deviations [k]."""

    weights: Array
    means: Array
    stds: Array

    @property
    def dimension(self) -> int:
        return int(self.means.shape[1])

    def sample(self, n: int, rng: np.random.Generator) -> Array:
        component = rng.choice(len(self.weights), size=n, p=self.weights)
        return self._around(component, rng)

    def sample_stratified(self, n: int, rng: np.random.Generator) -> Array:
        """Draw n points with exactly n w_k from component k (rounded; the last takes the rest), in that order."""
        edges = np.round(n * np.cumsum(self.weights)).astype(int)
        counts = np.diff(edges, prepend=0)
        return self._around(np.repeat(np.arange(len(counts)), counts), rng)

    def _around(self, component: Array, rng: np.random.Generator) -> Array:
        noise = rng.standard_normal((len(component), self.means.shape[1]))
        points: Array = self.means[component] + self.stds[component, None] * noise
        return points

    def _parts(self, x: Array) -> tuple[Array, Array, Array]:
        """Log density [n], responsibilities [n, k] and component scores [n, k, d]."""
        gap = x[:, None, :] - self.means
        log_parts = np.log(self.weights) + log_normal(gap, 0.0, self.stds[:, None]).sum(axis=2)
        log_p = np.logaddexp.reduce(log_parts, axis=1)
        return log_p, np.exp(log_parts - log_p[:, None]), -gap / self.stds[:, None] ** 2

    def log_density(self, x: Array) -> Array:
        return self._parts(x)[0]

    def score(self, x: Array) -> Array:
        _, resp, scores = self._parts(x)
        mean: Array = np.einsum("nk,nkd->nd", resp, scores)
        return mean

    def hessian(self, x: Array) -> Array:
        _, resp, scores = self._parts(x)
        s = np.einsum("nk,nkd->nd", resp, scores)
        spread = np.einsum("nk,nki,nkj->nij", resp, scores, scores) - np.einsum("ni,nj->nij", s, s)
        hessian: Array = spread - (resp @ (1 / self.stds**2))[:, None, None] * np.eye(x.shape[1])
        return hessian


@dataclass(frozen=True)
class AffineImage(Distribution):
    """The distribution of y = (x - mean) W for x from another one, W [d, d] invertible: a rotation or a whitening."""

    base: Distribution
    mean: Array
    W: Array

    @property
    def dimension(self) -> int:
        return len(self.mean)

    def _back(self, y: Array) -> Array:
        x: Array = self.mean + np.linalg.solve(self.W.T, y.T).T
        return x

    def sample(self, n: int, rng: np.random.Generator) -> Array:
        y: Array = (self.base.sample(n, rng) - self.mean) @ self.W
        return y

    def log_density(self, x: Array) -> Array:
        return self.base.log_density(self._back(x)) - float(np.linalg.slogdet(self.W)[1])

    def score(self, x: Array) -> Array:
        score: Array = np.linalg.solve(self.W, self.base.score(self._back(x)).T).T
        return score

    def hessian(self, x: Array) -> Array:
        inverse = np.linalg.inv(self.W)
        hessian: Array = inverse @ self.base.hessian(self._back(x)) @ inverse.T
        return hessian


def rotated(base: Distribution, degrees: float) -> Distribution:
    """The distribution of y = R x, R the anticlockwise rotation of the plane by an angle."""
    a = math.radians(degrees)
    R = np.array([[math.cos(a), -math.sin(a)], [math.sin(a), math.cos(a)]])
    return AffineImage(base, np.zeros(2), R.T)
