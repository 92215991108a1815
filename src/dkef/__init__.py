"""Deep kernel exponential families: a reference reproduction of Wenliang et al. (ICML 2019)."""

import importlib
from typing import TYPE_CHECKING, Any

__version__ = "0.1.0"

if TYPE_CHECKING:
    from dkef.models.storage import load_model

__all__ = ["__version__", "load_model"]


def __getattr__(name: str) -> Any:
    # Lazy, so that `import dkef` stays light for stages that load no model.
    if name == "load_model":
        from dkef.models.storage import load_model

        return load_model
    if name in {"stein", "normaliser"}:
        return importlib.import_module(f"dkef.{name}")
    raise AttributeError(f"module 'dkef' has no attribute {name!r}")
