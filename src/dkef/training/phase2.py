"""Phase 2 of Algorithm 1 and its last line: regularisers for all training rows, then alpha."""

import math
from typing import NamedTuple

import numpy as np

from dkef.models.kef_parameters import KefParameters
from dkef.models.protocol import Array, Workbench
from dkef.training.adam import Adam, clipped
from dkef.training.early_stopping import EarlyStopping
from dkef.training.kef_graph import KefGraph, padded
from dkef.training.kef_variables import BASE, LAMBDAS, assemble, regularisers
from dkef.training.statistics import Statistics, kernel_statistics, lambda_gradient, mean_of, solve

# Blocks in float32, summed in float64, give alpha to 2e-5 at lambda_alpha = 2e-3 and to 1e-3 at 1e-5; below this the
# blocks are in float64, at a fifth of the speed.
SMALLEST_LAMBDA_FOR_FLOAT32 = 1e-6


class Final(NamedTuple):
    """The end of a training run."""

    theta: Array
    alpha: Array
    solved: bool  # False: no finite alpha exists at theta, and alpha is 0
    iterations: int
    validation_loss: float
    lambda_alpha: float
    lambda_c: float


def full_statistics(parameters: KefParameters, train: Array, block_rows: int) -> Statistics:
    """Means over all training rows, in float64 from the features on."""
    size = min(block_rows, len(train))
    return mean_of(
        (kernel_statistics(parameters, *padded(train[i : i + size], size)), len(train[i : i + size]))
        for i in range(0, len(train), size)
    )


def finish(graph: KefGraph, theta: Array, train: Array, valid: Array, bench: Workbench) -> Final:
    """Tune the regularisers on statistics of all training rows, then solve for alpha on them."""
    return Phase2(graph, train, valid, bench).run(theta)


class Phase2:
    """The statistics of all training rows, under one draw of noise, and what is done with them."""

    def __init__(self, graph: KefGraph, train: Array, valid: Array, bench: Workbench) -> None:
        self.graph, self.spec, self.bench = graph, graph.spec, bench
        noise = bench.rng("final statistics noise").standard_normal(train.shape) if self.spec.noise_std else 0.0
        self.train = train + self.spec.noise_std * noise
        self.valid = valid
        moving = LAMBDAS + (BASE if self.spec.phase2_parameters == "lambda_and_q0" else ())
        self.moving = graph.layout.mask(*moving)

    def run(self, theta: Array) -> Final:
        statistics = self.statistics(theta)
        tuned, iterations = self.tune(theta, statistics)
        q0_moved = self.spec.phase2_parameters == "lambda_and_q0"  # and with it b
        if q0_moved or self.float32_suffices(tuned) != self.float32_suffices(theta):
            statistics = self.statistics(tuned)
        return self.solved(tuned, statistics, iterations)

    def statistics(self, theta: Array) -> Statistics:
        if self.float32_suffices(theta):
            return self.graph.statistics(theta, self.train)
        parameters = assemble(self.spec, self.graph.layout.unpack(theta), alpha=None)
        return full_statistics(parameters, self.train, self.spec.block_rows)

    def float32_suffices(self, theta: Array) -> bool:
        weights = regularisers(self.spec, self.graph.layout.unpack(theta))
        return self.spec.dtype == "float32" and float(weights.alpha) >= SMALLEST_LAMBDA_FOR_FLOAT32

    def alpha(self, theta: Array, statistics: Statistics) -> Array | None:
        weights = regularisers(self.spec, self.graph.layout.unpack(theta))
        solution = solve(statistics, weights, self.graph.gram(theta))
        return None if solution is None else solution.alpha

    def tune(self, theta: Array, statistics: Statistics) -> tuple[Array, int]:
        """The vector with the best regularisers met on the way, and the number of steps."""
        adam = Adam.start(len(theta))
        stopping = EarlyStopping(self.spec.patience).observe(0, self.validation_loss(theta, statistics))
        best = theta
        for i in range(self.spec.phase2_iterations):
            gradient = self.gradient(theta, statistics, i)
            norm = float(np.linalg.norm(gradient))
            if math.isfinite(norm):
                direction = clipped(gradient, norm, self.spec.clip_norm)
                theta, adam = adam.step(theta, direction, self.spec.phase2_learning_rate)
            if self.spec.phase2_stopping == "fixed":
                best = theta
                continue
            stopping = stopping.observe(i + 1, self.validation_loss(theta, statistics))
            best = theta if stopping.best_step == i + 1 else best
            if stopping.exhausted(i + 1):
                return best, i + 1
        return best, self.spec.phase2_iterations

    def gradient(self, theta: Array, statistics: Statistics, i: int) -> Array:
        """Of J on some validation rows, through the solve on all training rows; 0 for what does not move."""
        weights = regularisers(self.spec, self.graph.layout.unpack(theta))
        solution = solve(statistics, weights, self.graph.gram(theta))
        if solution is None:
            return np.full(len(theta), math.nan)
        _, by_alpha, by_theta = self.graph.loss_gradients(theta, solution.alpha, self.batch(i))
        if not np.isfinite(by_alpha).all():
            return np.full(len(theta), math.nan)
        slopes = lambda_gradient(statistics, solution.alpha, solution.adjoint(by_alpha))
        gradient = by_theta.astype(np.float64)
        for name, slope, weight in zip(LAMBDAS, slopes, (weights.alpha, weights.c), strict=True):
            if name in self.graph.layout.shapes:
                gradient += (
                    self.graph.layout.mask(name) * slope * (float(weight) - self.spec.lambda_floor) * math.log(10)
                )
        return gradient * self.moving

    def batch(self, i: int) -> Array:
        """Validation rows of step i: slices of a shuffled order, of one size, noised where validation is."""
        size = min(self.spec.batch_rows, len(self.valid))
        per_pass = len(self.valid) // size
        order = self.bench.rng(f"phase 2 rows, pass {i // per_pass}").permutation(len(self.valid))
        rows = self.valid[order[(i % per_pass) * size :][:size]]
        if not self.spec.validation_noise or self.spec.noise_std == 0:
            return rows
        return rows + self.spec.noise_std * self.bench.rng(f"phase 2 noise, step {i}").standard_normal(rows.shape)

    def validation_loss(self, theta: Array, statistics: Statistics) -> float:
        alpha = self.alpha(theta, statistics)
        return math.nan if alpha is None else float(self.graph.loss_rows(theta, alpha, self.valid).mean())

    def solved(self, theta: Array, statistics: Statistics, iterations: int) -> Final:
        weights = regularisers(self.spec, self.graph.layout.unpack(theta))
        alpha = self.alpha(theta, statistics)
        usable = alpha if alpha is not None and np.isfinite(alpha).all() else np.zeros(len(statistics.h))
        loss = float(self.graph.loss_rows(theta, usable, self.valid).mean())
        return Final(theta, usable, alpha is not None, iterations, loss, float(weights.alpha), float(weights.c))
