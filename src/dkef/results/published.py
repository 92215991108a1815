"""Published results as data frames: `dkef.published.load("reproduction")`."""

import difflib
from pathlib import Path

import pandas as pd

from dkef.config.files import config_folder
from dkef.core.errors import DkefError


def folder() -> Path:
    """results/published beside the configuration in use."""
    return config_folder().parent / "results" / "published"


def names() -> list[str]:
    """Experiments with published metrics."""
    return sorted(path.parent.name for path in folder().glob("*/metrics.csv"))


def load(name: str) -> pd.DataFrame:
    """metrics.csv of a published experiment: one row for each dataset, model, seed and metric."""
    if name not in names():
        close = difflib.get_close_matches(name, names(), n=1)
        hint = f"did you mean {close[0]}? " if close else ""
        raise DkefError(f"no results of {name!r} are published; {hint}published are {', '.join(names())}")
    return pd.read_csv(folder() / name / "metrics.csv")
