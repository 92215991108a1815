"""What every trained density model offers, and what every trainable specification promises."""

import abc
import logging
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar, Protocol, Self

import numpy as np

from dkef.core.arrays import Array
from dkef.core.errors import DkefError
from dkef.core.streams import rng_for


@dataclass(frozen=True)
class Evaluation:
    """A model at some points: log density [n], its gradient [n, d] and second derivative in each coordinate [n, d]."""

    log_density: Array
    score: Array
    curvature: Array


class DensityModel(abc.ABC):
    """A fitted density p(x) on R^d; unnormalised models know p up to the constant Z.

    A subclass keeps its parameters as plain NumPy arrays and says how to write and restore them, so that a model
    file holds numbers and settings and nothing that is executed on loading.
    """

    normalised: ClassVar[bool] = True
    log_z: float | None = None  # log of the integral of exp(log_density), once somebody has estimated it

    @property
    def log_z_status(self) -> str:
        """Of a normalised model: "ok", or "untrusted: why" where it rests on an estimated constant that is in doubt."""
        return "ok"

    @property
    @abc.abstractmethod
    def dimension(self) -> int:
        """Number of coordinates d."""

    @abc.abstractmethod
    def evaluate(self, x: Array, batch: int = 1000) -> Evaluation:
        """Log density, score and curvature at x [n, d], `batch` rows at a time, in float64."""

    @abc.abstractmethod
    def log_density(self, x: Array) -> Array:
        """Log density at x [n, d], up to a constant where `normalised` is False; returns [n]."""

    @abc.abstractmethod
    def sample(self, n: int, rng: np.random.Generator) -> Array:
        """Draw n points; returns [n, d]."""

    @abc.abstractmethod
    def arrays(self) -> dict[str, Array]:
        """All parameters, by name."""

    def settings(self) -> dict[str, Any]:
        """What `restore` needs beside the arrays; plain JSON types."""
        return {}

    @classmethod
    @abc.abstractmethod
    def restore(cls, settings: Mapping[str, Any], arrays: Mapping[str, Array]) -> Self:
        """The model that `settings` and `arrays` describe."""

    def score(self, x: Array) -> Array:
        """Gradient of the log density at x; [n, d]."""
        return self.evaluate(x).score

    def curvature(self, x: Array) -> Array:
        """Second derivative of the log density in each coordinate at x; [n, d]."""
        return self.evaluate(x).curvature

    def log_prob(self, x: Array) -> Array:
        """Normalised log density at x; [n]."""
        if self.normalised:
            return self.log_density(x)
        if self.log_z is None:
            raise DkefError(
                f"{type(self).__name__} is unnormalised and its log Z is not known: estimate it with "
                "`python -m dkef normalise`, then set model.log_z or load the model with its log_z.json"
            )
        return self.log_density(x) - self.log_z


@dataclass(frozen=True)
class Fit:
    """Outcome of a training run. A diverged run is an outcome too: it carries the last good model."""

    model: DensityModel
    status: str = "ok"  # ok | diverged
    stopped: str = "closed form"  # converged | max_iterations | time_budget | diverged | closed form
    trace: list[dict[str, float]] = field(default_factory=list)  # one record an iteration, equal keys
    notes: dict[str, float | int | str] = field(default_factory=dict)  # e.g. skipped steps, best validation loss


def unwatched(iteration: int, most: int | None, best: float) -> None:
    """Nobody looks on."""


@dataclass(frozen=True)
class FitContext:
    """What a training run is given beside its data: a name for its random streams, a place to resume from, a log."""

    dataset: str = "data"
    model: str = "model"
    seed: int = 0
    checkpoint: Path | None = None  # the run may leave its state here and continue from it; the caller deletes it
    threads: int = 1
    log: logging.Logger = field(default_factory=lambda: logging.getLogger("dkef.stages.train"))
    # called as training goes on: iterations done, iterations at most, lowest validation loss
    watch: Callable[[int, int | None, float], None] = unwatched

    @property
    def cell(self) -> tuple[str, str, int]:
        """What the random streams are named by."""
        return self.dataset, self.model, self.seed

    def rng(self, purpose: str) -> np.random.Generator:
        """Independent stream of this cell for one purpose ("init", "minibatches", "noise", ...)."""
        return rng_for(purpose, *self.cell)


class Trainable(Protocol):
    """A frozen dataclass of hyper-parameters that can be fitted; what `_target_` in a model YAML names.

    Its module is imported while a workflow is planned: it must not import TensorFlow at the top.
    """

    def fit(self, train: Array, valid: Array, context: FitContext) -> Fit:
        """Fit to the rows of train [n, d], stopping early by valid [n', d]."""
        ...
