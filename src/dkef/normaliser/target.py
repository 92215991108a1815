"""log Z to a given accuracy by whatever proposal is able, confirmed by a method of another kind.

q0 and the defensive mixture each draw a few weights from a stream of their own; what their relative variance says they
would need decides which of them is run. Annealed chains start from the mixture and end at p~. They confirm the result
with a fifth of what it cost, or take over where neither of the others is able, or where the weights of the one that was
run turn out to have too heavy a tail. Cost is counted in evaluations of p~, not in seconds, so that every machine
chooses alike.
"""

import logging
import math
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from dkef.config.schema.normaliser import Normaliser
from dkef.config.typed import of_record, require
from dkef.core.arrays import Array
from dkef.core.files import AGAIN, read_json, write_json
from dkef.normaliser.chunks import HEAVY_TAIL, ChunkRun
from dkef.normaliser.concentration import concentration
from dkef.normaliser.files import PROPOSAL
from dkef.normaliser.integrand import Integrand
from dkef.normaliser.interval import LEAST_EFFECTIVE, Method, Verdict, judge, own_doubts, truncation
from dkef.normaliser.moments import Moments
from dkef.normaliser.proposals.store import Name, Proposal, kept_proposal, mixture_of

# Weights of a first look at the least. Chains cost so much that a budget of evaluations buys few of them; and of fewer
# than LEAST_EFFECTIVE none could ever be reported, whatever they are worth.
LEAST_LOOK = int(5 * LEAST_EFFECTIVE)
LEAST_CHAINS, MOST_CHAINS = 200, 2000  # that confirm another estimate
NO_MEAN = 1.0  # Pareto k-hat at which weights look as if they had no mean
TRUNCATION_SHARE = 10  # one weight more for so many, to fix where they are truncated
CHECK_SHARE = 0.2  # of all evaluations, for the method that confirms another


@dataclass(frozen=True)
class Candidate:
    """A proposal with what its first weights say."""

    proposal: Proposal
    cost: int  # of one weight
    method: Method

    @property
    def moments(self) -> Moments:
        return self.method.moments

    def cost_of(self, tolerance: float, half_width: float | None) -> float:
        """Evaluations after which the bound, about Var / (n Z^2), and the interval are narrow enough, and sound."""
        relative_variance = self.moments.count * self.moments.stderr**2
        needs = [relative_variance / tolerance, LEAST_EFFECTIVE * (1 + relative_variance)]
        if half_width is not None:
            needs.append(relative_variance * (1.96 / half_width) ** 2)
        return self.cost * max(needs)


@dataclass(frozen=True)
class _Truncation:
    """What choice.json holds beside moments."""

    log_c: float

    def __post_init__(self) -> None:
        require(math.isfinite(self.log_c), "log_c", self.log_c, "a finite number")


class TargetRun:
    """Chooses a proposal, runs it until the tolerance is met, confirms it; all is kept in a folder and resumed."""

    def __init__(
        self, integrand: Integrand, rows: Array | None, settings: Normaliser, name: Name, threads: int,
        log: logging.Logger,
    ) -> None:  # fmt: skip
        self.integrand, self.rows, self.settings, self.name = integrand, rows, settings, name
        self.threads, self.log = threads, log

    def in_folder(self, folder: Path) -> dict[str, Any]:
        """The record of log_z.json."""
        looks = [self._look("q0", folder)] if self.integrand.q0 is not None else []
        mixture = self._look("mixture", folder)
        looks.append(mixture)
        before = len(looks)
        chosen = self._able(looks)
        if chosen is None:
            looks.append(self._look("annealed", folder, mixture))
            chosen = self._able(looks) or self._best(looks)
        record, main = self._run(chosen, folder)
        methods = [look.method for look in looks]
        if len(looks) == before:  # chains have not been looked at
            methods.append(self._look("annealed", folder, mixture, main).method)
        verdict = judge(main, methods)
        if (verdict.reasons or record["stopped"] == HEAVY_TAIL) and chosen.proposal.kind != "annealed":
            _, chains = self._run(self._look("annealed", folder, mixture, main), folder)
            methods = [method for method in methods if method.name != chains.name] + [chains]
            verdict = judge(main, methods)
        self._report([main, *methods], verdict)
        return _with_verdict(record, main, methods, verdict) | {"concentration": self._concentration(folder, mixture)}

    def _concentration(self, folder: Path, mixture: Candidate) -> dict[str, Any]:
        """What draws of the model say of the fit; kept, since a resumed run need not be given the rows."""
        file = folder / "concentration.json"
        if self.rows is not None:
            g = mixture_of(mixture.proposal, self.integrand)
            write_json(file, concentration(self.integrand, g, self.rows, self.name))
        return {key: value for key, value in read_json(file).items() if key != "sha256"}

    def _able(self, looks: Sequence[Candidate]) -> Candidate | None:
        """The cheapest that is not refuted and, by its first weights, reaches the goal within the budget.

        One weight that makes much of the sum of squares is no reason to leave a proposal: with more samples it makes
        less, and the run goes on until it does.
        """
        assert self.settings.tolerance is not None
        goal = self.settings.tolerance, self.settings.half_width
        able = [
            look for look in self._standing(looks)
            if look.moments.effective_sample_size >= LEAST_EFFECTIVE
            and (look.moments.pareto_k_hat or 0.0) < NO_MEAN
            and look.cost_of(*goal) <= self.settings.samples
        ]  # fmt: skip
        return min(able, key=lambda look: look.cost_of(*goal), default=None)

    def _best(self, looks: Sequence[Candidate]) -> Candidate:
        """The fewest doubts, then the largest effective sample size at its cost.

        An estimate that few samples carry overstates how many those are, so that their number alone tells little.
        """
        return min(
            self._standing(looks),
            key=lambda c: (len(own_doubts(c.moments)), c.moments.count * c.cost / c.moments.effective_sample_size),
        )

    @staticmethod
    def _standing(looks: Sequence[Candidate]) -> list[Candidate]:
        methods = [look.method for look in looks]
        return [look for look in looks if look.method.refuted_by(methods) is None]

    def _run(self, chosen: Candidate, folder: Path) -> tuple[dict[str, Any], Method]:
        kind = chosen.proposal.kind
        self.log.info("proposal: %s", kind)
        settings = self.settings.at_cost(kind, chosen.cost)
        run = ChunkRun(self.integrand, settings, self.name, self.threads, self.log, chosen.proposal)
        return run.estimate_in(folder / kind, another_follows=kind != "annealed")

    def _look(self, kind: str, folder: Path, mixture: Candidate | None = None, main: Method | None = None) -> Candidate:
        """First weights of a proposal; so many that they confirm `main` at a share of its cost, if that is given."""
        file = folder / kind / PROPOSAL
        start = None if mixture is None else mixture.proposal
        proposal = kept_proposal(file, kind, self.integrand, self.rows, self.settings, self.name, self.log.info, start)
        run = ChunkRun(self.integrand, self.settings, self.name, self.threads, self.log, proposal)
        cost = run.weights.cost
        count = max(LEAST_LOOK, self.settings.pilot_samples // cost)
        if main is not None:
            count = int(min(max(CHECK_SHARE / (1 - CHECK_SHARE) * main.evaluations / cost, LEAST_CHAINS), MOST_CHAINS))
        record_file = folder / kind / "choice.json"
        identity = run.identity | {"count": count}
        if not (record_file.exists() and identity.items() <= read_json(record_file).items()):
            # The truncation of the weights is fixed by others, which are not used for anything else.
            before, first = (
                Moments.merge(run.weights.moments("choice", chunk, n, self.threads))
                for chunk, n in ((1, max(count // TRUNCATION_SHARE, 2)), (0, count))
            )
            write_json(record_file, identity | {"log_c": truncation(before.log_mean, count)} | first.record())
        record = read_json(record_file)
        moments = Moments.of_record(record, record_file)
        method = Method(kind, moments, of_record(_Truncation, record, record_file, AGAIN).log_c, cost * count)
        self.log.info(
            "%s: log Z %.4f +- %.2g, effective sample size %.4g of %.4g%s", kind, moments.log_mean, moments.stderr,
            moments.effective_sample_size, moments.count, "".join(f"; {doubt}" for doubt in own_doubts(moments)),
        )  # fmt: skip
        return Candidate(proposal, cost, method)

    def _report(self, methods: Sequence[Method], verdict: Verdict) -> None:
        for method in methods:
            refuting = method.refuted_by(methods)
            if refuting is not None:
                self.log.info(
                    "%s has missed mass: %s finds at least %.4f", method.name, refuting.name, refuting.lower_limit
                )
        self.log.info("log Z from %.4f to %.4f, by %s", verdict.low, verdict.high, verdict.reported.name)


def _with_verdict(record: dict[str, Any], main: Method, others: Sequence[Method], verdict: Verdict) -> dict[str, Any]:
    """The record of the main run, with what all methods say together."""
    reported = verdict.reported
    moments = reported.moments
    bound_of_another = {} if reported is main else {
        "log_z_bias_bound": None, "bound_condition": f"the bound belongs to {main.name}, which is not reported",
    }  # fmt: skip
    return record | bound_of_another | {
        "proposal": reported.name,
        "log_z": reported.log_z,
        "log_z_stderr": reported.stderr,
        "log_z_low": verdict.low,
        "log_z_high": verdict.high,
        "effective_sample_size": moments.effective_sample_size,
        "largest_weight_share": moments.largest_share,
        "pareto_k_hat": moments.pareto_k_hat,
        "samples": moments.count,
        "status": verdict.status,
        "methods": [method.record() for method in (main, *others)],
    }  # fmt: skip
