"""Which proposal brings the bias bound under the tolerance at the least cost?

q0 and the mixture always compete, the annealed chains only where neither of them is able: each draws a few weights
from a stream of its own, and what its relative variance says it would need decides. Cost is counted in evaluations of
p~, not in seconds, so that every machine chooses alike.
"""

import logging
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from dkef.config.schema.normaliser import Normaliser
from dkef.core.arrays import Array
from dkef.core.files import read_json, write_json
from dkef.models.kef.parameters import KefParameters
from dkef.normaliser.chunks import ChunkRun
from dkef.normaliser.estimate import LEAST_EFFECTIVE, missed_mass, own_doubts
from dkef.normaliser.moments import Moments
from dkef.normaliser.proposals.store import Name, Proposal, kept_proposal

# Weights of a first look at the least. Chains cost so much that a budget of evaluations buys few of them; and of fewer
# than LEAST_EFFECTIVE none could ever be trusted, whatever they are worth.
LEAST_LOOK = int(5 * LEAST_EFFECTIVE)


@dataclass(frozen=True)
class Entrant:
    """A proposal with what its first weights say."""

    proposal: Proposal
    cost: int  # of one weight
    moments: Moments

    def cost_of(self, tolerance: float) -> float:
        """Evaluations after which the bound, about Var / (n Z^2), is below the tolerance and the estimate is sound."""
        relative_variance = self.moments.count * self.moments.stderr**2
        return self.cost * max(relative_variance / tolerance, LEAST_EFFECTIVE * (1 + relative_variance))

    @property
    def doubts(self) -> list[str]:
        return own_doubts(self.moments)

    @property
    def sound(self) -> bool:
        return not self.doubts

    def misses_mass(self, others: Sequence["Entrant"]) -> bool:
        """Whether another estimate is larger beyond chance."""
        mine = self.moments
        gaps = (
            missed_mass(mine.log_mean, mine.stderr, other.moments.log_mean, other.moments.stderr, other.sound)
            for other in others
        )
        return any(gap is not None for gap in gaps)


class CheapestRun:
    """Chooses a proposal, then runs it until the tolerance is met; everything is kept in a folder and resumed."""

    def __init__(
        self, parameters: KefParameters, rows: Array | None, settings: Normaliser, name: Name, threads: int,
        log: logging.Logger,
    ) -> None:  # fmt: skip
        self.parameters, self.rows, self.settings, self.name = parameters, rows, settings, name
        self.threads, self.log = threads, log

    def in_folder(self, folder: Path) -> dict[str, object]:
        """The record of log_z.json."""
        entrants = self._compete(folder)
        winner = self._winner(entrants)
        self.log.info("proposal: %s", winner.proposal.kind)
        others = {e.proposal.kind: e.moments for e in _complete(entrants) if e.sound and e is not winner}
        settings = self.settings.at_cost(winner.proposal.kind, winner.cost)
        run = ChunkRun(self.parameters, settings, self.name, self.threads, self.log, winner.proposal)
        return run.in_folder(folder / winner.proposal.kind, others)

    def _compete(self, folder: Path) -> list[Entrant]:
        entrants: list[Entrant] = []
        for kind in ("q0", "mixture", "annealed"):  # the last starts from the one before
            if kind == "annealed" and self._able(entrants):
                break
            entrants.append(self._entrant(kind, folder / kind, entrants[-1].proposal if entrants else None))
        return entrants

    def _able(self, entrants: list[Entrant]) -> list[Entrant]:
        """Those without doubts that reach the tolerance within the budget."""
        assert self.settings.tolerance is not None
        sound = [entrant for entrant in _complete(entrants) if entrant.sound]
        return [e for e in sound if e.cost_of(self.settings.tolerance) <= self.settings.samples]

    def _winner(self, entrants: list[Entrant]) -> Entrant:
        """The cheapest that is able; if none is, that with the fewest doubts, then most effective samples at its cost.

        An estimate that few samples carry overstates how many those are, so that effective samples alone tell little.
        """
        assert self.settings.tolerance is not None
        tolerance = self.settings.tolerance
        if able := self._able(entrants):
            return min(able, key=lambda entrant: entrant.cost_of(tolerance))
        return min(
            _complete(entrants),
            key=lambda e: (len(e.doubts), e.moments.count * e.cost / e.moments.effective_sample_size),
        )

    def _entrant(self, kind: str, folder: Path, before: Proposal | None) -> Entrant:
        record_file = folder / "choice.json"
        proposal = kept_proposal(
            folder / "proposal.h5", kind, self.parameters, self.rows, self.settings, self.name, self.log.info, before
        )
        run = ChunkRun(self.parameters, self.settings, self.name, self.threads, self.log, proposal)
        weights = run.weights
        identity = run.identity | {"count": max(LEAST_LOOK, self.settings.pilot_samples // weights.cost)}
        if not (record_file.exists() and identity.items() <= read_json(record_file).items()):
            halves = weights.moments("choice", 0, identity["count"], self.threads)
            write_json(record_file, identity | Moments.merge(halves).record())
        moments = Moments.of_record(read_json(record_file), record_file)
        self.log.info(
            "%s: log Z %.4f +- %.2g, effective sample size %.4g of %.4g%s", kind, moments.log_mean, moments.stderr,
            moments.effective_sample_size, moments.count, "".join(f"; {doubt}" for doubt in own_doubts(moments)),
        )  # fmt: skip
        return Entrant(proposal, weights.cost, moments)


def _complete(entrants: list[Entrant]) -> list[Entrant]:
    """Those that overlook nothing which another one sees; at least the one with the largest log Z."""
    return [entrant for entrant in entrants if not entrant.misses_mass(entrants)]
