"""What the machine can do, measured in the same process as the thing compared with it."""

import time
from collections.abc import Callable

import numpy as np


def best_time(call: Callable[[], object], repeats: int = 5) -> float:
    """Shortest wall time of a call in seconds: the one least disturbed by the rest of the machine."""
    times = []
    for _ in range(repeats):
        start = time.perf_counter()
        call()
        times.append(time.perf_counter() - start)
    return min(times)


def sgemm_time(n: int = 2048) -> float:
    """T: seconds of one n x n x n float32 product, the faster of NumPy and TensorFlow, on all threads of each."""
    import tensorflow as tf

    a = np.random.default_rng(0).standard_normal((n, n), dtype=np.float32)
    t = tf.constant(a)
    numpy_time = best_time(lambda: a @ a)
    tensorflow_time = best_time(lambda: tf.matmul(t, t).numpy())
    return min(numpy_time, tensorflow_time)
