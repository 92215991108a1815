"""Where a training run stands."""

import math
from dataclasses import dataclass, field, replace

from dkef.core.arrays import Array
from dkef.training.adam import Adam
from dkef.training.early_stopping import EarlyStopping


@dataclass(frozen=True)
class Progress:
    """Everything that the next iteration depends on; random numbers are named by iteration and need no state."""

    theta: Array  # [P], all trained parameters
    adam: Adam
    best_theta: Array  # [P], at the lowest validation loss
    stopping: EarlyStopping
    iteration: int = 0  # iterations done
    skipped: int = 0  # of which without a step, because there was no finite gradient
    skipped_in_a_row: int = 0
    loss_sum: float = 0.0  # of the training losses since the last record of the trace
    gradient_norm: float = math.nan  # of the last gradient, where the family measures it
    validation_loss: float = math.nan  # the newest, for log lines
    seconds: float = 0.0  # spent so far, over all runs
    stopped: str = ""  # why training ended; empty while it goes on
    trace: list[dict[str, float]] = field(default_factory=list)

    @classmethod
    def start(cls, theta: Array, patience: int) -> "Progress":
        return cls(theta, Adam.start(len(theta), theta.dtype.str), theta, EarlyStopping(patience))

    @property
    def mean_loss(self) -> float:
        """Mean training loss since the last record."""
        last = int(self.trace[-1]["iteration"]) if self.trace else 0
        return self.loss_sum / (self.iteration - last)

    def without_step(self) -> "Progress":
        """After a step that had no finite gradient and was not taken."""
        return replace(self, skipped=self.skipped + 1, skipped_in_a_row=self.skipped_in_a_row + 1)

    def validated(self, loss: float) -> "Progress":
        """After a validation; a new lowest loss makes the current vector the best one."""
        stopping = self.stopping.observe(self.iteration, loss)
        improved = stopping is not self.stopping
        best_theta = self.theta if improved else self.best_theta
        return replace(self, stopping=stopping, best_theta=best_theta, validation_loss=loss)

    def recorded(self, record: dict[str, float]) -> "Progress":
        """With one more record, and the sum of losses at zero again."""
        return replace(self, trace=[*self.trace, record], loss_sum=0.0)
