"""The paper's two-dimensional distributions: Funnel, Banana, Square, Cosine, Ring and the mixture of rings."""

import math
from dataclasses import dataclass

import numpy as np

from dkef.core.arrays import Array
from dkef.data.synthetic.distributions import LOG_2PI, Distribution, log_normal


@dataclass(frozen=True)
class Funnel(Distribution):
    """x1 ~ N(0, std^2); x2 given x1 ~ N(0, v) with v = min(exp(-x1), cap)."""

    std: float = 2.0
    cap: float = 10.0

    def _variance(self, x1: Array) -> tuple[Array, Array]:
        """v at x1, and whether it still depends on x1."""
        exponent = np.minimum(-x1, math.log(self.cap))
        return np.exp(exponent), -x1 <= math.log(self.cap)

    def sample(self, n: int, rng: np.random.Generator) -> Array:
        x1 = self.std * rng.standard_normal(n)
        x2 = np.sqrt(self._variance(x1)[0]) * rng.standard_normal(n)
        return np.stack([x1, x2], axis=1)

    def log_density(self, x: Array) -> Array:
        v, _ = self._variance(x[:, 0])
        return log_normal(x[:, 0], 0.0, self.std) + log_normal(x[:, 1], 0.0, np.sqrt(v))

    def score(self, x: Array) -> Array:
        v, active = self._variance(x[:, 0])
        d1 = -x[:, 0] / self.std**2 + active * (0.5 - 0.5 * x[:, 1] ** 2 / v)
        return np.stack([d1, -x[:, 1] / v], axis=1)

    def hessian(self, x: Array) -> Array:
        v, active = self._variance(x[:, 0])
        d11 = -1 / self.std**2 - active * 0.5 * x[:, 1] ** 2 / v
        return _symmetric(d11, active * -x[:, 1] / v, -1 / v)


@dataclass(frozen=True)
class Banana(Distribution):
    """x1 ~ N(0, std^2); x2 = bend (x1^2 - std^2) + N(0, 1)."""

    std: float = 2.0
    bend: float = 0.2

    def sample(self, n: int, rng: np.random.Generator) -> Array:
        x1 = self.std * rng.standard_normal(n)
        x2 = self.bend * (x1**2 - self.std**2) + rng.standard_normal(n)
        return np.stack([x1, x2], axis=1)

    def _residual(self, x: Array) -> Array:
        residual: Array = x[:, 1] - self.bend * (x[:, 0] ** 2 - self.std**2)
        return residual

    def log_density(self, x: Array) -> Array:
        return log_normal(x[:, 0], 0.0, self.std) + log_normal(self._residual(x), 0.0, 1.0)

    def score(self, x: Array) -> Array:
        q = self._residual(x)
        return np.stack([-x[:, 0] / self.std**2 + 2 * self.bend * x[:, 0] * q, -q], axis=1)

    def hessian(self, x: Array) -> Array:
        d11 = -1 / self.std**2 + 2 * self.bend * self._residual(x) - (2 * self.bend * x[:, 0]) ** 2
        return _symmetric(d11, 2 * self.bend * x[:, 0], np.full(len(x), -1.0))


@dataclass(frozen=True)
class Square(Distribution):
    """Uniform on [-half_width, half_width]^2."""

    half_width: float = 3.0

    def sample(self, n: int, rng: np.random.Generator) -> Array:
        return rng.uniform(-self.half_width, self.half_width, (n, 2))

    def log_density(self, x: Array) -> Array:
        inside = (np.abs(x) <= self.half_width).all(axis=1)
        return np.where(inside, -2 * math.log(2 * self.half_width), -np.inf)

    def score(self, x: Array) -> Array:
        return np.zeros(x.shape)

    def hessian(self, x: Array) -> Array:
        return np.zeros((len(x), 2, 2))


@dataclass(frozen=True)
class Cosine(Distribution):
    """x1 ~ U[-half_width, half_width]; x2 = amplitude cos(frequency x1) + std N(0, 1)."""

    half_width: float = 4.0
    amplitude: float = 3.0
    frequency: float = 2.0
    std: float = 1.0

    def _mean(self, x1: Array) -> tuple[Array, Array, Array]:
        """m(x1) = amplitude cos(frequency x1) and its first two derivatives."""
        m: Array = self.amplitude * np.cos(self.frequency * x1)
        m1 = -self.amplitude * self.frequency * np.sin(self.frequency * x1)
        return m, m1, -(self.frequency**2) * m

    def sample(self, n: int, rng: np.random.Generator) -> Array:
        x1 = rng.uniform(-self.half_width, self.half_width, n)
        x2 = self._mean(x1)[0] + self.std * rng.standard_normal(n)
        return np.stack([x1, x2], axis=1)

    def log_density(self, x: Array) -> Array:
        inside = np.abs(x[:, 0]) <= self.half_width
        log_p = log_normal(x[:, 1], self._mean(x[:, 0])[0], self.std) - math.log(2 * self.half_width)
        return np.where(inside, log_p, -np.inf)

    def score(self, x: Array) -> Array:
        m, m1, _ = self._mean(x[:, 0])
        u = (x[:, 1] - m) / self.std**2
        return np.stack([u * m1, -u], axis=1)

    def hessian(self, x: Array) -> Array:
        m, m1, m2 = self._mean(x[:, 0])
        u = (x[:, 1] - m) / self.std**2
        return _symmetric(u * m2 - (m1 / self.std) ** 2, m1 / self.std**2, np.full(len(x), -1 / self.std**2))


@dataclass(frozen=True)
class Rings(Distribution):
    """x = radius (sin a, cos a), a uniform, radius = R_k + std N(0, 1) with R_k drawn in proportion to R_k.

    The exact distribution, not the authors' approximation to it: with r = |x| its density is f(r) / (2 pi r), where f
    is the density of |radius| (a negative radius lands at the opposite angle). It grows like 1/r at the very origin.
    """

    radii: tuple[float, ...] = (5.0,)
    std: float = 0.2

    def sample(self, n: int, rng: np.random.Generator) -> Array:
        R = np.array(self.radii)
        radius = rng.choice(R, size=n, p=R / R.sum()) + self.std * rng.standard_normal(n)
        angle = rng.uniform(0, 2 * math.pi, n)
        points: Array = radius[:, None] * np.stack([np.sin(angle), np.cos(angle)], axis=1)
        return points

    def _radial(self, x: Array) -> tuple[Array, Array, Array, Array]:
        """r [n, 1], and g = log f(r) - log(2 pi r) with its first two derivatives in r, each [n]."""
        r = np.maximum(np.linalg.norm(x, axis=1, keepdims=True), 1e-12)  # [n, 1]
        R = np.array(self.radii)
        log_w = np.tile(np.log(R / R.sum()), 2)
        centres = np.concatenate([R, -R])  # -R_k: the fold of a negative radius
        log_parts = log_w + log_normal(r, centres, self.std)  # [n, 2k]
        log_f = np.logaddexp.reduce(log_parts, axis=1)
        resp = np.exp(log_parts - log_f[:, None])
        slope = -(r - centres) / self.std**2
        first = (resp * slope).sum(axis=1)
        second = (resp * slope**2).sum(axis=1) - 1 / self.std**2 - first**2
        rho = r[:, 0]
        return r, log_f - LOG_2PI - np.log(rho), first - 1 / rho, second + 1 / rho**2

    def log_density(self, x: Array) -> Array:
        return self._radial(x)[1]

    def score(self, x: Array) -> Array:
        r, _, first, _ = self._radial(x)
        return x / r * first[:, None]

    def hessian(self, x: Array) -> Array:
        r, _, first, second = self._radial(x)
        direction = x / r
        outward = np.einsum("ni,nj->nij", direction, direction)
        along = (first / r[:, 0])[:, None, None]
        hessian: Array = second[:, None, None] * outward + along * (np.eye(2) - outward)
        return hessian


def _symmetric(d11: Array, d12: Array, d22: Array) -> Array:
    """The matrices [[d11, d12], [d12, d22]] as [n, 2, 2]."""
    d12, d22 = np.broadcast_to(d12, d11.shape), np.broadcast_to(d22, d11.shape)
    return np.stack([np.stack([d11, d12], axis=-1), np.stack([d12, d22], axis=-1)], axis=-2)
