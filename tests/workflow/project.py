"""A copy of the project in a folder of its own, with a small experiment and a model from outside the repository."""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]
Outcome = subprocess.CompletedProcess[str]

EXPERIMENT = """
title: The smallest experiment that has every stage
figures: [toys]
datasets:
  ring_tiny: {of: ring, overrides: [dataset.source.rows=300]}
suites:
  all:
    datasets: [ring_tiny, wine_recognition]
    models: [gaussian, shrunk]
    seeds: 1
    overrides: [comparison.reference_model=gaussian]
"""

# One's own model: a frozen dataclass with a `fit`, and a density that is somebody else's class or one's own.
MY_MODEL = """
from dataclasses import dataclass

import numpy as np

from dkef.models.gaussian.density import GaussianModel
from dkef.core.arrays import Array
from dkef.models.protocol import Fit, FitContext


class ShrunkModel(GaussianModel):
    pass


@dataclass(frozen=True)
class Shrunk:
    weight: float = 0.5

    def fit(self, train: Array, valid: Array, context: FitContext) -> Fit:
        fitted = GaussianModel.fit(train)
        covariance = fitted.cholesky @ fitted.cholesky.T
        shrunk = (1 - self.weight) * covariance + self.weight * np.diag(np.diag(covariance))
        return Fit(ShrunkModel(fitted.mean, np.linalg.cholesky(shrunk)))
"""


class Project:
    """A working copy; `run` calls Snakemake in it as a user would."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    @classmethod
    def make(cls, folder: Path) -> "Project":
        folder.mkdir(parents=True)
        for name in ("config", "workflow", "src", "data"):
            ignored = shutil.ignore_patterns("raw", "processed", "__pycache__", "*.egg-info")
            shutil.copytree(ROOT / name, folder / name, ignore=ignored)
        for name in ("Snakefile", "environment.yml"):
            shutil.copy(ROOT / name, folder)
        (folder / "config" / "experiment" / "contract.yaml").write_text(EXPERIMENT)
        mine = folder / "mine"
        (mine / "model").mkdir(parents=True)
        (mine / "my_model.py").write_text(MY_MODEL)
        (mine / "model" / "shrunk.yaml").write_text("_target_: my_model.Shrunk\nweight: 0.5\n")
        return cls(folder)

    def copy(self, folder: Path) -> "Project":
        shutil.copytree(self.folder, folder, copy_function=shutil.copy2)
        return Project(folder)

    def environment(self) -> dict[str, str]:
        mine = str(self.folder / "mine")
        path = os.pathsep.join([str(self.folder / "src"), mine])
        return os.environ | {"PYTHONPATH": path, "DKEF_CONFIG_PATH": mine, "DKEF_CODE_VERSION": "test"}

    def run(self, *arguments: str, config: tuple[str, ...] = ("experiment=contract",), cores: int = 2) -> Outcome:
        command = [sys.executable, "-m", "snakemake", "--cores", str(cores), *arguments, "--config", *config]
        here = {"cwd": self.folder, "env": self.environment()}
        return subprocess.run(command, check=False, capture_output=True, text=True, **here)

    def planned(self, *arguments: str, experiment: str = "contract") -> dict[str, int]:
        """Jobs that a run would start, by rule; `all` is left out."""
        done = self.run("--dry-run", *arguments, config=(f"experiment={experiment}",))
        assert done.returncode == 0, done.stdout + done.stderr
        text = done.stdout + done.stderr
        table = re.search(r"^job +count\n[- ]+\n(.*?)^total", text, re.MULTILINE | re.DOTALL)
        if table is None:
            assert "Nothing to be done" in text, text
            return {}
        counts = {line.split()[0]: int(line.split()[1]) for line in table.group(1).splitlines()}
        counts.pop("all", None)
        return counts

    def edit(self, name: str, old: str, new: str) -> None:
        path = self.folder / name
        text = path.read_text()
        assert old in text, f"{old!r} is not in {name}"
        path.write_text(text.replace(old, new, 1))
