"""Training of an energy network: Adam on minibatches, stopped early by the objective on the validation rows."""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from dkef.core.arrays import Array
from dkef.core.backend import Tensor, backend_of
from dkef.core.errors import DkefError
from dkef.models.energy_net.density import EnergyModel, layers_of
from dkef.models.energy_net.objectives import draw_noise, exact, loss_rows
from dkef.models.energy_net.spec import EnergyNetwork
from dkef.models.kef.parameters import BaseMeasure
from dkef.models.layers import Layer
from dkef.models.protocol import Fit, FitContext
from dkef.training.adam import clipped
from dkef.training.checkpoint import checkpoint_identity
from dkef.training.layout import Layout
from dkef.training.loop import Limits, run_training
from dkef.training.minibatches import Minibatches
from dkef.training.progress import Progress

Q0_WIDTH = 2.0  # of q0 at the start, in standard deviations of the rows: wide, so that f shapes what is inside
V_STD = 0.1  # of all v together at the start: a network that says little yet


def fit_energy_network(spec: EnergyNetwork, train: Array, valid: Array, context: FitContext) -> Fit:
    """Fit to the rows of train [n, d], stopping early by valid [n', d]."""
    if not (len(train) and len(valid) and np.isfinite(train).all() and np.isfinite(valid).all()):
        raise DkefError(f"{context.model}: training and validation rows must be there and finite; check the data")
    learner = EnergyTraining(spec, train.astype(np.float64), valid.astype(np.float64), context)
    progress = learner.run()
    weights = learner.layout.unpack(progress.best_theta)
    q0 = base_measure(weights)
    network = {name: array for name, array in weights.items() if name.startswith(("weight_", "bias_")) or name == "v"}
    diverged = progress.stopped == "diverged" or not math.isfinite(progress.stopping.best)
    return Fit(
        EnergyModel(network, q0, spec.top_activation),
        status="diverged" if diverged else "ok",
        stopped=progress.stopped,
        trace=progress.trace,
        notes={
            "iterations": progress.iteration,
            "best_iteration": progress.stopping.best_step,
            "best_validation_loss": progress.stopping.best,
            "skipped_steps": progress.skipped,
        },
    )


def initial_values(spec: EnergyNetwork, train: Array, rng: np.random.Generator) -> dict[str, Array]:
    """Start of every quantity by name; entries of a layer from N(0, 1 / fan-in)."""
    d, values = train.shape[1], {}
    for i in range(spec.layers):
        fan_in = spec.width if i else d
        values[f"weight_{i}"] = rng.normal(0.0, 1 / math.sqrt(fan_in), (fan_in, spec.width))
        values[f"bias_{i}"] = rng.normal(0.0, 1 / math.sqrt(fan_in), spec.width)
    values["v"] = rng.normal(0.0, V_STD / math.sqrt(spec.width), spec.width)
    values["mu"] = train.mean(axis=0)
    # |u|^beta / (2 sigma^2) is 1/2 at Q0_WIDTH standard deviations
    values["log_sigma"] = 0.5 * spec.beta * np.log(Q0_WIDTH * (train.std(axis=0) + np.finfo(float).tiny))
    values["beta"] = np.full(d, spec.beta)
    return values


def base_measure(values: Mapping[str, Tensor]) -> BaseMeasure:
    sigma = backend_of(values["log_sigma"]).exp(values["log_sigma"])
    return BaseMeasure(values["mu"], sigma, values["beta"])


class EnergyTraining:
    """Steps and validations of one run; what `dkef.training.loop` calls a learner."""

    def __init__(self, spec: EnergyNetwork, train: Array, valid: Array, context: FitContext) -> None:
        self.spec, self.train, self.valid, self.context = spec, train, valid, context
        values = initial_values(spec, train, context.rng("init"))
        self.layout = Layout.of(values, frozen={"beta"})
        self.start = self.layout.pack(values)
        self.decay = spec.weight_decay * self.layout.mask("weight_", "bias_", "v")
        self.batches = Minibatches(train, min(spec.batch_rows, len(train)), context.rng)
        self.loss_and_gradient, self.loss = self._compiled()

    def _compiled(self) -> tuple[Callable[..., Any], Callable[..., Any]]:
        """(theta, x, noise on x, noise of the objective) -> mean loss and gradient; (theta, x) -> the exact loss."""
        from dkef.core.tensorflow import tf

        def model(theta: Tensor) -> tuple[Sequence[Layer], BaseMeasure]:
            values = self.layout.unpack(theta)
            return layers_of(values, self.spec.top_activation), base_measure(values)

        def with_gradient(theta: Tensor, x: Tensor, noise: Tensor, *drawn: Tensor) -> tuple[Tensor, Tensor]:
            with tf.GradientTape() as tape:
                tape.watch(theta)
                own = drawn[0] if drawn else None
                loss = tf.reduce_mean(loss_rows(self.spec, *model(theta), x + noise, own))
            return loss, tape.gradient(loss, theta)

        def loss(theta: Tensor, x: Tensor) -> Tensor:
            return tf.reduce_mean(exact(*model(theta), x))

        # No branch depends on a tensor; to look for one would take a second.
        return tf.function(with_gradient, autograph=False), tf.function(loss, autograph=False)

    def run(self) -> Progress:
        spec, context = self.spec, self.context
        limits = Limits(spec.patience, spec.validation_interval, spec.max_iterations, spec.time_budget_hours)
        identity = checkpoint_identity(spec, context.cell, self.train, self.valid)
        return run_training(self, self.start, limits, context.checkpoint, identity, context.log, context.watch)

    def advance(self, progress: Progress, stop: int) -> Progress:
        """One gradient step."""
        i = progress.iteration
        rows = self.batches.between(i, i + 1)[0]
        noise = self.spec.noise_std * self.context.rng(f"training noise, iteration {i}").standard_normal(rows.shape)
        own = draw_noise(self.spec, rows.shape, self.context.rng(f"objective, iteration {i}"))
        arrays = (progress.theta, rows, noise, *([] if own is None else [own]))
        loss, gradient = (result.numpy() for result in self._on(self.loss_and_gradient, *arrays))
        gradient = gradient + self.decay * progress.theta
        norm = float(np.linalg.norm(gradient))
        if math.isfinite(norm) and math.isfinite(loss):
            direction = clipped(gradient, norm, self.spec.clip_norm)
            theta, adam = progress.adam.step(progress.theta, direction, self.spec.learning_rate)
            progress = replace(progress, theta=theta, adam=adam, skipped_in_a_row=0)
        else:
            progress = progress.without_step()
        return replace(progress, iteration=i + 1, loss_sum=progress.loss_sum + float(loss), gradient_norm=norm)

    def validation_loss(self, progress: Progress) -> float:
        return float(self._on(self.loss, progress.theta, self.valid))

    @staticmethod
    def _on(function: Callable[..., Any], *arrays: Array) -> Any:
        from dkef.core.tensorflow import tf

        return function(*map(tf.constant, arrays))

    def record(self, progress: Progress, validation_loss: float | None) -> dict[str, float] | None:
        if validation_loss is None:
            return None
        return {
            "iteration": progress.iteration,
            "validation_loss": validation_loss,
            "training_loss": progress.mean_loss,
            "gradient_norm": progress.gradient_norm,
        }

    def diverged(self, progress: Progress) -> bool:
        return progress.skipped_in_a_row >= self.spec.max_skipped
