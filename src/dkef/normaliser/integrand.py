"""The density p~ whose integral is wanted, as proposals and chains see it.

A kernel exponential family is compiled (`simd`); any other model is asked for its log density and its score. What a
model states beyond these decides what can be done: a q0 can be drawn from, and with a lower bound of
f = log p~ - log q0 Proposition 1 bounds the bias of log Z.
"""

import functools
from abc import ABC, abstractmethod

import numpy as np

from dkef.config.code import sources_digest
from dkef.core.arrays import Array, in_blocks
from dkef.core.compiled import njit
from dkef.core.errors import DkefError
from dkef.core.provenance import array_digest, canonical, config_digest
from dkef.models.kef.density import KefModel
from dkef.models.kef.langevin import ScoreField
from dkef.models.kef.parameters import BaseMeasure, KefParameters
from dkef.models.protocol import BaseDensity, DensityModel
from dkef.normaliser.simd.program import Program, evaluate_block, pack, workspace
from dkef.normaliser.simd.vector import BLOCK
from dkef.normaliser.weights import DrawnWeights, Q0Weights, Weights, log_lower_bound

BATCH = 4096  # points at which a model that is not compiled is evaluated at once
PLAIN_COST = 400  # distances to centres of a proposal that take as long as one evaluation of such a model, roughly


class Integrand(ABC):
    """p~ on R^d."""

    dimension: int
    q0: BaseDensity | None  # that p~ was built on; None where there is none
    points: Array  # [m, d]: where p~ may have peaks, beside the training rows
    kernels: int  # what one evaluation of p~ costs, in distances to centres of a proposal
    log_floor: float | None  # log of a lower bound of p~ / q0, q0 normalised; None where none is known
    no_floor: str  # and why

    @property
    @abstractmethod
    def digest(self) -> str:
        """Digest of everything that determines log p~; a chunk belongs to the model whose digest it carries."""

    @abstractmethod
    def log_density(self, x: Array) -> Array:
        """log p~ at points x [n, d] that are `rounded`; returns [n], all finite."""

    @abstractmethod
    def gradient(self, x: Array) -> tuple[Array, Array]:
        """log p~ [n] and its gradient [n, d] at x [n, d]; not finite where a chain has run away."""

    def fast_gradient(self, x: Array) -> tuple[Array, Array]:
        """The same to the precision of `log_density`: enough for chains, not for differences of gradients."""
        return self.gradient(x)

    @abstractmethod
    def q0_weights(self, *name: str | int) -> Weights:
        """p~ / q0 of draws of q0."""

    def rounded(self, x: Array) -> Array:
        """The points nearest to x at which p~ can be evaluated: a proposal is to be taken at the same ones."""
        return x


class KernelIntegrand(Integrand):
    """A kernel exponential family, compiled in float32."""

    def __init__(self, parameters: KefParameters) -> None:
        self.parameters, self.q0, self.points = parameters, parameters.q0, parameters.z
        self.dimension = int(parameters.z.shape[1])
        self.kernels = len(parameters.z) * len(parameters.components)
        self.log_floor, self.no_floor = log_lower_bound(parameters), Q0Weights.no_floor

    @functools.cached_property
    def digest(self) -> str:
        structure = config_digest(canonical(self.parameters.structure()))
        arrays = self.parameters.arrays()
        return config_digest(structure + array_digest(*(arrays[name] for name in sorted(arrays))))

    @functools.cached_property
    def _program(self) -> Program:
        return pack(self.parameters)

    @functools.cached_property
    def _field(self) -> ScoreField:
        return ScoreField(self.parameters)

    @functools.cached_property
    def _gradient_program(self) -> Program:
        return pack(self.parameters, gradient=True)

    def log_density(self, x: Array) -> Array:
        f = np.empty(len(x))
        _points_f(f, x.astype(np.float32), self._program, workspace(self._program))
        if not np.isfinite(f).all():
            raise DkefError("f is not finite at some sample; this model has no usable log Z")
        log_p: Array = f + self.parameters.q0.log_density(x)
        return log_p

    def gradient(self, x: Array) -> tuple[Array, Array]:
        return self._field(x)

    def fast_gradient(self, x: Array) -> tuple[Array, Array]:
        f, gradient, program = np.empty(len(x)), np.empty(x.shape), self._gradient_program
        _points_gradient(f, gradient, x.astype(np.float32), program, workspace(program))
        log_q0, score = self.parameters.q0.log_density_and_score(x)
        return f + log_q0, gradient + score

    def q0_weights(self, *name: str | int) -> Weights:
        return Q0Weights(self.parameters, *name)

    def rounded(self, x: Array) -> Array:
        return x.astype(np.float32).astype(np.float64)


class ModelIntegrand(Integrand):
    """Any unnormalised model, by its log density and its score."""

    def __init__(self, model: DensityModel) -> None:
        self.model, self.q0, self.dimension = model, model.q0, model.dimension
        self.points, self.kernels = np.zeros((0, model.dimension)), PLAIN_COST
        self.log_floor, self.no_floor = self._floor()

    def _floor(self) -> tuple[float | None, str]:
        who, q0, least = type(self.model).__name__, self.q0, self.model.least_f
        if q0 is None:
            return None, f"{who} states no q0, and so no lower bound of its weights"
        if not isinstance(q0, BaseMeasure):
            return None, f"q0 of {who} is a {type(q0).__name__}, and only a BaseMeasure is known to outlast normals"
        if least is None:
            return None, f"{who} states no lower bound of log p~ - log q0 (least_f)"
        return least + q0.log_normaliser(), ""

    @functools.cached_property
    def digest(self) -> str:
        """Of its numbers, and of the code that makes a density of them: nobody else vouches for a user's own."""
        kind, arrays = type(self.model), self.model.arrays()
        structure = canonical(
            [kind.__qualname__, sources_digest(kind.__module__), self.model.settings(), sorted(arrays)]
        )
        return config_digest(structure + array_digest(*(np.asarray(arrays[name]) for name in sorted(arrays))))

    def log_density(self, x: Array) -> Array:
        (log_p,) = in_blocks(lambda rows: [self.model.log_density(rows)], x, BATCH)
        if not np.isfinite(log_p).all():
            at = int(np.argmin(np.isfinite(log_p)))
            who, where = type(self.model).__name__, np.array2string(x[at], precision=3)
            raise DkefError(
                f"{who}: the log density is {log_p[at]} at {where}; log Z is estimated where it is finite everywhere"
            )
        return log_p

    def gradient(self, x: Array) -> tuple[Array, Array]:
        log_p, score = self.model.log_density_and_score(x)
        return np.asarray(log_p, np.float64), np.asarray(score, np.float64)

    def q0_weights(self, *name: str | int) -> Weights:
        if self.q0 is None:
            raise DkefError(
                f"{type(self.model).__name__} has no q0 to draw from; choose the proposal mixture, annealed or cheapest"
            )
        return DrawnWeights(self.q0, self.log_density, self.log_floor, self.no_floor, *name)


def integrand_of(model: DensityModel, who: object) -> Integrand:
    """An unnormalised model as what is to be integrated; one sentence for a normalised one."""
    if model.normalised:
        raise DkefError(f"{who} holds a {type(model).__name__}, which is normalised and needs no log Z from this stage")
    return KernelIntegrand(model.parameters) if isinstance(model, KefModel) else ModelIntegrand(model)


@njit
def _points_f(f, x, program, rows):  # type: ignore[no-untyped-def]
    """f at given points x float32 [n, d]."""
    block = np.empty(BLOCK)
    for start in range(0, len(x), BLOCK):
        count = min(BLOCK, len(x) - start)
        for i in range(count):
            for j in range(x.shape[1]):
                rows[j, i] = x[start + i, j]
        evaluate_block(program, rows, block)
        for i in range(count):  # a loop, because array expressions take seconds to compile
            f[start + i] = block[i]


@njit
def _points_gradient(f, gradient, x, program, rows):  # type: ignore[no-untyped-def]
    """f and its gradient [n, d] at given points x float32 [n, d]."""
    block, d = np.empty(BLOCK), x.shape[1]
    for start in range(0, len(x), BLOCK):
        count = min(BLOCK, len(x) - start)
        for i in range(count):
            for j in range(d):
                rows[j, i] = x[start + i, j]
        evaluate_block(program, rows, block)
        for i in range(count):
            f[start + i] = block[i]
            for j in range(d):
                gradient[start + i, j] = rows[d + j, i]
