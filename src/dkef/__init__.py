"""Deep kernel exponential families: a reference reproduction of Wenliang et al. (ICML 2019).

fit(x)                 fit a density to one array; .log_prob, .score, .sample in its units, .log_z, .save
load(path)             a density that was saved
compare(fits, test)    likelihood, score loss, FSSD with its test and KSD of several fits
load_model(path)       a model that the workflow has trained

sklearn                estimators with scikit-learn's conventions: DKEF, MAF, MADE, RealNVP, Gaussian, ...
stein                  FSSD, its model-comparison test and KSD
normaliser             the bias bound of log Z
published              the tables under results/published
"""

import importlib
from typing import TYPE_CHECKING, Any

__version__ = "0.1.0"

if TYPE_CHECKING:
    from dkef.library.comparison import compare
    from dkef.library.density import FittedDensity, load
    from dkef.library.fitting import fit
    from dkef.models.storage import load_model

__all__ = ["FittedDensity", "__version__", "compare", "fit", "load", "load_model"]

# Lazy, so that `import dkef` stays light for stages that need none of these.
HOMES = {
    "fit": "dkef.library.fitting",
    "FittedDensity": "dkef.library.density",
    "load": "dkef.library.density",
    "compare": "dkef.library.comparison",
    "load_model": "dkef.models.storage",
}
MODULES = {
    "sklearn": "dkef.sklearn",
    "stein": "dkef.metrics.stein",
    "normaliser": "dkef.normaliser",
    "published": "dkef.results.published",
}


def __getattr__(name: str) -> Any:
    if name in HOMES:
        return getattr(importlib.import_module(HOMES[name]), name)
    if name in MODULES:
        return importlib.import_module(MODULES[name])
    raise AttributeError(f"module 'dkef' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *HOMES, *MODULES})
