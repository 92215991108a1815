"""A multivariate normal distribution: exact in everything, the floor that other models must beat."""

import math
from collections.abc import Mapping
from typing import Any, Self

import numpy as np

from dkef.core.arrays import Array
from dkef.core.errors import DkefError
from dkef.models.protocol import DensityModel, Evaluation


class GaussianModel(DensityModel):
    """N(mean, L L') with the Cholesky factor L of the covariance."""

    def __init__(self, mean: Array, cholesky: Array) -> None:
        self.mean = mean  # [d]
        self.cholesky = cholesky  # [d, d], lower triangular

    @classmethod
    def fit(cls, x: Array) -> Self:
        """Maximum likelihood: sample mean and the covariance with divisor n."""
        mean = x.mean(axis=0)
        centred = x - mean
        try:
            cholesky = np.linalg.cholesky(centred.T @ centred / len(x))
        except np.linalg.LinAlgError:
            raise DkefError(
                f"gaussian: the covariance of {len(x)} rows in {x.shape[1]} columns is singular; "
                "remove constant or linearly dependent columns, or whiten"
            ) from None
        return cls(mean, cholesky)

    @property
    def dimension(self) -> int:
        return len(self.mean)

    def evaluate(self, x: Array, batch: int = 1000) -> Evaluation:
        precision = np.linalg.inv(self.cholesky).T @ np.linalg.inv(self.cholesky)
        score = -(x - self.mean) @ precision
        curvature = np.broadcast_to(-np.diag(precision), x.shape).copy()
        return Evaluation(self.log_density(x), score, curvature)

    def log_density(self, x: Array) -> Array:
        standard = np.linalg.solve(self.cholesky, (x - self.mean).T)  # [d, n]
        log_det = np.log(np.diag(self.cholesky)).sum()
        log_p: Array = -0.5 * (standard**2).sum(axis=0) - log_det - 0.5 * self.dimension * math.log(2 * math.pi)
        return log_p

    def sample(self, n: int, rng: np.random.Generator) -> Array:
        return self.mean + rng.standard_normal((n, self.dimension)) @ self.cholesky.T

    def arrays(self) -> dict[str, Array]:
        return {"mean": self.mean, "cholesky": self.cholesky}

    @classmethod
    def restore(cls, settings: Mapping[str, Any], arrays: Mapping[str, Array]) -> Self:
        return cls(arrays["mean"], arrays["cholesky"])
