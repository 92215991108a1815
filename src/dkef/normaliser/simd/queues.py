"""f of many samples by a program with sieves: samples that pass one wait until they fill a block of their own."""

from typing import NamedTuple

import numpy as np

from dkef.core.arrays import Array
from dkef.core.compiled import njit
from dkef.normaliser.simd.program import SIEVE, Program, run_step
from dkef.normaliser.simd.tiles import STRIP, layer_tile
from dkef.normaliser.simd.vector import BLOCK, PANEL


class Queues(NamedTuple):
    """Which samples wait at each sieve; their features are in the workspace."""

    length: Array  # int64 [sieves]
    place: Array  # int64 [sieves, BLOCK], positions in f


def queues(program: Program) -> Queues:
    """Nobody waits."""
    sieves = max(1, int((program.steps[:, 0] == SIEVE).sum()))
    return Queues(np.zeros(sieves, np.int64), np.zeros((sieves, BLOCK), np.int64))


@njit
def _serve(f, program, following, rows, waiting, sieve, block):  # type: ignore[no-untyped-def]
    """Add the kernels of those who wait to their f, by the step that follows the sieve."""
    block[:] = 0.0
    run_step(program.steps[following], program.weights, rows, block)
    for i in range(waiting.length[sieve]):
        f[waiting.place[sieve, i]] += block[i]
    waiting.length[sieve] = 0


@njit
def _sift(f, start, count, program, s, rows, waiting, sieve, block):  # type: ignore[no-untyped-def]
    """Let samples within some ball wait. Step s has the balls' weights, then phi, width, norm, tiles, tests, queue."""
    _, at, phi, width, norm, tiles, tests, queue = program.steps[s]
    for tile in range(tiles):
        for strip in range(0, BLOCK, STRIP):
            layer_tile(rows, strip, program.weights, at, phi, width, norm, 1, tests + tile * PANEL, False)
        at += (1 + width + 1) * PANEL
    for k in range(1, tiles * PANEL):
        for i in range(BLOCK):
            rows[tests, i] = max(rows[tests, i], rows[tests + k, i])
    for i in range(count):
        if rows[tests, i] < 0:
            continue
        n = waiting.length[sieve]
        for j in range(width):
            rows[queue + j, n] = rows[phi + j, i]
        rows[queue + width, n] = rows[norm, i]
        waiting.place[sieve, n] = start + i
        waiting.length[sieve] = n + 1
        if n + 1 == BLOCK:
            _serve(f, program, s + 1, rows, waiting, sieve, block)


@njit
def evaluate_sieved(f, start, program, rows, waiting, own, block):  # type: ignore[no-untyped-def]
    """Add to f float64 [n] what samples start, start + 1, ... in the first d rows of the workspace get at once.

    What waits is added later: `serve_all` ends it. own and block are scratch, float64 [BLOCK].
    """
    count = min(BLOCK, len(f) - start)
    own[:] = 0.0
    s = sieve = 0
    while s < len(program.steps):
        if program.steps[s, 0] == SIEVE:
            _sift(f, start, count, program, s, rows, waiting, sieve, block)
            sieve += 1
            s += 2  # the step behind a sieve is for those who wait
        else:
            run_step(program.steps[s], program.weights, rows, own)
            s += 1
    for i in range(count):
        f[start + i] += own[i]


@njit
def serve_all(f, program, rows, waiting, block):  # type: ignore[no-untyped-def]
    """Add to f what is left in the queues."""
    sieve = 0
    for s in range(len(program.steps)):
        if program.steps[s, 0] == SIEVE:
            _serve(f, program, s + 1, rows, waiting, sieve, block)
            sieve += 1
