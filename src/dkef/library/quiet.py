"""Computing inside somebody else's process: their threads, their environment and their stderr stay theirs."""

import contextlib
import os
import sys
from collections.abc import Iterator

from threadpoolctl import threadpool_limits  # type: ignore[import-untyped]


@contextlib.contextmanager
def computing(threads: int, needs_tensorflow: bool = True) -> Iterator[None]:
    """BLAS bound to a number of threads for a while, and TensorFlow for good if nobody has imported it yet."""
    if needs_tensorflow and "tensorflow" not in sys.modules:
        _start_tensorflow(threads)
    with threadpool_limits(threads):
        yield


def _start_tensorflow(threads: int) -> None:
    """Import TensorFlow and let it look for devices."""
    bound = {"TF_NUM_INTRAOP_THREADS": str(threads), "TF_NUM_INTEROP_THREADS": "1"}
    absent = [name for name in bound if name not in os.environ]
    os.environ.update({name: bound[name] for name in absent})
    try:
        from dkef.core.tensorflow import tf

        tf.zeros([1])  # the first operation brings up the devices, which read the variables
    finally:
        for name in absent:
            del os.environ[name]
