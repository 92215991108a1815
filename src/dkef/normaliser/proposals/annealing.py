"""Annealed importance sampling (Neal 2001) from g to p~, for where g alone has too small an effective sample size.

A chain starts at a draw of g and moves through the densities g^(1-b) p~^b, b rising from 0 to 1, by Hamiltonian steps
that leave each of them invariant. Its weight

    r = prod_j [ p~(x_j) / g(x_j) ]^(b_j+1 - b_j)

has mean Z. Chains are independent, because temperatures and step sizes are fixed beforehand, on chains of a pilot
run of their own. And since every factor is at least a^(b_j+1 - b_j) with a = inf p~ / g, and the exponents add to 1,
r >= a: the lower bound of the plain mixture serves Proposition 1 here as well.

A step is accepted or refused by the densities at its two ends, and leaves the target invariant whatever gradient
proposed it. So two things are cheaper than they look. A kernel exponential family is compiled in float32, and log Z is
right to the rounding of log p~. And chains are guided by the gradient of the heaviest components of g alone: g has
thousands of them, most around single rows with hardly any weight.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from dkef.config.schema.normaliser import Annealing
from dkef.core.arrays import Array
from dkef.core.streams import rng_for
from dkef.normaliser.integrand import Integrand
from dkef.normaliser.proposals.defensive_mixture import DefensiveMixture, cost
from dkef.normaliser.proposals.normals import CutNormals
from dkef.normaliser.weights import Weights

TARGET_ACCEPTANCE = 0.65  # of Hamiltonian proposals; the optimum is flat
PILOT_TEMPERATURES = 16
TEMPERATURES_PER_SQUARE, LEAST_TEMPERATURES = 4.0, 8  # chains do not mix at once; see `tune`
# Of the weight of h, that guides chains. On MiniBooNE 35 of 1975 components hold it: a chain takes 0.4 of the time, and
# weights scatter as before. On RedWine half of all are needed, and nothing changes.
GUIDE_SHARE = 0.95
_GAIN = 0.5  # of the step size's adaptation to the share of accepted proposals


@dataclass(frozen=True)
class Schedule:
    """What a pilot run fixes."""

    b: Array  # [t + 1], rising from 0 to 1
    step: Array  # [t + 1]: step size at each b; the first and last are not used
    metric: Array  # [d, d]: lower factor of the covariance that steps are measured by
    steps: int  # proposals at each b
    leapfrog: int  # gradient steps of each


@dataclass
class _State:
    """Positions of chains with both log densities and the gradients that guide them there."""

    x: Array
    log_p: Array
    score_p: Array
    log_g: Array
    score_g: Array

    def log_target(self, b: float) -> Array:
        target: Array = b * self.log_p + (1 - b) * self.log_g
        return target

    def gradient(self, b: float) -> Array:
        gradient: Array = b * self.score_p + (1 - b) * self.score_g
        return gradient

    def replace(self, other: "_State", where: Array) -> "_State":
        """This state with the chains `where` taken from another."""
        pairs = zip(vars(self).values(), vars(other).values(), strict=True)
        return _State(*(np.where(where.reshape(-1, *[1] * (new.ndim - 1)), new, old) for old, new in pairs))


class AnnealedWeights(Weights):
    """r of chains from g to p~; `name` determines the random numbers."""

    span = 128

    def __init__(self, integrand: Integrand, mixture: DefensiveMixture, schedule: Schedule, *name: str | int) -> None:
        self.mixture, self.schedule, self.name = mixture, schedule, name
        self.log_a, self.no_floor = mixture.log_lower_bound(integrand), integrand.no_floor
        moves = (len(schedule.b) - 2) * schedule.steps  # none at b = 0 and b = 1
        self.cost = 2 * cost(integrand, mixture) * (1 + moves * schedule.leapfrog)  # twice: with gradients
        self._field = integrand.fast_gradient
        self._guide = replace(mixture, normals=mixture.normals.heaviest(GUIDE_SHARE))

    def span_log_r(self, stage: str, chunk: int, first: int, count: int) -> Array:
        rng = rng_for("normalise annealed", *self.name, stage, chunk, first)
        schedule = self.schedule
        state = self.state(self.mixture.sample(count, rng))
        log_r = np.zeros(count)
        for b, following, step in zip(schedule.b, schedule.b[1:], schedule.step[1:], strict=False):
            log_r += (following - b) * (state.log_p - state.log_g)
            if following < 1:
                for _ in range(schedule.steps):
                    state, _ = self.move(state, following, step, rng)
        return log_r

    def slopes(self, x: Array) -> tuple[Array, Array, Array]:
        """log p~ [n], its gradient [n, d], and that of the heaviest part of g."""
        return *self._field(x), self._guide.log_density_and_gradient(x)[1]

    def state(self, x: Array) -> _State:
        log_p, score_p, score_g = self.slopes(x)
        return _State(x, log_p, score_p, self.mixture.log_density(x), score_g)

    def move(self, state: _State, b: float, step: float, rng: np.random.Generator) -> tuple[_State, float]:
        """One Hamiltonian proposal, accepted or not, chain by chain; also the mean probability of acceptance."""
        metric = self.schedule.metric
        start = rng.standard_normal(state.x.shape)  # momentum, in the coordinates x = metric y
        x, momentum = state.x, start + 0.5 * step * state.gradient(b) @ metric
        with np.errstate(over="ignore", invalid="ignore"):  # a proposal that runs away overflows, and is refused
            for _ in range(self.schedule.leapfrog - 1):
                x = x + step * momentum @ metric.T
                _, score_p, score_g = self.slopes(x)
                momentum = momentum + step * (b * score_p + (1 - b) * score_g) @ metric
            new = self.state(x + step * momentum @ metric.T)
            momentum = momentum + 0.5 * step * new.gradient(b) @ metric
            log_ratio = new.log_target(b) - state.log_target(b) + 0.5 * (start**2 - momentum**2).sum(axis=1)
        log_ratio = np.where(np.isfinite(log_ratio), log_ratio, -np.inf)
        accepted = np.log(rng.random(len(log_ratio))) < log_ratio
        return state.replace(new, accepted), float(np.exp(np.minimum(log_ratio, 0.0)).mean())


def tune(
    integrand: Integrand, mixture: DefensiveMixture, settings: Annealing, name: tuple[str | int, ...],
    report: Callable[[str], None] = lambda line: None,
) -> Schedule:  # fmt: skip
    """Temperatures and step sizes from pilot chains.

    The first pass goes through a few even temperatures and notes how much log p~ - log g spreads at each. With the
    integral L of that spread over b, chains that mix at once would have a variance of log r of L^2 over the number of
    temperatures: so many are taken, up to a limit, and placed so that every one of them adds the same spread. The
    second pass finds the step sizes.
    """
    metric = np.linalg.cholesky(tight_covariance(mixture.normals))
    even = np.linspace(0, 1, min(PILOT_TEMPERATURES, settings.temperatures) + 1)
    first_steps = np.full(len(even), settings.first_step)
    schedule = Schedule(even, first_steps, metric, settings.steps, settings.leapfrog)
    for label in ("temperatures", "step sizes"):
        run = AnnealedWeights(integrand, mixture, schedule, *name)
        spread, step, accepted = _pilot(run, settings.pilot_chains, rng_for("normalise tuning", *name, label))
        b = _even_spread(schedule.b, spread, settings.temperatures) if label == "temperatures" else schedule.b
        schedule = replace(schedule, b=b, step=np.interp(b, schedule.b, step))
        report(
            f"annealing pilot ({label}): {len(b) - 1} temperatures, step size {step[1]:.3g} to {step[-1]:.3g}, "
            f"{accepted:.0%} accepted"
        )
    return schedule


def tight_covariance(h: CutNormals) -> Array:
    """Inverse of the mean precision of the components of h.

    The greatest curvature limits the step. Measured by the mean covariance, which the widest components decide, a
    step is as small everywhere as the narrowest direction of any component asks for: a tenth as long on RedWine.
    """
    inverses = np.linalg.inv(h.factors)
    precisions = inverses.transpose(0, 2, 1) @ inverses  # [j, d, d]
    shares = np.bincount(h.shape, h.weights, len(precisions))  # of h, by shape
    covariance: Array = np.linalg.inv(np.tensordot(shares, precisions, axes=1))
    return covariance


def _pilot(run: AnnealedWeights, chains: int, rng: np.random.Generator) -> tuple[Array, Array, float]:
    """Spread of log p~ - log g and adapted step size at every temperature, and the mean acceptance."""
    b = run.schedule.b
    state = run.state(run.mixture.sample(chains, rng))
    spread, step, shares = [_spread(state)], [run.schedule.step[0]], []
    size = float(run.schedule.step[0])
    for at in b[1:]:
        for _ in range(run.schedule.steps):
            state, share = run.move(state, float(at), size, rng)
            size *= float(np.exp(_GAIN * (share - TARGET_ACCEPTANCE)))
            shares.append(share)
        spread.append(_spread(state))
        step.append(size)
    return np.array(spread), np.array(step), float(np.mean(shares))


def _spread(state: _State) -> float:
    """Robust standard deviation of log p~ - log g over chains: a quarter of them may be lost without harm."""
    low, high = np.percentile(state.log_p - state.log_g, [16, 84])
    return float(high - low) / 2


def _even_spread(b: Array, spread: Array, most: int) -> Array:
    """Temperatures between which the spread, integrated over b, is the same; as many as it needs, up to a limit."""
    pieces = np.diff(b) * 0.5 * (spread[1:] + spread[:-1])
    count = int(np.clip(TEMPERATURES_PER_SQUARE * pieces.sum() ** 2, min(LEAST_TEMPERATURES, most), most))
    floor = 0.1 * pieces.mean() + np.finfo(float).tiny  # never a gap where the pilot chains happened to agree
    total = np.concatenate([[0.0], np.cumsum(pieces + floor)])
    placed: Array = np.interp(np.linspace(0, total[-1], count + 1), total, b)
    placed[0], placed[-1] = 0.0, 1.0
    return placed
