"""Processor time of one part of a run, reported apart from the others."""

import time


class Clock:
    """Seconds of all threads in a `with` block, over its uses in this process but the first, which compiles."""

    def __init__(self) -> None:
        self.seconds, self.uses, self._start = 0.0, 0, 0.0

    def __enter__(self) -> None:
        self._start = time.process_time()

    def __exit__(self, *_: object) -> None:
        self.seconds += time.process_time() - self._start if self.uses else 0.0
        self.uses += 1

    def note(self, name: str) -> dict[str, float | int | str]:
        """Their mean under a name; nothing where a continued run had no time left to measure it."""
        return {name: round(self.seconds / (self.uses - 1), 6)} if self.uses > 1 else {}
