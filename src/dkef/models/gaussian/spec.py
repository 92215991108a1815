"""The full-covariance Gaussian, fitted by maximum likelihood."""

from dataclasses import dataclass

from dkef.core.arrays import Array
from dkef.models.protocol import Fit, FitContext


@dataclass(frozen=True)
class Gaussian:
    """No hyper-parameters: mean and covariance of the training rows."""

    def fit(self, train: Array, valid: Array, context: FitContext) -> Fit:
        from dkef.models.gaussian.density import GaussianModel

        return Fit(GaussianModel.fit(train))
