"""What every trained density model offers, and what every trainable specification promises."""

import abc
import logging
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol, Self

import numpy as np

from dkef.config.specification import is_normalised
from dkef.core.arrays import Array
from dkef.core.errors import DkefError
from dkef.core.streams import rng_for

DIFFERENCE = 1e-3  # step of the differences of scores, in coordinates whose spread is near 1


@dataclass(frozen=True)
class Evaluation:
    """A model at some points: log density [n], its gradient [n, d] and second derivative in each coordinate [n, d]."""

    log_density: Array
    score: Array
    curvature: Array


class BaseDensity(Protocol):
    """A density that can be drawn from, such as q0 of a kernel exponential family."""

    def log_density(self, x: Array) -> Array:
        """At x [n, d], not normalised; returns [n]."""
        ...

    def score(self, x: Array) -> Array: ...

    def sample(self, n: int, rng: np.random.Generator) -> Array: ...

    def log_normaliser(self) -> float:
        """log of the integral of exp(log_density)."""
        ...


class DensityError(DkefError, TypeError):
    """A class that is no whole density model."""


class DensityModel(abc.ABC):
    """A fitted density p(x) on R^d; unnormalised models know p up to the constant Z.

    A subclass keeps its parameters as plain NumPy arrays and says how to write and restore them, so that a model
    file holds numbers and settings and nothing that is executed on loading. It gives `log_density` and either `score`
    or `evaluate`; with no more than that, log Z of an unnormalised one can be estimated.
    """

    # Follows the flag of the specification (`is_normalised`): by `class MyDensity(DensityModel, of=MySpecification)`,
    # and in any case once it is fitted (`fit_model`) or read from a file.
    normalised: bool = True
    log_z: float | None = None  # log of the integral of exp(log_density), once somebody has estimated it

    def __init_subclass__(cls, of: type | None = None, **more: Any) -> None:
        super().__init_subclass__(**more)
        if "normalised" in vars(cls):
            raise DensityError(
                f"{cls.__name__} states `normalised`, which belongs to its specification: write it there, once, and "
                f"`class {cls.__name__}(DensityModel, of=...)` here"
            )
        if cls.score is DensityModel.score and cls.evaluate is DensityModel.evaluate:
            raise DensityError(f"{cls.__name__} has no score: define `score(x)` or `evaluate(x, batch)`")
        if of is not None:
            cls.normalised = is_normalised(of)

    @property
    def log_z_status(self) -> str:
        """Of a normalised model: "ok", or "untrusted: why" where it rests on an estimated constant that is in doubt."""
        return "ok"

    @property
    @abc.abstractmethod
    def dimension(self) -> int:
        """Number of coordinates d."""

    @property
    def q0(self) -> BaseDensity | None:
        """Where log p~ = f + log q0 with a q0 that can be drawn from, that q0: log Z may then rest on its draws."""
        return None

    @property
    def least_f(self) -> float | None:
        """A lower bound of f = log p~ - log q0, which the paper's bound on the bias of log Z needs; None for none."""
        return None

    def evaluate(self, x: Array, batch: int = 1000) -> Evaluation:
        """Log density, score and curvature at x [n, d], `batch` rows at a time, in float64.

        Unless a subclass knows better, the curvature is a difference of scores.
        """
        return Evaluation(self.log_density(x), self.score(x), _differences(self.score, x))

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

    def log_density_and_score(self, x: Array) -> tuple[Array, Array]:
        """Both at x, [n] and [n, d], without the curvature: what chains that sample the density need at every step."""
        return self.log_density(x), self.score(x)

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


def _differences(score: Callable[[Array], Array], x: Array) -> Array:
    """d_d of the d-th score by central differences, [n, d]: right to about 1e-9 of the score and its derivatives."""
    curvature = np.empty_like(x, dtype=np.float64)
    for d in range(x.shape[1]):
        step = np.zeros(x.shape[1])
        step[d] = DIFFERENCE
        far = score(x + 2 * step)[:, d] - score(x - 2 * step)[:, d]
        near = score(x + step)[:, d] - score(x - step)[:, d]
        curvature[:, d] = (8 * near - far) / (12 * DIFFERENCE)
    return curvature


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

    Its module is imported while a workflow is planned: it must not import TensorFlow at the top. As class variables it
    may state what else planning has to know:

    normalised: ClassVar[bool] = False   its densities are known up to a constant, and log Z is to be estimated
    has_q0: ClassVar[bool] = True        they have a `q0`, so that `normaliser.proposal=q0` is possible
    no_log_z: ClassVar[str] = "why"      nobody can estimate log Z, for example because the density jumps
    """

    def fit(self, train: Array, valid: Array, context: FitContext) -> Fit:
        """Fit to the rows of train [n, d], stopping early by valid [n', d]."""
        ...


def fit_model(specification: Trainable, train: Array, valid: Array, context: FitContext) -> Fit:
    """Fit to the rows of train [n, d], stopping early by valid [n', d]; the density takes over the flag."""
    fit = specification.fit(train, valid, context)
    fit.model.normalised = is_normalised(specification)
    return fit
