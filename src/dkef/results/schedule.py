"""The cost of an experiment's jobs as a table: by stage, by dataset, and what it means for a machine."""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from dkef.config.jobs import Job
from dkef.results.cost import CostModel, Estimate

MARKS = {"measured": "", "scaled": "~", "unknown": "?"}


@dataclass
class Total:
    """Core-seconds of some jobs, and the least that is known about any of them."""

    jobs: int = 0
    seconds: float = 0.0
    longest: float = 0.0
    known: set[str] = field(default_factory=set)

    def add(self, estimate: Estimate) -> None:
        self.jobs += 1
        self.seconds += estimate.seconds
        self.longest = max(self.longest, estimate.seconds)
        self.known.add(estimate.known)

    @property
    def hours(self) -> str:
        """Core-hours, marked where not all of them were measured."""
        mark = "".join(MARKS[known] for known in ("scaled", "unknown") if known in self.known)
        return f"{mark}{self.seconds / 3600:.2f}"


@dataclass(frozen=True)
class Schedule:
    """The jobs that are left, with their costs."""

    jobs: Sequence[Job]
    estimates: Sequence[Estimate]

    @classmethod
    def of(cls, jobs: Sequence[Job], costs: CostModel) -> "Schedule":
        return cls(jobs, [costs.estimate(job) for job in jobs])

    @property
    def core_seconds(self) -> float:
        return sum(estimate.seconds for estimate in self.estimates)

    def wall_seconds(self, cores: int) -> float:
        """All cores busy, but not less than the jobs that have to wait for one another: train, then log Z."""
        chains: defaultdict[tuple[str, str, int], dict[str, float]] = defaultdict(dict)
        for job, estimate in zip(self.jobs, self.estimates, strict=True):
            chain = chains[job.dataset, job.model, job.seed]
            chain[job.stage] = max(chain.get(job.stage, 0.0), estimate.seconds)
        return max(self.core_seconds / cores, *(sum(chain.values()) for chain in chains.values()), 0.0)

    def by_stage(self) -> dict[str, Total]:
        totals: defaultdict[str, Total] = defaultdict(Total)
        for job, estimate in zip(self.jobs, self.estimates, strict=True):
            totals[job.stage].add(estimate)
        return dict(totals)

    def by_dataset(self) -> dict[str, dict[str, Total]]:
        """For each dataset the totals of training, log Z, all else, and all."""
        totals: defaultdict[str, dict[str, Total]] = defaultdict(
            lambda: {"train": Total(), "log Z": Total(), "other": Total(), "all": Total()}
        )
        for job, estimate in zip(self.jobs, self.estimates, strict=True):
            log_z = job.stage.startswith(("normalise", "proposals"))
            column = "train" if job.stage == "train" else "log Z" if log_z else "other"
            for name in (column, "all"):
                totals[job.dataset or "(whole experiment)"][name].add(estimate)
        return dict(totals)

    def table(self, name: str, cores: int, requests: Mapping[str, int]) -> str:
        """What `make plan` prints; `requests` are the megabytes that the rules ask for."""
        stages = self.by_stage()
        if not stages:
            return f"experiment {name}: nothing is left to run\n"
        lines = [f"experiment {name}: {len(self.jobs)} jobs are left", ""]
        lines.append(f"{'stage':<20}{'jobs':>8}{'core-hours':>14}{'longest job':>14}{'memory':>10}")
        for stage, total in stages.items():
            memory = f"{requests[stage]} MB" if stage in requests else ""
            longest = f"{total.longest / 60:.1f} min"
            lines.append(f"{stage:<20}{total.jobs:>8}{total.hours:>14}{longest:>14}{memory:>10}")
        lines += ["", f"{'core-hours':<20}" + "".join(f"{column:>12}" for column in ("train", "log Z", "other", "all"))]
        for dataset, totals in self.by_dataset().items():
            lines.append(f"{dataset:<20}" + "".join(f"{total.hours:>12}" for total in totals.values()))
        largest = max((stage for stage in stages if stage in requests), key=lambda s: requests[s], default=None)
        lines += ["", f"{self.core_seconds / 3600:.1f} core-hours; {self._wall(cores)}"]
        if largest is not None:
            lines.append(f"largest memory request: {requests[largest]} MB ({largest})")
        lines.append("~ scaled from another model or dataset   ? never measured, counted as 0")
        return "\n".join(lines) + "\n"

    def _wall(self, cores: int) -> str:
        return f"about {self.wall_seconds(cores) / 3600:.1f} hours with CORES={cores}"
