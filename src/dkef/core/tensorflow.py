"""TensorFlow without Keras and without noise: `from dkef.core.tensorflow import tf`, where a graph is built.

TensorFlow loads Keras while it is imported, and Keras loads scikit-learn and Matplotlib: almost half of the five
seconds. With VARIABLE it looks for an older Keras instead, which is not installed, and goes on. The variable is
taken back at once, so that tf.keras is there for models of others that use it.

Of the rest, 40 % are names that nobody here asks for: the interface of version 1, distribution, TPUs, an old Keras. The
namespaces of its interface are therefore loaded when they are first used, those of this package at once.

While it is loaded and looks for a GPU, it writes lines about CUDA and processors to stderr that no setting holds back.
They are left out unless the user has set TF_CPP_MIN_LOG_LEVEL=0 or the import fails.
"""

import contextlib
import os
import re
import sys
import tempfile
from collections.abc import Iterator, Sequence
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec, PathFinder
from importlib.util import LazyLoader

__all__ = ["tf"]

VARIABLE = "TF_USE_LEGACY_KERAS"
LEVEL = "TF_CPP_MIN_LOG_LEVEL"
NAMESPACES = "tensorflow._api.v2."
# These share their names with packages of TensorFlow's own, which would take their places in `tf` if they came later.
AT_ONCE = (f"{NAMESPACES}distribute", f"{NAMESPACES}lite")
NOISE = re.compile(
    rb"^(?:[IWE]\d{4} .*|WARNING: All log messages before absl.*|To enable the following instructions.*)\n",
    re.MULTILINE,
)


class _WhenUsed(MetaPathFinder):
    """Lets the first use of a namespace such as tf.nn load it; tf.compat.v1 is one of them."""

    def find_spec(self, name: str, path: Sequence[str] | None, _target: object = None) -> ModuleSpec | None:
        if not name.startswith(NAMESPACES) or name.startswith(AT_ONCE):
            return None
        spec = PathFinder.find_spec(name, path)
        if spec is not None and spec.loader is not None:
            spec.loader = LazyLoader(spec.loader)
        return spec


@contextlib.contextmanager
def _without_what_nobody_uses() -> Iterator[None]:
    """Leave namespaces to their first use while TensorFlow is imported."""
    finder = _WhenUsed()
    sys.meta_path.insert(0, finder)
    try:
        yield
    finally:
        sys.meta_path.remove(finder)


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
    with _without_noise(), _without_what_nobody_uses():
        import tensorflow as tf

        tf.config.list_physical_devices()
        # Here they are loaded by one thread, whoever fits models in several.
        for used in (tf.linalg, tf.math):
            dir(used)
finally:
    if _before is None:
        del os.environ[VARIABLE]
    else:
        os.environ[VARIABLE] = _before
