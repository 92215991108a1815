"""Maximum likelihood for flows: Adam on minibatches, stopped early by the validation log-likelihood."""

import math
import sys
import time
from dataclasses import asdict, replace

import numpy as np

from dkef.config.code import sources_digest
from dkef.core.arrays import Array
from dkef.core.provenance import array_digest, canonical
from dkef.models.flows.density import FlowShape, draw_flow
from dkef.models.flows.model import FlowModel
from dkef.models.flows.progress import Progress, read_progress, write_progress
from dkef.models.flows.spec import Flow
from dkef.models.flows.steps import Compiled, Layout, compile_flow
from dkef.models.protocol import Fit, Workbench

CHECKPOINT_SECONDS = 60.0
LOG_SECONDS = 30.0
BLOCK_STEPS = 64  # steps in one call of the compiled loop: enough to hide the call, few enough to watch the clock


def fit_flow(spec: Flow, train: Array, valid: Array, bench: Workbench) -> Fit:
    """Fit a flow to train [n, D], stopping early by valid [n', D]."""
    shape = flow_shape(spec, train.shape[1])
    drawn, orders = draw_flow(
        shape, (spec.width,) * spec.hidden_layers, spec.degrees, spec.input_order, bench.rng("init")
    )
    layout = Layout.of(drawn.parameters)
    free = layout.pack(drawn.free)
    run = Run(spec, train.astype(np.float32), valid.astype(np.float32), bench)
    compiled = compile_flow(spec, shape, layout, free, spec.compiles(len(train)))
    progress, stopped = run.train(compiled, layout.pack(drawn.parameters))
    model = FlowModel.with_statistics(shape, layout.unpack(progress.best), orders, train)
    notes: dict[str, float | int | str] = {
        "iterations": progress.iteration,
        "best_iteration": progress.stopping.best_step,
        "parameters": int(free.sum()),
    }
    if math.isfinite(progress.stopping.best):
        notes["best_validation_log_likelihood"] = -progress.stopping.best
    return Fit(model, "diverged" if stopped == "diverged" else "ok", stopped, progress.trace, notes)


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


class Minibatches:
    """An endless sequence of rows, reshuffled at every pass, cut into minibatches that may span two passes.

    The shuffle of a pass is a stream of its own, so that minibatch i is a function of i alone.
    """

    def __init__(self, train: Array, rows: int, bench: Workbench) -> None:
        self.train, self.rows, self.bench = train, rows, bench
        self._shuffled: tuple[int, Array] = (-1, np.empty(0, dtype=np.int64))

    def shuffle(self, number: int) -> Array:
        """Order of the rows in one pass; [n]."""
        if self._shuffled[0] != number:
            self._shuffled = number, self.bench.rng(f"minibatches of pass {number}").permutation(len(self.train))
        return self._shuffled[1]

    def between(self, start: int, stop: int) -> Array:
        """Minibatches number start..stop-1; [stop - start, rows, D]."""
        n, first, last = len(self.train), start * self.rows, stop * self.rows
        passes = range(first // n, (last - 1) // n + 1)
        indices = np.concatenate([self.shuffle(k)[max(first - k * n, 0) : last - k * n] for k in passes])
        batches: Array = self.train[indices].reshape(stop - start, self.rows, -1)
        return batches


class Run:
    """One training run: its data, its intervals, its clock and its checkpoint."""

    def __init__(self, spec: Flow, train: Array, valid: Array, bench: Workbench) -> None:
        self.spec, self.valid, self.bench = spec, valid, bench
        self.statistics_rows = train[: spec.statistics_rows]
        self.batches = Minibatches(train, min(spec.batch_rows, len(train)), bench)
        unit = math.ceil(len(train) / self.batches.rows) if spec.patience_unit == "epochs" else 1
        self.interval = spec.interval * unit  # iterations between validations
        self.patience = spec.patience * unit
        self.clock = time.monotonic()
        self.identity = canonical([asdict(spec), array_digest(train, valid), bench.seed, sources_digest(__name__)])

    def train(self, compiled: Compiled, theta: Array) -> tuple[Progress, str]:
        """Progress at the end and why it ended: converged, max_iterations, time_budget or diverged."""
        progress = self.resume(theta)
        first = progress.iteration
        self.clock = opened = saved = logged = time.monotonic()
        while True:
            progress, loss = self.advance(compiled, progress)
            log_likelihood = float(compiled.validate(progress.theta, self.statistics_rows, self.valid))
            progress = self.timed(progress.observe(loss, log_likelihood))
            now = time.monotonic()
            stopped = self.verdict(progress)
            if stopped or now - logged >= LOG_SECONDS:
                self.report(progress, (progress.iteration - first) / (now - opened))
                logged = now
            if stopped:
                return progress, stopped
            if self.bench.checkpoint and now - saved >= CHECKPOINT_SECONDS:
                write_progress(self.bench.checkpoint, progress, self.identity)
                saved = now

    def resume(self, theta: Array) -> Progress:
        """The checkpoint where there is one, otherwise the start."""
        progress = read_progress(self.bench.checkpoint, self.identity, self.bench.log)
        if progress is None:
            return Progress.start(theta, self.patience)
        self.bench.log.info("continuing after iteration %d", progress.iteration)
        return progress

    def advance(self, compiled: Compiled, progress: Progress) -> tuple[Progress, float]:
        """Steps until the next validation, and their mean loss; fewer when a limit comes first."""
        start, block = progress.iteration, min(self.interval, BLOCK_STEPS)
        stop = min((start // self.interval + 1) * self.interval, self.spec.max_iterations or sys.maxsize)
        total = 0.0
        batches = np.zeros((block, self.batches.rows, self.valid.shape[1]), dtype=np.float32)
        while progress.iteration < stop and not self.overdue(progress) and math.isfinite(total):
            first = progress.iteration
            last = min(first + block, stop)
            batches[: last - first] = self.batches.between(first, last)
            theta, m, v, loss = (
                tensor.numpy()
                for tensor in compiled.advance(
                    progress.theta, progress.m, progress.v, np.int32(first), batches, np.int32(last - first)
                )
            )
            total += float(loss) * (last - first)
            progress = self.timed(replace(progress, theta=theta, m=m, v=v, iteration=last))
        return progress, total / (progress.iteration - start)

    def timed(self, progress: Progress) -> Progress:
        """Add the time since the last call to the seconds spent, which a resumed run keeps counting."""
        before, self.clock = self.clock, time.monotonic()
        return replace(progress, seconds=progress.seconds + self.clock - before)

    def overdue(self, progress: Progress) -> bool:
        return progress.seconds > 3600 * self.spec.time_budget_hours

    def verdict(self, progress: Progress) -> str:
        """Why to stop now; empty to go on."""
        last = progress.trace[-1]
        if not (math.isfinite(last["training_loss"]) and math.isfinite(last["validation_log_likelihood"])):
            return "diverged"
        if progress.stopping.exhausted(progress.iteration):
            return "converged"
        if progress.iteration == self.spec.max_iterations:
            return "max_iterations"
        return "time_budget" if self.overdue(progress) else ""

    def report(self, progress: Progress, rate: float) -> None:
        """One log line: where the run is, how fast it goes, and when it will end if nothing improves."""
        stopping = progress.stopping
        steps_left = stopping.best_step + stopping.patience - progress.iteration
        self.bench.log.info(
            "iteration %d, %.0f a second; validation log-likelihood %.4f, best %.4f at %d; at least %.0f s left",
            progress.iteration, rate, progress.trace[-1]["validation_log_likelihood"], -stopping.best,
            stopping.best_step, max(0.0, steps_left / rate),
        )  # fmt: skip
