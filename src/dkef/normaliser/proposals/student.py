"""The wide part of a defensive mixture for models without a q0: a Student t distribution around the rows.

Its tails fall like |x|^-(d + 3), slower than those of any model with a finite log Z that is worth estimating, so that
p~ / g stays bounded whatever the normals of the mixture miss.
"""

import math
from dataclasses import dataclass
from typing import Self

import numpy as np
from scipy.special import gammaln

from dkef.core.arrays import Array

DEGREES = 3.0  # of freedom: the fewest whole ones with a variance


@dataclass(frozen=True)
class StudentT:
    """Density proportional to (1 + |L^-1 (x - c)|^2 / 3)^-((d + 3) / 2)."""

    centre: Array  # [d]: c
    factor: Array  # [d, d]: L, lower triangular

    @classmethod
    def around(cls, rows: Array) -> Self:
        """With the mean and the covariance factor of rows [n, d]."""
        return cls(rows.mean(axis=0), np.linalg.cholesky(np.atleast_2d(np.cov(rows.T))))

    def log_density(self, x: Array) -> Array:
        """Not normalised; [n]."""
        u = np.linalg.solve(self.factor, (x - self.centre).T)
        log_p: Array = -self._power * np.log1p((u**2).sum(axis=0) / DEGREES)
        return log_p

    def score(self, x: Array) -> Array:
        """Gradient of the log density; [n, d]."""
        u = np.linalg.solve(self.factor, (x - self.centre).T)
        inner = -2 * self._power * u / (DEGREES + (u**2).sum(axis=0))
        gradient: Array = np.linalg.solve(self.factor.T, inner).T
        return gradient

    def sample(self, n: int, rng: np.random.Generator) -> Array:
        normal = rng.standard_normal((n, len(self.centre)))
        draws: Array = self.centre + normal @ self.factor.T / np.sqrt(rng.chisquare(DEGREES, (n, 1)) / DEGREES)
        return draws

    def log_normaliser(self) -> float:
        d = len(self.centre)
        log_det = float(np.log(np.diag(self.factor)).sum())
        gammas = float(gammaln(DEGREES / 2) - gammaln((DEGREES + d) / 2))
        return gammas + 0.5 * d * math.log(DEGREES * math.pi) + log_det

    @property
    def _power(self) -> float:
        return (DEGREES + len(self.centre)) / 2
