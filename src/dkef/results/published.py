"""Published results as data frames: `dkef.published.load("reproduction")`."""

from pathlib import Path

import pandas as pd

from dkef.config.files import config_folder
from dkef.config.sentences import unknown
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
        raise DkefError(unknown("published experiment", name, names()))
    return pd.read_csv(folder() / name / "metrics.csv")
