import math

import pytest

from dkef.training.early_stopping import EarlyStopping


def steps_until_stop(losses: list[float], patience: int) -> tuple[int, EarlyStopping]:
    stopping = EarlyStopping(patience)
    for step, loss in enumerate(losses):
        stopping = stopping.observe(step, loss)
        if stopping.exhausted(step):
            return step, stopping
    raise AssertionError("never stopped")


def test_training_stops_exactly_patience_steps_after_the_lowest_loss():
    step, stopping = steps_until_stop([3.0, 1.0, 2.0, 1.5, 1.2, 1.1, 0.5], patience=3)
    assert (step, stopping.best, stopping.best_step) == (4, 1.0, 1)


def test_an_equal_loss_is_no_improvement():
    assert EarlyStopping(2).observe(0, 1.0).observe(1, 1.0).best_step == 0


@pytest.mark.parametrize("loss", [math.nan, math.inf, -math.inf])
def test_a_loss_that_is_not_finite_is_no_improvement(loss: float):
    assert EarlyStopping(2).observe(0, loss) == EarlyStopping(2)
    assert EarlyStopping(2).observe(1, 5.0).observe(2, loss) == EarlyStopping(2, 5.0, 1)
