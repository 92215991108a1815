"""Chunk files: one small JSON for the pilot and for each chunk, written once, merged in the order of their numbers."""

import logging
import math
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from dkef.config.code import sources_digest
from dkef.config.schema.normaliser import Normaliser
from dkef.config.typed import of_record, require
from dkef.core.errors import DkefError, one_line
from dkef.core.files import AGAIN, read_json, write_json
from dkef.normaliser.bias_bound import BoundError
from dkef.normaliser.estimate import Pilot, Stages, bound, conclude, merge_halves, run_pilot
from dkef.normaliser.files import PILOT, chunk_name
from dkef.normaliser.integrand import Integrand
from dkef.normaliser.interval import TWO_SIDED, Method, has_heavy_tail, own_doubts
from dkef.normaliser.moments import Moments
from dkef.normaliser.proposals.store import BEHIND_PARTS, Q0, Name, Proposal, weights_of
from dkef.normaliser.weights import LONG_STAGES, Halves

_REPORT_SECONDS = 20.0
# Looks in a row, each at twice as many weights, that must show a heavy tail before a proposal is given up: k-hat has a
# standard error of 0.1.
HEAVY_LOOKS = 2
HEAVY_TAIL = "heavy tail"  # why such a run stopped


class Progress:
    """Logs samples per second and the time left, now and then."""

    def __init__(self, total: int, log: logging.Logger) -> None:
        self.total, self.log = total, log
        self.done = 0
        self.start = self.last = time.monotonic()

    def chunk(self, label: str) -> Callable[[int], None]:
        """A listener for one chunk, to be told how many of its samples are done."""
        before = self.done

        def listen(done: int) -> None:
            self.done = before + done
            now = time.monotonic()
            if now - self.last < _REPORT_SECONDS and self.done < self.total:
                return
            self.last = now
            rate = self.done / max(now - self.start, 1e-9)
            left = (self.total - self.done) / rate
            share = f"{self.done:.3g} of {self.total:.3g} samples"
            self.log.info("%s: %s, %.3g/s, %s left", label, share, rate, clock(left))

        return listen


def clock(seconds: float) -> str:
    """Seconds as h:mm:ss."""
    minutes, rest = divmod(round(seconds), 60)
    return f"{minutes // 60}:{minutes % 60:02d}:{rest:02d}"


def _rounds(most: int) -> Iterator[int]:
    """How many chunks to have before each look at the bound: 1, 2, 4, ... and all."""
    chunks = 1
    while chunks < most:
        yield chunks
        chunks *= 2
    yield most


@dataclass(frozen=True)
class _ChunkRecord:
    """What a chunk file holds beside its identity."""

    chunk: int
    count: int
    halves: list[dict[str, Any]]

    def __post_init__(self) -> None:
        require(self.chunk >= 0, "chunk", self.chunk, ">= 0")


class ChunkRun:
    """The chunks of one model: computes one, finds finished ones in a folder, puts them together."""

    def __init__(
        self,
        integrand: Integrand,
        settings: Normaliser,
        name: Name,
        threads: int,
        log: logging.Logger,
        proposal: Proposal = Q0,
    ) -> None:
        self.weights = weights_of(proposal, integrand, name)
        self.settings, self.threads, self.log, self.kind = settings, threads, log, proposal.kind
        self.identity: dict[str, Any] = {
            "name": list(name), "parameters": integrand.digest, "proposal": proposal.digest,
            "code": sources_digest(BEHIND_PARTS),
        }  # fmt: skip

    def pilot(self) -> dict[str, Any]:
        """The record of pilot.json."""
        samples = self.settings.pilot_samples
        self.log.info("pilot: twice %.3g samples", samples)
        pilot = run_pilot(self.weights, samples, self.threads, self.settings.percentile)
        return self.identity | {"samples": samples, "percentile": self.settings.percentile} | asdict(pilot)

    def chunk(self, stage: str, number: int, progress: Progress | None = None) -> dict[str, Any]:
        """The record of one chunk file."""
        samples = self.settings.chunk_samples
        progress = progress or Progress(samples, self.log)
        listen = progress.chunk(f"{stage} chunk {number}")
        halves = self.weights.moments(stage, number, samples, self.threads, listen)
        return self._chunk_identity(stage, number) | {"halves": [half.record() for half in halves]}

    def keep_pilot(self, path: Path) -> None:
        """Write pilot.json, unless it is there for these settings."""
        wanted = {"samples": self.settings.pilot_samples, "percentile": self.settings.percentile}
        if not self._usable(path, self.identity | wanted):
            write_json(path, self.pilot())

    def keep_chunk(self, path: Path, stage: str, number: int, progress: Progress | None = None) -> None:
        """Write one chunk file, unless it is there."""
        if not self._usable(path, self._chunk_identity(stage, number)):
            write_json(path, self.chunk(stage, number, progress))

    def merge(self, pilot: Path, stages: dict[str, list[Path]]) -> dict[str, Any]:
        """The record of log_z.json from finished files."""
        return self._concluded(self._read_pilot(pilot), stages, "samples", None)[0]

    def in_folder(self, folder: Path) -> dict[str, Any]:
        """The whole estimate with its files in a folder: what is there is used, what is missing is computed."""
        return self.estimate_in(folder)[0]

    def estimate_in(self, folder: Path, another_follows: bool = False) -> tuple[dict[str, Any], Method]:
        """As `in_folder`, with the estimate itself.

        With a tolerance, a stream of its own grows by doubling until it says that the bound and the standard error of
        the others, with as many samples each, will be small enough and nothing looks wrong, or the budget is spent.
        None of what is reported has been looked at for that decision, so that it is not the result of optional
        stopping. Should the others look wrong nevertheless, z grows until they do not. Nothing that was drawn is left
        out, and variance and bound_z stay as they are: the bound would be too small if they grew where they are large.

        A tail that is too heavy stays so however many are drawn. Where another proposal follows, the rest of the budget
        is not spent on this one.
        """
        pilot_file = folder / PILOT
        self.keep_pilot(pilot_file)
        pilot = self._read_pilot(pilot_file)
        counts = {stage: self.settings.chunks(stage) for stage in LONG_STAGES}
        if self.settings.tolerance is None:
            return self._concluded(pilot, self._complete(folder, counts), "samples", None)
        stopped, heavy = "budget", 0
        for most in _rounds(max(counts.values())):
            stopping = self._stage_moments("stopping", self._complete(folder, {"stopping": most})["stopping"])
            if self._enough(pilot, stopping):
                stopped, counts = "tolerance", {stage: min(most, n) for stage, n in counts.items()}
                break
            heavy = heavy + 1 if has_heavy_tail(stopping) else 0
            if another_follows and heavy == HEAVY_LOOKS:
                self.log.info("given up: the tail of the weights stays too heavy")
                stopped, counts = HEAVY_TAIL, {stage: min(most, n) for stage, n in counts.items()}
                break
        while True:
            record, method = self._concluded(pilot, self._complete(folder, counts), stopped, stopping)
            more = min(2 * counts["z"], self.settings.chunks("z"))
            if more == counts["z"] or stopped == HEAVY_TAIL or not (doubts := own_doubts(method.moments)):
                return record, method
            self.log.info("more samples: %s", "; ".join(doubts))
            counts["z"] = more

    def _concluded(
        self, pilot: Pilot, files: dict[str, list[Path]], stopped: str, stopping: Moments | None
    ) -> tuple[dict[str, Any], Method]:
        variance, bound_z = (self._stage_moments(stage, files[stage]) for stage in ("variance", "bound_z"))
        stages = Stages(variance, bound_z, self._merge_stage("z", files["z"]))
        return conclude(self.kind, pilot, stages, stopped, stopping, self.weights.cost)

    def _enough(self, pilot: Pilot, stopping: Moments) -> bool:
        """Whether three streams as long as this one will do."""
        tolerance, half_width = self.settings.tolerance, self.settings.half_width
        assert tolerance is not None
        n = 3 * stopping.count
        unsure = own_doubts(stopping)
        found = 0.0
        try:
            found = bound(pilot, stopping, stopping, n)
        except BoundError as failure:
            if pilot.log_a is not None:  # no number of samples gives a bound to a linear kernel
                unsure.append(f"no bound: {failure}")
        width = TWO_SIDED * stopping.stderr / math.sqrt(3)
        remarks = "".join(f"; {doubt}" for doubt in unsure)
        self.log.info("%.3g samples: bound %.3g nats, interval +- %.3g%s", n, found, width, remarks)
        return found < tolerance and (half_width is None or width < half_width) and not unsure

    def _stage_moments(self, stage: str, paths: Iterable[Path]) -> Moments:
        return Moments.merge(self._merge_stage(stage, paths))

    def _complete(self, folder: Path, counts: dict[str, int]) -> dict[str, list[Path]]:
        """Compute what is missing of the first chunks of each stage; returns all their files."""
        files = {s: [folder / chunk_name(s, k) for k in range(n)] for s, n in counts.items()}
        missing = [
            (stage, k, path)
            for stage, paths in files.items()
            for k, path in enumerate(paths)
            if not self._usable(path, self._chunk_identity(stage, k))
        ]
        if other := sum(path.exists() for _, _, path in missing):
            self.log.info("%d finished chunks are of another model, proposal, size or code, and are made again", other)
        progress = Progress(len(missing) * self.settings.chunk_samples, self.log)
        for stage, k, path in missing:
            self.keep_chunk(path, stage, k, progress)
        return files

    def _chunk_identity(self, stage: str, number: int) -> dict[str, Any]:
        return self.identity | {"stage": stage, "chunk": number, "count": self.settings.chunk_samples}

    def _usable(self, path: Path, identity: dict[str, Any]) -> bool:
        """Whether a file is there and is the one asked for, not one of another model or size."""
        return path.exists() and identity.items() <= read_json(path).items()

    def _read_pilot(self, path: Path) -> Pilot:
        record = read_json(path)
        self._check(path, record, self.identity)
        if "log_a" not in record:  # None is an answer, silence is not
            raise DkefError(f"{path}: log_a is missing; {AGAIN}")
        return of_record(Pilot, record, path, AGAIN)

    def _merge_stage(self, stage: str, paths: Iterable[Path]) -> Halves:
        records = {}
        for path in paths:
            record = read_json(path)
            self._check(path, record, self.identity | {"stage": stage, "count": self.settings.chunk_samples})
            number, (first, second) = self._read_halves(path, record)
            if number in records:
                raise DkefError(f"{path} holds {stage} chunk {number} a second time; give every chunk once")
            records[number] = first, second
        if sorted(records) != list(range(len(records))):
            raise DkefError(f"{stage}: chunks {sorted(records)} have gaps; compute the missing ones")
        return merge_halves([records[k] for k in sorted(records)])

    def _read_halves(self, path: Path, record: dict[str, Any]) -> tuple[int, Halves]:
        """The number of a chunk and its moments, which must be of all its samples."""
        chunk = of_record(_ChunkRecord, record, path, AGAIN)
        halves = [Moments.of_record(half, path) for half in chunk.halves]
        # A single sample stands for both halves.
        if len(halves) != 2 or sum(half.count for half in halves) != max(2, chunk.count):
            raise DkefError(f"{path} does not hold two halves of {chunk.count} samples; {AGAIN}")
        return chunk.chunk, (halves[0], halves[1])

    def _check(self, path: Path, record: dict[str, Any], identity: dict[str, Any]) -> None:
        for key, wanted in identity.items():
            if record.get(key) != wanted:
                found = one_line(repr(record.get(key)))
                raise DkefError(f"{path} has {key} {found}, not {wanted!r}; {AGAIN}")
