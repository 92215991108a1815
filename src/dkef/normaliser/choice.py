"""Which proposal brings the bias bound under the tolerance at the least cost?

q0 and the mixture always compete, the annealed chains only where neither of them is able: each draws a few weights
from a stream of its own, and what its relative variance says it would need decides. Cost is counted in evaluations of
p~, not in seconds, so that every machine chooses alike.
"""

import logging
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from dkef.files import read_json, write_json
from dkef.models.kef_parameters import KefParameters
from dkef.models.protocol import Array
from dkef.normaliser.chunks import ChunkRun
from dkef.normaliser.estimate import LEAST_EFFECTIVE, disagreement, own_doubts
from dkef.normaliser.moments import Moments
from dkef.normaliser.proposals import Name, Proposal, fit_proposal, read_proposal, weights_of, write_proposal
from dkef.normaliser.settings import Normaliser


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

    def misses_mass(self, others: Sequence["Entrant"]) -> bool:
        """A proposal can overlook part of Z but not invent it: a larger log Z elsewhere, beyond chance, tells."""
        mine = self.moments
        return any(o.moments.log_mean > mine.log_mean and disagreement(mine, o.moments) is not None for o in others)


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
        sound = [entrant for entrant in entrants if not own_doubts(entrant.moments)]
        winner = self._winner(entrants, sound)
        self.log.info("proposal: %s", winner.proposal.kind)
        others = {e.proposal.kind: e.moments for e in sound if e is not winner and not e.misses_mass(sound)}
        settings = self.settings.at_cost(winner.proposal.kind, winner.cost)
        run = ChunkRun(self.parameters, settings, self.name, self.threads, self.log, winner.proposal)
        return run.in_folder(folder / winner.proposal.kind, others)

    def _compete(self, folder: Path) -> list[Entrant]:
        entrants: list[Entrant] = []
        for kind in ("q0", "mixture", "annealed"):
            if kind == "annealed" and self._able(entrants):
                break
            entrants.append(self._entrant(kind, folder / kind))
        return entrants

    def _able(self, entrants: list[Entrant]) -> list[Entrant]:
        """Those without doubts that reach the tolerance within the budget."""
        assert self.settings.tolerance is not None
        sound = [entrant for entrant in entrants if not own_doubts(entrant.moments)]
        complete = [entrant for entrant in sound if not entrant.misses_mass(sound)]
        return [e for e in complete if e.cost_of(self.settings.tolerance) <= self.settings.samples]

    def _winner(self, entrants: list[Entrant], sound: list[Entrant]) -> Entrant:
        """The cheapest that is able; if none is, the one with most effective samples at its cost."""
        assert self.settings.tolerance is not None
        tolerance = self.settings.tolerance
        if able := self._able(entrants):
            return min(able, key=lambda entrant: entrant.cost_of(tolerance))
        rest = [entrant for entrant in sound if not entrant.misses_mass(sound)] or entrants
        return max(rest, key=lambda e: e.moments.effective_sample_size / e.moments.count / e.cost)

    def _entrant(self, kind: str, folder: Path) -> Entrant:
        proposal_file, record_file = folder / "proposal.h5", folder / "choice.json"
        if proposal_file.exists():
            proposal = read_proposal(proposal_file)
        else:
            proposal = fit_proposal(kind, self.parameters, self.rows, self.settings, self.name, self.log.info)
            write_proposal(proposal_file, proposal)
        weights = weights_of(proposal, self.parameters, self.name)
        count = max(2, self.settings.pilot_samples // weights.cost)
        identity = {"proposal": proposal.digest, "count": count}
        if not (record_file.exists() and identity.items() <= read_json(record_file).items()):
            halves = weights.moments("choice", 0, count, self.threads)
            write_json(record_file, identity | Moments.merge(halves).record())
        moments = Moments.of_record(read_json(record_file))
        self.log.info(
            "%s: log Z %.4f +- %.2g, effective sample size %.4g of %.4g%s", kind, moments.log_mean, moments.stderr,
            moments.effective_sample_size, moments.count, "".join(f"; {doubt}" for doubt in own_doubts(moments)),
        )  # fmt: skip
        return Entrant(proposal, weights.cost, moments)
