"""When to stop: no new lowest validation loss for `patience` steps."""

import math
from dataclasses import dataclass, replace


@dataclass(frozen=True)
class EarlyStopping:
    """The best validation loss so far and when it was seen; a value, replaced at every observation.

    Steps are counted in whatever unit the patience is given in (minibatches or epochs).
    """

    patience: int
    best: float = math.inf
    best_step: int = 0

    def observe(self, step: int, loss: float) -> "EarlyStopping":
        """The state after seeing `loss` at `step`; `.best_step == step` says that it was an improvement.

        A loss that is not finite, or not lower, improves nothing.
        """
        improved = math.isfinite(loss) and loss < self.best
        return replace(self, best=loss, best_step=step) if improved else self

    def exhausted(self, step: int) -> bool:
        """Whether the last improvement lies `patience` or more steps back."""
        return step - self.best_step >= self.patience
