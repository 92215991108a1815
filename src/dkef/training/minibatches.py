"""Minibatches of training rows, each a function of its number alone."""

from collections.abc import Callable

import numpy as np

from dkef.core.arrays import Array


class Minibatches:
    """An endless sequence of rows, reshuffled at every pass, cut into minibatches that may span two passes.

    The shuffle of a pass is a stream of its own, so that minibatch i is a function of i alone.
    """

    def __init__(self, train: Array, rows: int, rng: Callable[[str], np.random.Generator]) -> None:
        self.train, self.rows, self.rng = train, rows, rng
        self._shuffled: tuple[int, Array] = (-1, np.empty(0, dtype=np.int64))

    def shuffle(self, number: int) -> Array:
        """Order of the rows in one pass; [n]."""
        if self._shuffled[0] != number:
            self._shuffled = number, self.rng(f"minibatches of pass {number}").permutation(len(self.train))
        return self._shuffled[1]

    def between(self, start: int, stop: int) -> Array:
        """Minibatches number start..stop-1; [stop - start, rows, D]."""
        n, first, last = len(self.train), start * self.rows, stop * self.rows
        passes = range(first // n, (last - 1) // n + 1)
        indices = np.concatenate([self.shuffle(k)[max(first - k * n, 0) : last - k * n] for k in passes])
        batches: Array = self.train[indices].reshape(stop - start, self.rows, -1)
        return batches
