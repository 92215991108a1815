"""Deep kernel exponential families: a reference reproduction of Wenliang et al. (ICML 2019)."""

import importlib
from typing import TYPE_CHECKING, Any

__version__ = "0.1.0"

if TYPE_CHECKING:
    from dkef.models.library import fit
    from dkef.models.storage import load_model

__all__ = ["__version__", "fit", "load_model"]

# Lazy, so that `import dkef` stays light for stages that need none of these.
HOMES = {"fit": "dkef.models.library", "load_model": "dkef.models.storage"}
MODULES = {"stein": "dkef.metrics.stein", "normaliser": "dkef.normaliser", "published": "dkef.results.published"}


def __getattr__(name: str) -> Any:
    if name in HOMES:
        return getattr(importlib.import_module(HOMES[name]), name)
    if name in MODULES:
        return importlib.import_module(MODULES[name])
    raise AttributeError(f"module 'dkef' has no attribute {name!r}")
