"""Algorithm 1: train a deep kernel exponential family by score matching.

Phase 1 moves the kernel, the inducing points, the regularisers and q0 down the loss on Dv of the alpha that was
fitted to Dt, until the validation loss stops improving. Phase 2 tunes the regularisers for statistics of all
training rows. The last step solves for alpha on all of them, in float64.
"""

import dataclasses
import functools
import math
import time
from dataclasses import replace

import numpy as np

from dkef.config.code import sources_digest
from dkef.core.arrays import Array
from dkef.core.errors import DkefError
from dkef.core.provenance import array_digest, canonical
from dkef.models.kef.density import KefModel
from dkef.models.kef.graph import KefGraph
from dkef.models.kef.parameters import Component, KefParameters
from dkef.models.kef.phase2 import finish
from dkef.models.kef.progress import (
    Progress,
    read_progress,
    with_step,
    with_validation,
    without_step,
    write_progress,
)
from dkef.models.kef.spec import KernelExponentialFamily
from dkef.models.kef.statistics import solve
from dkef.models.kef.variables import Layout, assemble, frozen_names, initial_values, regularisers
from dkef.models.protocol import Fit, Workbench
from dkef.training.adam import clipped

LOG_SECONDS = 30.0


def fit_kef(spec: KernelExponentialFamily, train: Array, valid: Array, bench: Workbench) -> Fit:
    """Fit to the rows of train [n, d], stopping early by valid [n', d]."""
    check_data(spec, train, valid)
    start = time.monotonic()
    training = ScoreMatching(spec, train, valid, bench)
    progress = training.phase1()
    diverged = progress.stopped == "diverged" or not math.isfinite(progress.stopping.best)
    final = finish(training.graph, progress.best_theta, train, valid, bench)
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
    """Phase 1 for one specification, one dataset and one seed."""

    def __init__(self, spec: KernelExponentialFamily, train: Array, valid: Array, bench: Workbench) -> None:
        self.spec, self.train, self.valid, self.bench = spec, train, valid, bench
        values = initial_values(spec, train, bench.rng("init"))
        self.layout = Layout.of(values, frozen_names(spec))
        self.start = self.layout.pack(values)
        self.graph = KefGraph(spec, self.layout)
        self.decay = spec.weight_decay * self.layout.mask("weight", "bias", "skip")
        self.batch = min(spec.batch_rows, len(train) // 2)
        # Both are asked for at every iteration and seldom change.
        self.epoch_order = functools.lru_cache(maxsize=1)(self.draw_epoch_order)
        self.validation_rows = functools.lru_cache(maxsize=1)(self.draw_validation_rows)
        belongs_to = dataclasses.asdict(spec), array_digest(train, valid), bench.seed, sources_digest(__name__)
        self.identity = canonical(belongs_to)

    def phase1(self) -> Progress:
        """Iterate until the validation loss stops improving, or a limit is met."""
        spec, bench = self.spec, self.bench
        progress = read_progress(bench.checkpoint, self.identity, spec.patience, bench.log)
        if progress is None:
            progress = Progress.start(self.start, spec.patience)
        else:
            bench.log.info("continuing from iteration %d, %.0f s spent", progress.iteration, progress.seconds)
        begun, before = time.monotonic(), progress
        next_line = begun + LOG_SECONDS
        while not progress.stopped:
            progress = replace(self.iterate(progress), seconds=before.seconds + time.monotonic() - begun)
            progress = replace(progress, stopped=self.reason_to_stop(progress))
            due = progress.stopped or progress.iteration % spec.checkpoint_interval == 0
            if bench.checkpoint is not None and due:
                write_progress(bench.checkpoint, progress, self.identity)
            if progress.stopped or time.monotonic() > next_line:
                next_line = time.monotonic() + LOG_SECONDS
                self.report(progress, progress.iteration - before.iteration, time.monotonic() - begun)
        return progress

    def iterate(self, progress: Progress) -> Progress:
        """One gradient step on fresh Dt and Dv, then the validation that is due after it."""
        i = progress.iteration
        step = self.graph.step_gradient(progress.theta, *self.minibatches(i))
        gradient = None if step is None else step.gradient + self.decay * progress.theta
        norm = math.nan if gradient is None else float(np.linalg.norm(gradient))
        if step is None or gradient is None or not (math.isfinite(norm) and math.isfinite(step.loss)):
            progress = without_step(progress)
        else:
            direction = clipped(gradient, norm, self.spec.clip_norm)
            progress = with_step(progress, *progress.adam.step(progress.theta, direction, self.spec.learning_rate))
        validation = math.nan
        if (i + 1) % self.spec.validation_interval == 0:
            validation = self.validation_loss(progress.theta, i)
            progress = with_validation(progress, i + 1, validation)
        loss = math.nan if step is None else step.loss
        record = self.trace_record(progress.theta, i + 1, validation, loss, norm)
        return replace(progress, iteration=i + 1, trace=[*progress.trace, record])

    def reason_to_stop(self, progress: Progress) -> str:
        spec = self.spec
        if progress.skipped_in_a_row >= spec.max_skipped:
            return "diverged"
        if progress.stopping.exhausted(progress.iteration):
            return "converged"
        if progress.iteration >= spec.max_iterations:
            return "max_iterations"
        return "time_budget" if progress.seconds > 3600 * spec.time_budget_hours else ""

    def minibatches(self, i: int) -> tuple[Array, Array]:
        """Dt and Dv of iteration i: consecutive disjoint slices of the epoch's shuffled rows, with fresh noise."""
        per_epoch = max(len(self.train) // (2 * self.batch), 1)
        order = self.epoch_order(i // per_epoch)
        at = (i % per_epoch) * 2 * self.batch
        rows = self.noised(self.train[order[at : at + 2 * self.batch]], f"training noise, iteration {i}")
        return rows[: self.batch], rows[self.batch :]

    def draw_epoch_order(self, epoch: int) -> Array:
        return self.bench.rng(f"minibatches, epoch {epoch}").permutation(len(self.train))

    def noised(self, rows: Array, purpose: str) -> Array:
        if self.spec.noise_std == 0:
            return rows
        return rows + self.spec.noise_std * self.bench.rng(purpose).standard_normal(rows.shape)

    def validation_loss(self, theta: Array, i: int) -> float:
        """J on the validation rows for alpha fitted to training rows with the current kernel and regularisers."""
        fit_rows, valid_rows = self.validation_rows(i if self.spec.validation_noise else 0)
        weights = regularisers(self.spec, self.layout.unpack(theta))
        solution = solve(self.graph.statistics(theta, fit_rows), weights, self.graph.gram(theta))
        return math.nan if solution is None else float(self.graph.loss_rows(theta, solution.alpha, valid_rows).mean())

    def draw_validation_rows(self, draw: int) -> tuple[Array, Array]:
        """Rows behind alpha and rows behind J: one draw for the whole run, or one for each validation."""
        size = min(self.spec.validation_fit_rows or len(self.train), len(self.train))
        chosen = self.bench.rng(f"validation fit rows, draw {draw}").permutation(len(self.train))[:size]
        fit_rows = self.noised(self.train[chosen], f"validation fit noise, draw {draw}")
        if not self.spec.validation_noise:
            return fit_rows, self.valid
        return fit_rows, self.noised(self.valid, f"validation noise, draw {draw}")

    def trace_record(
        self, theta: Array, iteration: int, validation: float, loss: float, norm: float
    ) -> dict[str, float]:
        """What Figures 4 and 5 and a worried reader want to see of one iteration."""
        values = self.layout.unpack(theta)
        weights = regularisers(self.spec, values)
        power = 2 if self.spec.width_parametrisation == "squared" else 1
        beta = self.spec.beta_floor + np.exp(values["log_beta"])
        return {
            "iteration": iteration,
            "validation_loss": validation,
            "minibatch_loss": loss,
            "lambda_alpha": float(weights.alpha),
            "lambda_c": float(weights.c),
            **{f"tau_{r}": float(10 ** (power * t)) for r, t in enumerate(values["log10_scale"])},
            "beta_min": float(beta.min()),
            "beta_max": float(beta.max()),
            "gradient_norm": norm,
        }

    def report(self, progress: Progress, iterations: int, seconds: float) -> None:
        rate = iterations / max(seconds, 1e-9)
        budget = 3600 * self.spec.time_budget_hours - progress.seconds
        left = max(0.0, min((self.spec.max_iterations - progress.iteration) / max(rate, 1e-9), budget))
        self.bench.log.info(
            "iteration %d: validation %.4f, best %.4f at %d, skipped %d, %.1f iterations/s, %s",
            progress.iteration,
            progress.last_validation,
            progress.stopping.best,
            progress.stopping.best_step,
            progress.skipped,
            rate,
            f"stopped: {progress.stopped}" if progress.stopped else f"at most {left:.0f} s left",
        )
