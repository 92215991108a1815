"""What the machine can do, measured in the same process as the thing compared with it; and what figures may be."""

import math
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True)
class Limit:
    """The range that a figure has to lie in, and why."""

    figure: str
    reason: str
    least: float = -math.inf
    most: float = math.inf

    def miss(self, value: float) -> str:
        """One sentence if the value is outside; empty otherwise."""
        if self.least <= value <= self.most:
            return ""
        bound = f"at least {self.least:g}" if not value >= self.least else f"at most {self.most:g}"
        return f"{self.figure} is {value:.4g} and should be {bound}: {self.reason}"


def misses(figures: Mapping[str, float], limits: Iterable[Limit]) -> list[str]:
    """A sentence for each figure out of its range."""
    return [sentence for limit in limits if (sentence := limit.miss(figures[limit.figure]))]


def best_time(call: Callable[[], object], repeats: int = 5, clock: Callable[[], float] = time.perf_counter) -> float:
    """Shortest time of a call in seconds, by default wall time: the one least disturbed by other work."""
    times = []
    for _ in range(repeats):
        start = clock()
        call()
        times.append(clock() - start)
    return min(times)


def sgemm_time(n: int = 2048, clock: Callable[[], float] = time.perf_counter) -> float:
    """T: seconds of one n x n x n float32 product, the faster of NumPy and TensorFlow, on all threads of each."""
    import tensorflow as tf

    a = np.random.default_rng(0).standard_normal((n, n), dtype=np.float32)
    t = tf.constant(a)
    numpy_time = best_time(lambda: a @ a, clock=clock)
    tensorflow_time = best_time(lambda: tf.matmul(t, t).numpy(), clock=clock)
    return min(numpy_time, tensorflow_time)
