"""TensorFlow without Keras: `from dkef.core.tensorflow import tf`, where a graph is built and nowhere else.

TensorFlow loads Keras while it is imported, and Keras loads scikit-learn and Matplotlib: almost half of the five
seconds. With this variable it looks for an older Keras instead, which is not installed, and goes on. The variable is
taken back at once, so that tf.keras is there for models of others that use it.
"""

import os

__all__ = ["tf"]

VARIABLE = "TF_USE_LEGACY_KERAS"

_before = os.environ.get(VARIABLE)
os.environ[VARIABLE] = "1"
try:
    import tensorflow as tf
finally:
    if _before is None:
        del os.environ[VARIABLE]
    else:
        os.environ[VARIABLE] = _before
