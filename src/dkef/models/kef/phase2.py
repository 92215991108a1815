"""Phase 2 of Algorithm 1 and its last line: regularisers for all training rows, then alpha.

The kernel and q0 stand still, so J of alpha on any rows is J(0) + alpha' G alpha / 2 + alpha' (h + b_first) with the
statistics of those rows. Once these are known, J at a pair of regularisers costs one Cholesky factor, and folds of the
training rows can judge it as well as the validation rows. Its minimum is a matter of seconds, but not always a good
place: see "Choices that were looked at" in config/README.md.
"""

import functools
import math
from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np
from scipy import optimize

from dkef.core.arrays import Array
from dkef.models.kef.graph import KefGraph
from dkef.models.kef.objectives.choice import draw_noise
from dkef.models.kef.statistics import Solution, Statistics, lambda_gradient, solve
from dkef.models.kef.tiles import KeptDerivatives
from dkef.models.kef.variables import BASE, LAMBDAS, Regularisers, regularisers
from dkef.models.protocol import FitContext
from dkef.training.adam import Adam, clipped
from dkef.training.early_stopping import EarlyStopping

# Blocks in float32, summed in float64, give alpha to 2e-5 at lambda_alpha = 2e-3 and to 1e-3 at 1e-5; below this the
# blocks are in float64, at a fifth of the speed. So they are where a search may go anywhere below.
SMALLEST_LAMBDA_FOR_FLOAT32 = 1e-6
KEPT_BYTES = 2**28  # of derivatives of k at the validation rows; more rows cost a few milliseconds a step instead
FOLDS = 10
DECADES = 0.5  # first step of the search, in log10 lambda
ACCURACY = 0.01  # its end, likewise: J is flat at its minimum


Partials = Callable[[Array, Array], tuple[Array, Array]]  # of theta and alpha: dJ/dalpha and dJ/dtheta


class Final(NamedTuple):
    """The end of a training run."""

    theta: Array
    alpha: Array
    solved: bool  # False: no finite alpha exists at theta, and alpha is 0
    iterations: int
    validation_loss: float
    lambda_alpha: float
    lambda_c: float


class Trial(NamedTuple):
    """Statistics of rows that alpha is fitted to, and of other rows that judge it."""

    fit: Statistics
    judge: Statistics

    def loss(self, alpha: Array | None) -> float:
        """J of alpha on the judging rows, less that of alpha = 0; infinite where there is no alpha."""
        if alpha is None:
            return math.inf
        return float(0.5 * alpha @ self.judge.G @ alpha + alpha @ (self.judge.h + self.judge.b_first))


def without(whole: Statistics, n: int, part: Statistics, n_part: int) -> Statistics:
    """Means over the n rows of the whole that are not among the n_part rows of the part."""
    return Statistics(*((n * a - n_part * b) / (n - n_part) for a, b in zip(whole, part, strict=True)))


def finish(graph: KefGraph, theta: Array, train: Array, valid: Array, context: FitContext) -> Final:
    """Tune the regularisers on statistics of all training rows, then solve for alpha on them."""
    return Phase2(graph, train, valid, context).run(theta)


class Phase2:
    """The statistics of all training rows, under one draw of noise, and what is done with them."""

    def __init__(self, graph: KefGraph, train: Array, valid: Array, context: FitContext) -> None:
        self.graph, self.spec, self.context = graph, graph.spec, context
        noise = context.rng("final statistics noise").standard_normal(train.shape) if self.spec.noise_std else 0.0
        self.train, self.clean_train = train + self.spec.noise_std * noise, train
        self.valid = valid
        self.noise = draw_noise(self.spec, train.shape, context.rng("objective, final statistics"))
        self.lambda_masks = {name: graph.layout.mask(name) for name in LAMBDAS if name in graph.layout.shapes}
        moving = LAMBDAS + (BASE if self.spec.phase2_parameters == "lambda_and_q0" else ())
        self.moving = graph.layout.mask(*moving)
        self.noised = self.spec.validation_noise and self.spec.noise_std > 0
        self.order = functools.lru_cache(maxsize=1)(self.draw_order)
        self.searches = self.spec.phase2_stopping in ("converged", "folds")

    def run(self, theta: Array) -> Final:
        statistics = self.fit_statistics(theta)
        if self.searches:
            tuned, iterations = self.search(theta, self.trials(theta, statistics))
        else:
            tuned, iterations = self.adam_steps(theta, statistics)
        q0_moved = self.spec.phase2_parameters == "lambda_and_q0"  # and with it b
        if q0_moved or self.float32_suffices(tuned) != self.float32_suffices(theta):
            statistics = self.fit_statistics(tuned)
        return self.solved(tuned, statistics, iterations)

    def fit_statistics(self, theta: Array, some: slice = slice(None)) -> Statistics:
        """Of training rows, by the objective: what alpha is fitted to."""
        noise = None if self.noise is None else self.noise[some]
        return self.graph.statistics(theta, self.train[some], noise, self.precision(theta))

    def statistics(self, theta: Array, rows: Array) -> Statistics:
        """Of rows that judge an alpha by the exact loss."""
        return self.graph.tiled(theta, self.precision(theta)).statistics(rows)

    def precision(self, theta: Array) -> str:
        return "float32" if self.float32_suffices(theta) else "float64"

    def float32_suffices(self, theta: Array) -> bool:
        if self.searches or self.spec.dtype != "float32":
            return False
        return float(self.weights(theta).alpha) >= SMALLEST_LAMBDA_FOR_FLOAT32

    def weights(self, theta: Array) -> Regularisers:
        """The regularisers alone: all of theta takes a fifth of a step to unpack."""
        values = {name: theta[self.lambda_masks[name] > 0] for name in self.lambda_masks}
        return regularisers(self.spec, {"z": theta} | self.graph.layout.constants | values)

    def solution(self, theta: Array, statistics: Statistics) -> Solution | None:
        return solve(statistics, self.weights(theta), self.graph.gram(theta))

    def alpha(self, theta: Array, statistics: Statistics) -> Array | None:
        solution = self.solution(theta, statistics)
        return None if solution is None else solution.alpha

    def trials(self, theta: Array, statistics: Statistics) -> list[Trial]:
        """All training rows against the validation rows, or nine tenths of the former against each tenth."""
        if self.spec.phase2_stopping != "folds":
            return [Trial(statistics, self.statistics(theta, self.valid))]
        trials, n = [], len(self.train)
        same = self.spec.noise_std == 0 and self.spec.objective == "exact"
        for k in range(min(FOLDS, n)):
            part = self.fit_statistics(theta, slice(k, None, FOLDS))
            judge = part if same else self.statistics(theta, self.clean_train[k::FOLDS])
            trials.append(Trial(without(statistics, n, part, len(self.train[k::FOLDS])), judge))
        return trials

    def search(self, theta: Array, trials: Sequence[Trial]) -> tuple[Array, int]:
        """The vector with the regularisers of lowest mean J over the trials, and how many were looked at."""
        place = np.flatnonzero(self.graph.layout.mask(*LAMBDAS))

        def with_lambdas(log10: Array) -> Array:
            moved = theta.copy()
            moved[place] = log10
            return moved

        def mean_loss(log10: Array) -> float:
            moved = with_lambdas(log10)
            alphas = [self.alpha(moved, trial.fit) for trial in trials]
            return float(np.mean([trial.loss(alpha) for trial, alpha in zip(trials, alphas, strict=True)]))

        # Without derivatives, because J is infinite where there is no Cholesky factor.
        found = optimize.minimize(
            mean_loss,
            theta[place],
            method="Nelder-Mead",
            options={
                "initial_simplex": theta[place] - DECADES * np.eye(len(place) + 1, len(place), k=-1),
                "maxfev": max(self.spec.phase2_iterations, 1),
                "xatol": ACCURACY,
                "fatol": math.inf,
            },
        )
        return with_lambdas(found.x), int(found.nfev)

    def adam_steps(self, theta: Array, statistics: Statistics) -> tuple[Array, int]:
        """The vector after steps on J over batches of validation rows, or the best met on the way, and their number."""
        fixed = self.spec.phase2_stopping == "fixed"
        adam, best, stopping = Adam.start(len(theta)), theta, EarlyStopping(self.spec.patience)
        solution, partials = self.solution(theta, statistics), self.partials(theta)
        if not fixed:
            (trial,) = self.trials(theta, statistics)
            stopping = stopping.observe(0, trial.loss(solution and solution.alpha))
        for i in range(self.spec.phase2_iterations):
            gradient = self.gradient(theta, statistics, solution, functools.partial(partials, i))
            norm = float(np.linalg.norm(gradient))
            if math.isfinite(norm):
                direction = clipped(gradient, norm, self.spec.clip_norm)
                theta, adam = adam.step(theta, direction, self.spec.phase2_learning_rate)
                solution = self.solution(theta, statistics)
            if fixed:
                continue
            stopping = stopping.observe(i + 1, trial.loss(solution and solution.alpha))
            best = theta if stopping.best_step == i + 1 else best
            if stopping.exhausted(i + 1):
                return best, i + 1
        return theta if fixed else best, self.spec.phase2_iterations

    def gradient(self, theta: Array, statistics: Statistics, solution: Solution | None, partials: Partials) -> Array:
        """Of J on some validation rows, through the solve on all training rows; 0 for what does not move."""
        if solution is None:
            return np.full(len(theta), math.nan)
        by_alpha, by_theta = partials(theta, solution.alpha)
        if not np.isfinite(by_alpha).all():
            return np.full(len(theta), math.nan)
        weights = self.weights(theta)
        slopes = lambda_gradient(statistics, solution.alpha, solution.adjoint(by_alpha))
        gradient = by_theta.astype(np.float64)
        for name, slope, weight in zip(LAMBDAS, slopes, (weights.alpha, weights.c), strict=True):
            if name in self.lambda_masks:
                gradient += self.lambda_masks[name] * slope * (float(weight) - self.spec.lambda_floor) * math.log(10)
        return gradient * self.moving

    def partials(self, theta: Array) -> Callable[[int, Array, Array], tuple[Array, Array]]:
        """Derivatives of J on the rows of step i in alpha and in theta, as a function of i, theta and alpha.

        Where the regularisers move alone, J at a fixed alpha does not depend on them, and the derivatives of k at the
        validation rows stay what they are at the given theta. They are kept, unless rows are noised or many.
        """
        if self.spec.phase2_parameters != "lambda":
            return lambda i, theta, alpha: self.graph.loss_gradients(theta, alpha, self.batch(i))[1:]
        tiled, nothing = self.graph.tiled(theta), np.zeros(len(theta))
        if self.noised or KeptDerivatives.size(tiled, self.valid) > KEPT_BYTES:
            return lambda i, _, alpha: (KeptDerivatives(tiled, self.batch(i)).slope(alpha), nothing)
        kept = KeptDerivatives(tiled, self.valid)
        return lambda i, _, alpha: (kept.slope(alpha, self.batch_numbers(i)), nothing)

    def batch(self, i: int) -> Array:
        """Validation rows of step i, noised where validation is."""
        rows = self.valid[self.batch_numbers(i)]
        if not self.noised:
            return rows
        return rows + self.spec.noise_std * self.context.rng(f"phase 2 noise, step {i}").standard_normal(rows.shape)

    def batch_numbers(self, i: int) -> Array:
        """Places of the validation rows of step i: slices of a shuffled order, of one size."""
        size = min(self.spec.phase2_batch_rows, len(self.valid))
        per_pass = len(self.valid) // size
        return self.order(i // per_pass)[(i % per_pass) * size :][:size]

    def draw_order(self, number: int) -> Array:
        return self.context.rng(f"phase 2 rows, pass {number}").permutation(len(self.valid))

    def solved(self, theta: Array, statistics: Statistics, iterations: int) -> Final:
        weights = self.weights(theta)
        alpha = self.alpha(theta, statistics)
        if alpha is not None and not np.isfinite(alpha).all():  # a factor exists, and the solution overflows
            alpha = None
        kept = np.zeros(len(statistics.h)) if alpha is None else alpha
        loss = float(self.graph.tiled(theta).loss_rows(self.valid, kept).mean())
        return Final(theta, kept, alpha is not None, iterations, loss, float(weights.alpha), float(weights.c))
