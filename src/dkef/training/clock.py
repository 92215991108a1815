"""Processor time of one part of a run, reported apart from the others."""

import math
import time


class Clock:
    """Mean seconds of all threads in a `with` block, over its uses in this process but the first, which compiles."""

    def __init__(self) -> None:
        self.seconds, self.uses, self._start = 0.0, 0, 0.0

    def __enter__(self) -> None:
        self._start = time.process_time()

    def __exit__(self, *_: object) -> None:
        self.seconds += time.process_time() - self._start if self.uses else 0.0
        self.uses += 1

    @property
    def mean(self) -> float:
        """NaN before the second use."""
        return self.seconds / (self.uses - 1) if self.uses > 1 else math.nan
