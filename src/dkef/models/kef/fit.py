"""Algorithm 1: train a deep kernel exponential family by score matching.

Phase 1 moves the kernel, the inducing points, the regularisers and q0 down the loss on Dv of the alpha that was
fitted to Dt, until the validation loss stops improving. Phase 2 tunes the regularisers for statistics of all
training rows. The last step solves for alpha on all of them, in float64.
"""

import functools
import math
import time
from dataclasses import replace

import numpy as np

from dkef.core.arrays import Array
from dkef.core.errors import DkefError
from dkef.models.kef.density import KefModel
from dkef.models.kef.graph import KefGraph
from dkef.models.kef.objectives.choice import draw_noise
from dkef.models.kef.parameters import Component, KefParameters
from dkef.models.kef.phase2 import finish
from dkef.models.kef.spec import KernelExponentialFamily
from dkef.models.kef.statistics import solve
from dkef.models.kef.variables import assemble, frozen_names, initial_values, regularisers
from dkef.models.protocol import Fit, FitContext
from dkef.training.adam import clipped
from dkef.training.checkpoint import checkpoint_identity
from dkef.training.clock import Clock
from dkef.training.layout import Layout
from dkef.training.loop import Limits, run_training
from dkef.training.progress import Progress


def fit_kef(spec: KernelExponentialFamily, train: Array, valid: Array, context: FitContext) -> Fit:
    """Fit to the rows of train [n, d], stopping early by valid [n', d]."""
    check_data(spec, train, valid)
    start = time.monotonic()
    training = ScoreMatching(spec, train, valid, context)
    progress = training.phase1()
    diverged = progress.stopped == "diverged" or not math.isfinite(progress.stopping.best)
    final = finish(training.graph, progress.best_theta, train, valid, context)
    parameters = plain_parameters(assemble(spec, training.layout.unpack(final.theta), final.alpha))
    return Fit(
        KefModel(parameters),
        status="diverged" if diverged or not final.solved else "ok",
        stopped=progress.stopped,
        trace=progress.trace,
        notes={
            "iterations": progress.iteration,
            "best_iteration": progress.stopping.best_step,
            "best_validation_loss": progress.stopping.best,
            "final_validation_loss": final.validation_loss,
            "phase2_iterations": final.iterations,
            "skipped_steps": progress.skipped,
            "lambda_alpha": final.lambda_alpha,
            "lambda_c": final.lambda_c,
            **training.step_clock.note("cpu_seconds_per_step"),
            **training.validation_clock.note("cpu_seconds_per_validation"),
            "phase1_seconds": round(progress.seconds, 3),
            "total_seconds": round(time.monotonic() - start, 3),
        },
    )


def check_data(spec: KernelExponentialFamily, train: Array, valid: Array) -> None:
    """Stop where the rows cannot feed the algorithm."""
    if len(train) < max(spec.inducing_points, 2):
        raise DkefError(
            f"model.inducing_points is {spec.inducing_points} and there are {len(train)} training rows to draw them "
            "from; choose fewer"
        )
    if len(valid) < 1 or valid.shape[1] != train.shape[1]:
        raise DkefError(f"validation rows of shape {valid.shape} do not fit training rows of shape {train.shape}")
    if not (np.isfinite(train).all() and np.isfinite(valid).all()):
        raise DkefError("the training or validation rows hold a value that is not finite; check the preprocessing")


def plain_parameters(parameters: KefParameters) -> KefParameters:
    """The same with plain numbers for rho and tau, in float64."""
    components = tuple(Component(c.kind, float(c.rho), float(c.tau), c.layers) for c in parameters.components)
    return replace(parameters, components=components)


class ScoreMatching:
    """Phase 1 for one specification, one dataset and one seed; what `dkef.training.loop` calls a learner."""

    def __init__(self, spec: KernelExponentialFamily, train: Array, valid: Array, context: FitContext) -> None:
        self.spec, self.train, self.valid, self.context = spec, train, valid, context
        values = initial_values(spec, train, context.rng("init"))
        self.layout = Layout.of(values, frozen_names(spec))
        self.start = self.layout.pack(values)
        self.graph = KefGraph(spec, self.layout)
        self.decay = spec.weight_decay * self.layout.mask("weight", "bias", "skip")
        self.batch = min(spec.batch_rows, len(train) // 2)
        self.step_clock, self.validation_clock = Clock(), Clock()
        # Both are asked for at every iteration and seldom change.
        self.epoch_order = functools.lru_cache(maxsize=1)(self.draw_epoch_order)
        self.validation_rows = functools.lru_cache(maxsize=1)(self.draw_validation_rows)

    def phase1(self) -> Progress:
        """Iterate until the validation loss stops improving, or a limit is met."""
        spec, context = self.spec, self.context
        limits = Limits(
            spec.patience,
            spec.validation_interval,
            spec.max_iterations,
            spec.time_budget_hours,
            spec.checkpoint_interval,
        )
        identity = checkpoint_identity(spec, context.cell, self.train, self.valid)
        return run_training(self, self.start, limits, context.checkpoint, identity, context.log, context.watch)

    def advance(self, progress: Progress, stop: int) -> Progress:
        """One gradient step on fresh Dt and Dv."""
        i = progress.iteration
        fit_rows, loss_rows = self.minibatches(i)
        noise = [
            self.objective_noise(rows, f"{name}, iteration {i}") for name, rows in (("Dt", fit_rows), ("Dv", loss_rows))
        ]
        with self.step_clock:
            step = self.graph.step_gradient(progress.theta, fit_rows, loss_rows, *noise)
        gradient = None if step is None else step.gradient + self.decay * progress.theta
        norm = math.nan if gradient is None else float(np.linalg.norm(gradient))
        if step is None or gradient is None or not (math.isfinite(norm) and math.isfinite(step.loss)):
            progress = progress.without_step()
        else:
            direction = clipped(gradient, norm, self.spec.clip_norm)
            theta, adam = progress.adam.step(progress.theta, direction, self.spec.learning_rate)
            progress = replace(progress, theta=theta, adam=adam, skipped_in_a_row=0)
        loss = math.nan if step is None else step.loss
        return replace(progress, iteration=progress.iteration + 1, loss_sum=loss, gradient_norm=norm)

    def diverged(self, progress: Progress) -> bool:
        return progress.skipped_in_a_row >= self.spec.max_skipped

    def minibatches(self, i: int) -> tuple[Array, Array]:
        """Dt and Dv of iteration i: consecutive disjoint slices of the epoch's shuffled rows, with fresh noise."""
        per_epoch = max(len(self.train) // (2 * self.batch), 1)
        order = self.epoch_order(i // per_epoch)
        at = (i % per_epoch) * 2 * self.batch
        rows = self.noised(self.train[order[at : at + 2 * self.batch]], f"training noise, iteration {i}")
        return rows[: self.batch], rows[self.batch :]

    def draw_epoch_order(self, epoch: int) -> Array:
        return self.context.rng(f"minibatches, epoch {epoch}").permutation(len(self.train))

    def noised(self, rows: Array, purpose: str) -> Array:
        if self.spec.noise_std == 0:
            return rows
        return rows + self.spec.noise_std * self.context.rng(purpose).standard_normal(rows.shape)

    def objective_noise(self, rows: Array, purpose: str) -> Array | None:
        """What the objective draws for some rows."""
        return draw_noise(self.spec, rows.shape, self.context.rng(f"objective, {purpose}"))

    def validation_loss(self, progress: Progress) -> float:
        """Exact J on the validation rows for alpha that the objective fits to training rows with the current theta."""
        theta = progress.theta
        draw = progress.iteration - 1 if self.spec.validation_noise else 0
        fit_rows, valid_rows = self.validation_rows(draw)
        weights = regularisers(self.spec, self.layout.unpack(theta))
        with self.validation_clock:
            statistics = self.graph.statistics(theta, fit_rows, self.objective_noise(fit_rows, f"validation {draw}"))
            solution = solve(statistics, weights, self.graph.gram(theta))
            if solution is None:
                return math.nan
            return float(self.graph.tiled(theta).loss_rows(valid_rows, solution.alpha).mean())

    def draw_validation_rows(self, draw: int) -> tuple[Array, Array]:
        """Rows behind alpha and rows behind J: one draw for the whole run, or one for each validation."""
        size = min(self.spec.validation_fit_rows or len(self.train), len(self.train))
        chosen = self.context.rng(f"validation fit rows, draw {draw}").permutation(len(self.train))[:size]
        fit_rows = self.noised(self.train[chosen], f"validation fit noise, draw {draw}")
        if not self.spec.validation_noise:
            return fit_rows, self.valid
        return fit_rows, self.noised(self.valid, f"validation noise, draw {draw}")

    def record(self, progress: Progress, validation_loss: float | None) -> dict[str, float]:
        """What Figures 4 and 5 and a worried reader want to see of one iteration."""
        values = self.layout.unpack(progress.theta)
        weights = regularisers(self.spec, values)
        power = 2 if self.spec.width_parametrisation == "squared" else 1
        beta = self.spec.beta_floor + np.exp(values["log_beta"])
        return {
            "iteration": progress.iteration,
            "validation_loss": math.nan if validation_loss is None else validation_loss,
            "minibatch_loss": progress.mean_loss,
            "lambda_alpha": float(weights.alpha),
            "lambda_c": float(weights.c),
            **{f"tau_{r}": float(10 ** (power * t)) for r, t in enumerate(values["log10_scale"])},
            "beta_min": float(beta.min()),
            "beta_max": float(beta.max()),
            "gradient_norm": progress.gradient_norm,
        }
