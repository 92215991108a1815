"""PCA whitening, and the way back to raw units."""

from dataclasses import dataclass
from typing import Self

import numpy as np

from dkef.core.arrays import Array
from dkef.core.errors import DkefError


@dataclass(frozen=True)
class Whitening:
    """y = (x - mean) W, with mean [d] and W [d, d]; the identity where a dataset is not whitened."""

    mean: Array
    W: Array

    @classmethod
    def identity(cls, d: int) -> Self:
        return cls(np.zeros(d), np.eye(d))

    @classmethod
    def fit(cls, rows: Array, mean: Array) -> Self:
        """W = V diag(sqrt(n) / s_j) from the thin SVD of the n centred rows: unit variance along principal axes.

        Coordinates come out by decreasing variance. The sign of an axis is free; the largest entry of each column
        of V is made positive, so that neither the order of the rows nor the linear algebra library decides it.
        """
        n, d = rows.shape
        if n <= d:
            raise DkefError(
                f"whitening {d} columns needs more than {d} rows and has {n}; use fewer columns or more rows"
            )
        _, s, Vt = np.linalg.svd(rows - mean, full_matrices=False)
        scaled = (rows - mean) / rows.std(axis=0)
        # Linear dependence must not depend on the units, hence the columns of equal scale.
        dependence = np.linalg.svd(scaled, compute_uv=False)
        limit = max(n, d) * np.finfo(float).eps
        if dependence[-1] <= limit * dependence[0] or s[-1] <= limit * s[0]:
            raise DkefError(
                f"the {d} columns are linearly dependent on the {n} rows that determine the whitening; drop a column, "
                "or set preprocessing.max_correlation"
            )
        signs = np.sign(Vt[np.arange(d), np.abs(Vt).argmax(axis=1)])
        return cls(mean, (Vt * signs[:, None]).T * (np.sqrt(n) / s))

    @classmethod
    def of_any_scale(cls, rows: Array) -> Self:
        """The same of columns that are first divided by their standard deviation, for units that are wildly different.

        No factor or shift of a column changes the whitened rows beyond rounding, and none is lost in the SVD beside
        larger ones.
        """
        mean, scale = rows.mean(axis=0), rows.std(axis=0)
        standard = cls.fit((rows - mean) / scale, np.zeros(rows.shape[1]))
        return cls(mean, standard.W / scale[:, None])

    @property
    def log_det(self) -> float:
        """log |det W|: add it to a log density of y to get that of x in raw units."""
        return float(np.linalg.slogdet(self.W)[1])

    def apply(self, x: Array) -> Array:
        """Raw units to whitened ones; [n, d]."""
        y: Array = (x - self.mean) @ self.W
        return y

    def invert(self, y: Array) -> Array:
        """Whitened units to raw ones; [n, d]."""
        x: Array = self.mean + np.linalg.solve(self.W.T, y.T).T
        return x
