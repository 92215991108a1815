"""Random numbers, named by what they are for and which cell of the experiment they serve."""

import hashlib
import json

import numpy as np


def stream_key(purpose: str, *cell: str | int) -> int:
    """128-bit key of one named stream: equal names give equal keys, other names independent ones."""
    digest = hashlib.sha256(json.dumps([purpose, *cell]).encode()).digest()
    return int.from_bytes(digest[:16], "little")


def rng_for(purpose: str, *cell: str | int) -> np.random.Generator:
    """Independent stream for one purpose in one cell of the experiment.

    Adding a dataset, or running cells in another order, leaves every other stream as it was.
    """
    return np.random.Generator(np.random.Philox(key=stream_key(purpose, *cell)))
