"""Importance weights: independent r with mean Z, by the million.

Weight number i of chunk c of a stage is a fixed function of (model key, stage, c, i). Chunks are cut into spans,
spans run on threads, and their moments are put together in a fixed order: results are the same for any number of
threads, and any chunk can be drawn on any machine.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor

import numpy as np
from threadpoolctl import threadpool_limits  # type: ignore[import-untyped]

from dkef.core.arrays import Array
from dkef.core.compiled import njit
from dkef.core.errors import DkefError
from dkef.core.streams import rng_for, stream_key
from dkef.models.kef.parameters import KefParameters
from dkef.models.protocol import BaseDensity
from dkef.normaliser.moments import Moments
from dkef.normaliser.sampling import Proposal, Stream, draw_block, proposal
from dkef.normaliser.simd.program import Program, pack, workspace
from dkef.normaliser.simd.queues import evaluate_sieved, queues, serve_all
from dkef.normaliser.simd.vector import BLOCK

LONG_STAGES = ("variance", "bound_z", "z")
# Disjoint streams: those of Appendix D, a first look at a proposal, and what decides how many samples to draw.
STAGES = ("percentile", "hoeffding", *LONG_STAGES, "choice", "stopping")
SPAN = 1 << 18  # samples of q0 a thread takes at once: a fraction of a second, and their f stay in the cache
assert SPAN % BLOCK == 0
TYPICAL = 2000  # samples of q0 that say how many are far from a kernel's inducing points

Halves = tuple[Moments, Moments]


@njit
def _span_f(f, program, proposal, stream, first, rows, waiting):  # type: ignore[no-untyped-def]
    """f of samples first .. first + len(f) - 1 of a stream."""
    words = np.empty((4, BLOCK), np.uint32)
    p = np.empty(BLOCK, np.float32)
    own, block = np.empty(BLOCK), np.empty(BLOCK)
    dimension = len(proposal.mu)
    f[:] = 0.0
    for start in range(0, len(f), BLOCK):
        draw_block(rows[:dimension], proposal, stream, first + start, words, p)
        evaluate_sieved(f, start, program, rows, waiting, own, block)
    serve_all(f, program, rows, waiting, block)


@njit
def _span_x(x, proposal, stream, first):  # type: ignore[no-untyped-def]
    """Samples themselves, float32 [count, d]."""
    words = np.empty((4, BLOCK), np.uint32)
    p = np.empty(BLOCK, np.float32)
    block = np.empty((x.shape[1], BLOCK), np.float32)
    for start in range(0, len(x), BLOCK):
        draw_block(block, proposal, stream, first + start, words, p)
        for i in range(min(BLOCK, len(x) - start)):
            x[start + i] = block[:, i]


class Weights(ABC):
    """The weights of one model under one proposal: independent r >= a with mean Z."""

    log_a: float | None  # None where r has no lower bound
    no_floor: str = "linear kernels have no lower bound"  # why, where it is None
    cost: int = 1  # evaluations of p~ behind one r: how proposals are compared, the same on every machine
    span: int = SPAN  # weights a thread computes at once

    @abstractmethod
    def span_log_r(self, stage: str, chunk: int, first: int, count: int) -> Array:
        """log r of weights first .. first + count - 1 of a chunk, [count]; first is a multiple of `span`."""

    def log_r(self, stage: str, chunk: int, count: int, threads: int = 1) -> Array:
        """log r of the first `count` weights of a chunk, [count]."""
        return np.concatenate(list(self._computed(stage, chunk, count, threads)))

    def moments(
        self, stage: str, chunk: int, count: int, threads: int = 1, progress: Callable[[int], None] = lambda done: None
    ) -> Halves:
        """Moments of r over a chunk of `count` weights, in two halves; `progress` is told how many are done."""
        halves: tuple[list[Moments], list[Moments]] = ([], [])
        done = 0
        for log_r in self._computed(stage, chunk, count, threads):
            middle = -(-len(log_r) // 2)
            halves[0].append(Moments.of_weights(log_r[:middle]))
            if len(log_r) > 1:
                halves[1].append(Moments.of_weights(log_r[middle:]))
            done += len(log_r)
            progress(done)
        return Moments.merge(halves[0]), Moments.merge(halves[1] or halves[0])

    def _computed(self, stage: str, chunk: int, count: int, threads: int) -> Iterator[Array]:
        """log r span by span, in order."""
        spans = [(first, min(self.span, count - first)) for first in range(0, count, self.span)]
        with threadpool_limits(1, user_api="blas"), ThreadPoolExecutor(threads) as pool:
            for log_r in pool.map(lambda span: self.span_log_r(stage, chunk, *span), spans):
                if not np.isfinite(log_r).all():
                    raise DkefError(
                        f"{stage} chunk {chunk}: f is not finite at some sample; this model has no usable log Z"
                    )
                yield log_r


class Q0Weights(Weights):
    """r = p~(y) / q0(y) of samples y from q0.

    `name` (for example dataset, model and seed) determines the random numbers.
    """

    def __init__(self, parameters: KefParameters, *name: str | int) -> None:
        typical = parameters.q0.sample(TYPICAL, rng_for("samples that a program is packed for"))
        self.program: Program = pack(parameters, samples=typical)
        self.proposal: Proposal = proposal(parameters.q0)
        self.log_offset = parameters.q0.log_normaliser()  # log r = f + this, q0 being unnormalised in p~
        self.log_a = log_lower_bound(parameters)
        self._key = stream_key("normalise", *name)

    def stream(self, stage: str, chunk: int) -> Stream:
        low, high = self._key & 0xFFFFFFFF, self._key >> 32 & 0xFFFFFFFF
        return Stream(np.uint32(low), np.uint32(high), np.uint32(STAGES.index(stage)), np.uint32(chunk))

    def samples(self, stage: str, chunk: int, count: int) -> Array:
        """The first `count` samples of a chunk, [count, d]."""
        x = np.empty((count, len(self.proposal.mu)), np.float32)
        _span_x(x, self.proposal, self.stream(stage, chunk), 0)
        return x

    def span_log_r(self, stage: str, chunk: int, first: int, count: int) -> Array:
        f, program = np.empty(count), self.program
        _span_f(f, program, self.proposal, self.stream(stage, chunk), first, workspace(program), queues(program))
        return f + self.log_offset


class DrawnWeights(Weights):
    """The same for a q0 and a p~ that are not compiled."""

    span = 1 << 14

    def __init__(
        self, q0: BaseDensity, log_p: Callable[[Array], Array], log_a: float | None, no_floor: str, *name: str | int
    ) -> None:
        self.q0, self.log_p, self.log_a, self.no_floor, self.name = q0, log_p, log_a, no_floor, name

    def span_log_r(self, stage: str, chunk: int, first: int, count: int) -> Array:
        y = self.q0.sample(count, rng_for("normalise q0", *self.name, stage, chunk, first))
        log_r: Array = self.log_p(y) - self.q0.log_density(y) + self.q0.log_normaliser()
        return log_r


def log_lower_bound(parameters: KefParameters) -> float | None:
    """log a, the smallest log r possible; None where f has no lower bound."""
    least = parameters.least_f
    return None if least is None else least + parameters.q0.log_normaliser()
