"""The training loop on a toy: a sum of squares, with the steps of gradient descent as witness."""

import itertools
import logging
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from dkef.core.streams import rng_for
from dkef.training import loop
from dkef.training.adam import Adam
from dkef.training.layout import Layout
from dkef.training.loop import Limits, run_training
from dkef.training.progress import Progress

START = np.array([3.0, -2.0])
LIMITS = Limits(patience=1000, validation_interval=4, max_iterations=10, time_budget_hours=1.0)
LOG = logging.getLogger("test")


class Halving:
    """Every step halves theta, `block` steps at a time; the validation loss is |theta|^2."""

    def __init__(self, block: int = 1) -> None:
        self.block, self.blocks = block, 0

    def advance(self, progress: Progress, stop: int) -> Progress:
        self.blocks += 1
        steps = min(self.block, stop - progress.iteration)
        theta = progress.theta / 2**steps
        total = progress.loss_sum + float(np.abs(theta).sum())
        return replace(progress, theta=theta, iteration=progress.iteration + steps, loss_sum=total)

    def validation_loss(self, progress: Progress) -> float:
        return float(progress.theta @ progress.theta)

    def record(self, progress: Progress, validation_loss: float | None) -> dict[str, float] | None:
        if validation_loss is None:
            return None
        return {"iteration": progress.iteration, "loss": progress.mean_loss, "validation": validation_loss}

    def diverged(self, progress: Progress) -> bool:
        return False


def run(learner: Halving, checkpoint: Path | None = None, limits: Limits = LIMITS) -> Progress:
    return run_training(learner, START, limits, checkpoint, "toy", LOG)


def test_validations_come_at_their_interval_and_at_the_end():
    progress = run(Halving(block=3))
    assert [row["iteration"] for row in progress.trace] == [4, 8, 10]
    assert progress.stopped == "max_iterations"
    np.testing.assert_array_equal(progress.theta, START / 2**10)
    np.testing.assert_array_equal(progress.best_theta, START / 2**10)


def test_a_run_killed_after_any_block_ends_with_the_same_progress(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(loop, "CHECKPOINT_SECONDS", 0.0)
    whole = run(Halving(block=3))

    class Killed(Halving):
        def advance(self, progress: Progress, stop: int) -> Progress:
            if self.blocks == 1:
                raise KeyboardInterrupt
            return super().advance(progress, stop)

    checkpoint, kills = tmp_path / "checkpoint.h5", 0
    while kills < 100:
        try:
            resumed = run(Killed(block=3), checkpoint)
            break
        except KeyboardInterrupt:
            kills += 1
    assert kills == 4  # blocks of 3, 1, 3, 1 and 2 steps: the sums of losses, too, cross a kill
    assert resumed.trace == whole.trace
    np.testing.assert_array_equal(resumed.best_theta, whole.best_theta)


def test_checkpoints_lie_less_than_half_a_minute_apart_even_between_validations(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    clock, times = itertools.count(0.0, 1.0), []  # a second passes at every look
    monkeypatch.setattr(loop.time, "monotonic", lambda: next(clock))
    monkeypatch.setattr(loop, "write_progress", lambda path, progress, identity: times.append(next(clock)))
    run(Halving(), tmp_path / "checkpoint.h5", replace(LIMITS, validation_interval=200, max_iterations=120))
    assert len(times) >= 8
    assert max(np.diff([0.0, *times])) < 30


def test_the_time_budget_counts_the_seconds_of_earlier_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    checkpoint = tmp_path / "checkpoint.h5"
    monkeypatch.setattr(loop, "read_progress", lambda *_: replace(Progress.start(START, 1000), seconds=3601.0))
    progress = run(Halving(), checkpoint)
    assert (progress.stopped, progress.iteration, len(progress.trace)) == ("time_budget", 1, 1)


def test_patience_is_judged_at_validations():
    progress = run(Halving(), limits=replace(LIMITS, patience=1, max_iterations=None, time_budget_hours=1e9))
    # |theta|^2 is 0 from the iteration on where halving underflows, so the next validation improves nothing.
    assert progress.stopped == "converged"
    assert progress.iteration - progress.stopping.best_step == 4


def test_adam_in_either_library_follows_the_formulas_of_its_paper():
    import tensorflow as tf

    gradients = rng_for("test", "adam gradients").standard_normal((5, 3))
    m, v, theta = np.zeros(3), np.zeros(3), np.ones(3)
    ours, adam = np.ones(3), Adam.start(3)
    theirs, compiled = tf.ones(3, tf.float64), Adam(*(tf.zeros(3, tf.float64),) * 2, tf.constant(0.0, tf.float64))
    for t, g in enumerate(gradients, start=1):
        m, v = 0.9 * m + 0.1 * g, 0.999 * v + 0.001 * g**2
        # The form at the end of Section 2 of the paper, whose epsilon is not scaled by the correction.
        theta = theta - 0.1 * np.sqrt(1 - 0.999**t) / (1 - 0.9**t) * m / (np.sqrt(v) + 1e-8)
        ours, adam = adam.step(ours, g, 0.1)
        theirs, compiled = compiled.step(theirs, tf.constant(g), 0.1)
    # Five steps of a few operations in float64.
    np.testing.assert_allclose(ours, theta, rtol=1e-13)
    np.testing.assert_allclose(theirs, theta, rtol=1e-13)
    assert adam.count == 5


def test_a_layout_gives_back_what_was_packed_and_what_was_frozen():
    values = {"a": np.arange(6.0).reshape(2, 3), "b": np.array([7.0]), "c": np.array([8.0, 9.0])}
    layout = Layout.of(values, {"b"})
    theta = layout.pack(values)
    assert theta.tolist() == [0, 1, 2, 3, 4, 5, 8, 9]
    assert layout.mask("c").tolist() == [0] * 6 + [1, 1]
    for name, array in layout.unpack(theta).items():
        np.testing.assert_array_equal(array, values[name])
