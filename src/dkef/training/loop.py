"""The training loop: steps, validations, early stopping, limits, checkpoints and log lines.

A model family says what a step, a validation and a record of the trace are; the loop says when. Killed and started
again it ends with the same numbers, because a step is a function of the progress alone.
"""

import logging
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Protocol

from dkef.core.arrays import Array
from dkef.training.checkpoint import read_progress, write_progress
from dkef.training.progress import Progress

CHECKPOINT_SECONDS = 25.0  # with the steps until the next look at the clock, less than half a minute
LOG_SECONDS = 30.0


class Learner(Protocol):
    """What a model family contributes."""

    def advance(self, progress: Progress, stop: int) -> Progress:
        """The progress after one iteration or more, but none beyond `stop`."""
        ...

    def validation_loss(self, progress: Progress) -> float: ...

    def record(self, progress: Progress, validation_loss: float | None) -> dict[str, float] | None:
        """A row of the trace, all with equal keys and one called iteration; None where there is nothing to record.

        There is no validation loss after steps that no validation follows.
        """
        ...

    def diverged(self, progress: Progress) -> bool: ...


@dataclass(frozen=True)
class Limits:
    """When to validate and when to stop; in iterations but for the time."""

    patience: int
    validation_interval: int
    max_iterations: int | None
    time_budget_hours: float
    checkpoint_interval: int | None = None  # beside the checkpoints by time

    def reason_to_stop(self, progress: Progress, diverged: bool) -> str:
        """diverged, max_iterations or time_budget; empty to go on."""
        if diverged:
            return "diverged"
        if self.max_iterations is not None and progress.iteration >= self.max_iterations:
            return "max_iterations"
        return "time_budget" if progress.seconds > 3600 * self.time_budget_hours else ""

    def next_validation(self, iteration: int) -> int:
        due = (iteration // self.validation_interval + 1) * self.validation_interval
        return due if self.max_iterations is None else min(due, self.max_iterations)


def run_training(
    learner: Learner, theta: Array, limits: Limits, checkpoint: Path | None, identity: str, log: logging.Logger,
    watch: Callable[[int, int | None, float], None] = lambda iteration, most, best: None,
) -> Progress:  # fmt: skip
    """The progress at the end of a run from theta, or from the checkpoint if one of this identity is there."""
    progress = read_progress(checkpoint, identity, log)
    if progress is None:
        progress = Progress.start(theta, limits.patience)
    else:
        log.info("continuing from iteration %d, %.0f s spent", progress.iteration, progress.seconds)
    begun = saved = logged = time.monotonic()
    first, spent = progress.iteration, progress.seconds
    while not progress.stopped:
        progress = _round(learner, progress, limits, spent - begun)
        watch(progress.iteration, limits.max_iterations, progress.stopping.best)
        now = time.monotonic()
        by_count = limits.checkpoint_interval and progress.iteration % limits.checkpoint_interval == 0
        if checkpoint is not None and (progress.stopped or by_count or now - saved >= CHECKPOINT_SECONDS):
            write_progress(checkpoint, progress, identity)
            saved = now
        if progress.stopped or now - logged >= LOG_SECONDS:
            logged = now
            _report(progress, limits, (progress.iteration - first) / max(now - begun, 1e-9), log)
    return progress


def _round(learner: Learner, progress: Progress, limits: Limits, clock: float) -> Progress:
    """Steps, and the validation that is due after them; `clock` makes time.monotonic() the seconds spent."""
    progress = learner.advance(progress, limits.next_validation(progress.iteration))
    progress = replace(progress, seconds=clock + time.monotonic())
    due = progress.iteration % limits.validation_interval == 0
    loss = None
    if due or limits.reason_to_stop(progress, learner.diverged(progress)):
        loss = learner.validation_loss(progress)
        progress = progress.validated(loss)
    record = learner.record(progress, loss)
    progress = progress if record is None else progress.recorded(record)
    if loss is None:
        return progress
    progress = replace(progress, seconds=clock + time.monotonic())
    diverged = learner.diverged(progress)
    exhausted = not diverged and progress.stopping.exhausted(progress.iteration)
    return replace(progress, stopped="converged" if exhausted else limits.reason_to_stop(progress, diverged))


def _report(progress: Progress, limits: Limits, rate: float, log: logging.Logger) -> None:
    """Where the run is, how fast it goes, and when it ends at the latest."""
    left = 3600 * limits.time_budget_hours - progress.seconds
    if limits.max_iterations is not None:
        left = min(left, (limits.max_iterations - progress.iteration) / max(rate, 1e-9))
    log.info(
        "iteration %d: validation loss %.4f, best %.4f at %d, skipped %d, %.1f iterations/s, %s",
        progress.iteration,
        progress.validation_loss,
        progress.stopping.best,
        progress.stopping.best_step,
        progress.skipped,
        rate,
        f"stopped: {progress.stopped}" if progress.stopped else f"at most {max(0.0, left):.0f} s left",
    )
