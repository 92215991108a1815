"""TensorFlow without Keras and without noise: `from dkef.core.tensorflow import tf`, where a graph is built.

TensorFlow loads Keras while it is imported, and Keras loads scikit-learn and Matplotlib: almost half of the five
seconds. With VARIABLE it looks for an older Keras instead, which is not installed, and goes on. The variable is
taken back at once, so that tf.keras is there for models of others that use it.

While it is loaded and looks for a GPU, it writes lines about CUDA and processors to stderr that no setting holds back.
They are left out unless the user has set TF_CPP_MIN_LOG_LEVEL=0 or the import fails.
"""

import contextlib
import os
import re
import sys
import tempfile
from collections.abc import Iterator

__all__ = ["tf"]

VARIABLE = "TF_USE_LEGACY_KERAS"
LEVEL = "TF_CPP_MIN_LOG_LEVEL"
NOISE = re.compile(
    rb"^(?:[IWE]\d{4} .*|WARNING: All log messages before absl.*|To enable the following instructions.*)\n",
    re.MULTILINE,
)


@contextlib.contextmanager
def _without_noise() -> Iterator[None]:
    """Hold back what C++ writes to stderr; show it all if this fails, and whatever else was written meanwhile."""
    if os.environ.setdefault(LEVEL, "2") == "0" or sys.stderr is None:  # a process without stderr
        yield
        return
    sys.stderr.flush()
    terminal = os.dup(2)
    with tempfile.TemporaryFile() as held:
        os.dup2(held.fileno(), 2)
        failed = True
        try:
            yield
            failed = False
        finally:
            sys.stderr.flush()
            os.dup2(terminal, 2)
            os.close(terminal)
            held.seek(0)
            text = held.read()
            os.write(2, text if failed else NOISE.sub(b"", text))


_before = os.environ.get(VARIABLE)
os.environ[VARIABLE] = "1"
try:
    with _without_noise():
        import tensorflow as tf

        tf.config.list_physical_devices()
finally:
    if _before is None:
        del os.environ[VARIABLE]
    else:
        os.environ[VARIABLE] = _before
