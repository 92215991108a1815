"""Importance weights r = p~(y) / q0(y) of samples y from q0, by the million.

Sample number i of chunk c of a stage is a fixed function of (model key, stage, c, i). Chunks are cut into spans,
spans run on threads, and their moments are put together in a fixed order: results are the same for any number of
threads, and any chunk can be drawn on any machine.
"""

import math
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor

import numpy as np

from dkef.errors import DkefError
from dkef.models.kef_parameters import KefParameters
from dkef.models.protocol import Array
from dkef.normaliser.compiled import njit
from dkef.normaliser.moments import Moments
from dkef.normaliser.program import Program, evaluate_block, pack, workspace
from dkef.normaliser.sampling import Proposal, Stream, draw_block, proposal
from dkef.normaliser.vector import BLOCK
from dkef.streams import stream_key

LONG_STAGES = ("variance", "bound_z", "z")
STAGES = ("percentile", "hoeffding", *LONG_STAGES)  # disjoint streams, in the order of Appendix D
SPAN = 1 << 18  # samples a thread takes at once: a fraction of a second, and their f stay in the cache
assert SPAN % BLOCK == 0


@njit
def _span_f(f, program, proposal, stream, first, rows):  # type: ignore[no-untyped-def]
    """f of samples first .. first + len(f) - 1 of a stream."""
    words = np.empty((4, BLOCK), np.uint32)
    p = np.empty(BLOCK, np.float32)
    block = np.empty(BLOCK)
    dimension = len(proposal.mu)
    for start in range(0, len(f), BLOCK):
        draw_block(rows[:dimension], proposal, stream, first + start, words, p)
        evaluate_block(program, rows, block)
        for i in range(min(BLOCK, len(f) - start)):
            f[start + i] = block[i]


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


def _spans(samples: int) -> Iterator[tuple[int, int]]:
    """(first sample, number of samples) of each span."""
    for first in range(0, samples, SPAN):
        yield first, min(SPAN, samples - first)


class Q0Weights:
    """The weights of one model under the proposal q0.

    `name` (for example dataset, model and seed) determines the random numbers.
    """

    def __init__(self, parameters: KefParameters, *name: str | int) -> None:
        self.program: Program = pack(parameters)
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

    def log_r(self, stage: str, chunk: int, count: int, threads: int = 1) -> Array:
        """log r of the first `count` samples of a chunk, [count]."""
        with ThreadPoolExecutor(threads) as pool:
            parts = pool.map(lambda span: self._log_r(stage, chunk, *span), _spans(count))
            return np.concatenate(list(parts))

    def moments(
        self, stage: str, chunk: int, count: int, threads: int = 1, progress: Callable[[int], None] = lambda done: None
    ) -> Moments:
        """Moments of r over a chunk of `count` samples; `progress` is told how many are done."""
        parts: list[Moments] = []
        done = 0
        with ThreadPoolExecutor(threads) as pool:
            for part in pool.map(lambda span: Moments.of_weights(self._log_r(stage, chunk, *span)), _spans(count)):
                parts.append(part)
                done += part.count
                progress(done)
        return Moments.merge(parts)

    def _log_r(self, stage: str, chunk: int, first: int, count: int) -> Array:
        f = np.empty(count)
        _span_f(f, self.program, self.proposal, self.stream(stage, chunk), first, workspace(self.program))
        if not np.isfinite(f).all():
            raise DkefError(f"{stage} chunk {chunk}: f is not finite at some sample; this model has no usable log Z")
        return f + self.log_offset


def log_lower_bound(parameters: KefParameters) -> float | None:
    """log a, the smallest log r possible: each kernel value is least (0) or greatest (rho) where that hurts most.

    None for linear kernels, which are not bounded.
    """
    if any(component.kind != "gaussian" for component in parameters.components):
        return None
    rho = np.array([component.rho for component in parameters.components], dtype=np.float64)
    least = np.minimum(np.outer(parameters.alpha.astype(np.float64), rho), 0.0)
    return math.fsum(least.ravel()) + parameters.q0.log_normaliser()
