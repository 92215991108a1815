"""Estimators around dkef.fit. A parameter that is None has the value of config/model, or of dkef.fit.

scikit-learn takes the parameters from the signature of `__init__`, which `dataclass` writes; how estimators
are compared and shown is scikit-learn's own.
"""

from dataclasses import dataclass
from typing import Any, ClassVar, Self

import numpy as np
from sklearn.base import BaseEstimator, DensityMixin
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted, validate_data

from dkef.core.arrays import Array
from dkef.library.fitting import LOG_Z_SAMPLES, fit


class _DensityEstimator(DensityMixin, BaseEstimator):  # type: ignore[misc]
    """What all have in common: rows in, `density_` (a dkef.FittedDensity) and `n_features_in_` out."""

    MODEL: ClassVar[str]

    def fit(self, X: Any, y: Any = None) -> Self:
        """Fit to the rows of X [n, d]; y is ignored."""
        columns = getattr(X, "columns", None)
        rows = validate_data(self, X, dtype=np.float64, ensure_min_samples=2)
        params = self.get_params(deep=False)
        seed, further = params.pop("random_state"), params.pop("settings", None) or {}
        given = {key: value for key, value in params.items() if value is not None}
        self.density_ = fit(_named(rows, columns), self.MODEL, seed=_seed(seed), progress=False, **given | further)
        return self

    def score_samples(self, X: Any) -> Array:
        """Normalised log density of each row of X; [n]."""
        check_is_fitted(self)
        return self.density_.log_prob(validate_data(self, X, dtype=np.float64, reset=False))

    def score(self, X: Any, y: Any = None) -> float:
        """Mean log density of the rows of X, as scikit-learn's GaussianMixture has it; y is ignored."""
        return float(self.score_samples(X).mean())

    def sample(self, n_samples: int = 1, random_state: Any = None) -> Array:
        """Draws; [n_samples, d]."""
        check_is_fitted(self)
        return self.density_.sample(n_samples, _seed(random_state))


def _seed(random_state: Any) -> int:
    """A whole number as it is; otherwise one from scikit-learn's random state."""
    if isinstance(random_state, int | np.integer):
        return int(random_state)
    return int(check_random_state(random_state).randint(2**31 - 1))


def _named(rows: Array, columns: Any) -> Any:
    """With the names of a data frame, for messages."""
    if columns is None:
        return rows
    import pandas as pd

    return pd.DataFrame(rows, columns=columns)


@dataclass(kw_only=True, eq=False, repr=False)
class Gaussian(_DensityEstimator):
    """A normal distribution with full covariance."""

    MODEL = "gaussian"
    random_state: Any = None


@dataclass(kw_only=True, eq=False, repr=False)
class _KernelFamily(_DensityEstimator):
    """Kernel exponential families; `settings` are further keys of dkef.models.kef.spec.KernelExponentialFamily."""

    components: int | None = None
    inducing_points: int | None = None
    learning_rate: float | None = None
    noise_std: float | None = None
    max_iterations: int | None = None
    patience: int | None = None
    log_z_samples: int = LOG_Z_SAMPLES
    settings: dict[str, Any] | None = None
    random_state: Any = None


class KEF(_KernelFamily):
    """A kernel exponential family whose kernels lie on the (whitened) rows themselves."""

    MODEL = "kef_g"


@dataclass(kw_only=True, eq=False, repr=False)
class DKEF(_KernelFamily):
    """The deep kernel exponential family: kernels on features that networks learn."""

    MODEL = "dkef"
    layers: int | None = None
    width: int | None = None


@dataclass(kw_only=True, eq=False, repr=False)
class _Flow(_DensityEstimator):
    """Models by maximum likelihood; `settings` are further keys of dkef.models.flows.spec.Flow."""

    layers: int | None = None
    hidden_layers: int | None = None
    width: int | None = None
    learning_rate: float | None = None
    batch_rows: int | None = None
    max_iterations: int | None = None
    patience: int | None = None
    settings: dict[str, Any] | None = None
    random_state: Any = None


class MADE(_Flow):
    """Masked autoregressive network with Gaussian conditionals."""

    MODEL = "made"


class MADEMOG(_Flow):
    """MADE whose conditionals are mixtures of Gaussians."""

    MODEL = "made_mog"


class MAF(_Flow):
    """Masked autoregressive flow."""

    MODEL = "maf"


class MAFMOG(_Flow):
    """Masked autoregressive flow over a MADE-MOG."""

    MODEL = "maf_mog"


class RealNVP(_Flow):
    """Real NVP: affine coupling layers."""

    MODEL = "real_nvp"


@dataclass(kw_only=True, eq=False, repr=False)
class KCEF(_DensityEstimator):
    """The kernel conditional exponential family; `settings` are further keys of dkef.models.kcef.spec.Kcef."""

    MODEL = "kcef"
    rows: int | None = None
    folds: int | None = None
    max_iterations: int | None = None
    settings: dict[str, Any] | None = None
    random_state: Any = None
