"""Maximum likelihood for flows: Adam on minibatches, stopped early by the validation log-likelihood."""

import math
from dataclasses import replace

import numpy as np

from dkef.core.arrays import Array
from dkef.models.flows.density import FlowModel, FlowShape, draw_flow
from dkef.models.flows.spec import Flow
from dkef.models.flows.steps import Compiled, compile_flow
from dkef.models.protocol import Fit, FitContext
from dkef.training.adam import Adam
from dkef.training.checkpoint import checkpoint_identity
from dkef.training.layout import Layout
from dkef.training.loop import Limits, run_training
from dkef.training.minibatches import Minibatches
from dkef.training.progress import Progress

BLOCK_STEPS = 64  # steps in one call of the compiled loop: enough to hide the call, few enough to watch the clock


def fit_flow(spec: Flow, train: Array, valid: Array, context: FitContext) -> Fit:
    """Fit a flow to train [n, D], stopping early by valid [n', D]."""
    shape = flow_shape(spec, train.shape[1])
    drawn, orders = draw_flow(
        shape, (spec.width,) * spec.hidden_layers, spec.degrees, spec.input_order, context.rng("init")
    )
    layout = Layout.of(drawn.parameters)
    free = layout.pack(drawn.free).astype(np.float32)
    learner = MaximumLikelihood(spec, train.astype(np.float32), valid.astype(np.float32), context)
    compiled = compile_flow(spec, shape, layout, free, spec.compiles(len(train)))
    progress = learner.run(compiled, layout.pack(drawn.parameters).astype(np.float32))
    model = FlowModel.with_statistics(shape, layout.unpack(progress.best_theta), orders, train)
    notes: dict[str, float | int | str] = {
        "iterations": progress.iteration,
        "best_iteration": progress.stopping.best_step,
        "parameters": int(free.sum()),
    }
    if math.isfinite(progress.stopping.best):
        notes["best_validation_log_likelihood"] = -progress.stopping.best
    status = "diverged" if progress.stopped == "diverged" else "ok"
    return Fit(model, status, progress.stopped, progress.trace, notes)


def flow_shape(spec: Flow, dimension: int) -> FlowShape:
    """The density that a spec describes on R^dimension."""
    return FlowShape(
        dimension=dimension,
        transform=spec.transform,
        layers=spec.layers,
        components=spec.components,
        batch_norm=spec.batch_norm,
        activation=spec.activation,
        shift_activation=spec.shift_activation,
    )


class MaximumLikelihood:
    """Steps and validations of one run; what `dkef.training.loop` calls a learner. The loss is -log-likelihood."""

    def __init__(self, spec: Flow, train: Array, valid: Array, context: FitContext) -> None:
        self.spec, self.train, self.valid, self.context = spec, train, valid, context
        self.statistics_rows = train[: spec.statistics_rows]
        self.batches = Minibatches(train, min(spec.batch_rows, len(train)), context.rng)
        self.unit = math.ceil(len(train) / self.batches.rows) if spec.patience_unit == "epochs" else 1
        # Of one shape for all calls: XLA compiles for every shape.
        steps = min(spec.interval * self.unit, BLOCK_STEPS)
        self.block = np.zeros((steps, self.batches.rows, train.shape[1]), dtype=np.float32)

    def run(self, compiled: Compiled, theta: Array) -> Progress:
        """Iterate from theta until the validation likelihood stops improving, or a limit is met."""
        self.compiled = compiled
        spec, context = self.spec, self.context
        patience, interval = spec.patience * self.unit, spec.interval * self.unit
        limits = Limits(patience, interval, spec.max_iterations, spec.time_budget_hours)
        identity = checkpoint_identity(spec, context.cell, self.train, self.valid)
        return run_training(self, theta, limits, context.checkpoint, identity, context.log, context.watch)

    def advance(self, progress: Progress, stop: int) -> Progress:
        """A block of steps in one call of the compiled loop."""
        first, last = progress.iteration, min(progress.iteration + len(self.block), stop)
        self.block[: last - first] = self.batches.between(first, last)
        theta, mean, square, loss = (
            tensor.numpy()
            for tensor in self.compiled.advance(
                progress.theta, progress.adam.mean, progress.adam.square,
                np.int32(first), self.block, np.int32(last - first),
            )
        )  # fmt: skip
        total = progress.loss_sum + float(loss) * (last - first)
        return replace(progress, theta=theta, adam=Adam(mean, square, last), iteration=last, loss_sum=total)

    def validation_loss(self, progress: Progress) -> float:
        return -float(self.compiled.validate(progress.theta, self.statistics_rows, self.valid))

    def record(self, progress: Progress, validation_loss: float | None) -> dict[str, float] | None:
        if validation_loss is None:
            return None
        return {
            "iteration": progress.iteration,
            "training_loss": progress.mean_loss,
            "validation_log_likelihood": -validation_loss,
        }

    def diverged(self, progress: Progress) -> bool:
        """Whether a loss is not finite: parameters that gave one do not recover."""
        last = progress.trace[-1].values() if progress.trace else ()
        return not all(map(math.isfinite, (progress.loss_sum, *last)))
