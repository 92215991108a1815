"""The jobs of an experiment as its plan says them, without Snakemake's graph: which there are and which are left.

The rules in workflow/rules say the same; tests/workflow/test_plan_of_the_paper.py compares the two.
"""

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from dkef.config.plan import Plan


@dataclass(frozen=True)
class Job:
    """One job: its rule, what it writes, and what its cost depends on."""

    stage: str
    output: Path
    dataset: str = ""
    model: str = ""
    seed: int = 0
    samples: int = 0  # of the normaliser


@dataclass(frozen=True)
class Wanted:
    """What the report of an experiment shows: its figures with the tables each reads, and its pages."""

    figures: Mapping[str, Collection[str]]
    pages: Collection[str]
    stages: Collection[str] = ()  # of tables that a figure has for itself

    def reads(self, *tables: str) -> bool:
        """Whether any figure reads one of these tables."""
        return any(table in needs for needs in self.figures.values() for table in tables)


def pending_jobs(plan: Plan, wanted: Wanted, root: Path) -> list[Job]:
    """The jobs whose output is not below `root` yet; whether one that is there is up to date, Snakemake knows.

    Pilot and chunks stand only behind log Z, and jobs of the whole experiment run again when anything before them does.
    """
    cells = [job for job in cell_jobs(plan, wanted) if not (root / job.output).exists()]
    merged = {job.output.parent for job in cells if job.stage == "normalise_merge"}
    parts = ("normalise_pilot", "normalise_chunk")
    cells = [job for job in cells if job.stage not in parts or merged & set(job.output.parents)]
    return cells + [job for job in whole_jobs(plan, wanted) if cells or not (root / job.output).exists()]


def cell_jobs(plan: Plan, wanted: Wanted) -> Iterator[Job]:
    """Jobs of single files, datasets and cells."""
    files = dict.fromkeys(file for dataset in plan.datasets() for file in plan.source(dataset).files)
    yield from (Job("fetch", Path("data/raw", file)) for file in files)
    for dataset in plan.datasets():
        for seed in plan.seeds(dataset):
            yield Job("preprocess", Path("data/processed", dataset, f"seed{seed}.h5"), dataset, seed=seed)
            if wanted.reads("sensitivity", "agreement"):
                output = Path("results", plan.name, dataset, "sensitivity", f"seed{seed}.csv")
                yield Job("sensitivity", output, dataset, seed=seed)
    for dataset, model, seed in plan.cells:
        yield from _jobs_of_cell(plan, wanted, dataset, model, seed)


def _jobs_of_cell(plan: Plan, wanted: Wanted, dataset: str, model: str, seed: int) -> Iterator[Job]:
    folder = Path("results", plan.name, dataset, model, f"seed{seed}")

    def job(stage: str, name: str, samples: int = 0) -> Job:
        return Job(stage, folder / name, dataset, model, seed, samples)

    yield job("train", "model.h5")
    yield job("evaluate", "evaluation.h5")
    if plan.synthetic(dataset):
        yield job("grid", "grid.h5")
    if not plan.normalised(dataset, model):
        settings = plan.cell(dataset, model).normaliser
        if settings.tolerance is not None:
            yield job("normalise_target", "log_z.json")
        else:
            yield job("normalise_merge", "log_z.json")
            yield job("normalise_pilot", "normalise/pilot.json", 2 * settings.pilot_samples)
            for stage in ("variance", "bound_z", "z"):
                for chunk in range(settings.chunks(stage)):
                    yield job("normalise_chunk", f"normalise/{stage}/chunk{chunk:04d}.json", settings.chunk_samples)
        if wanted.reads("proposals"):
            yield job("proposals", "proposals.csv")
    yield job("compare", "metrics.csv")


def whole_jobs(plan: Plan, wanted: Wanted) -> Iterator[Job]:
    """Jobs of the whole experiment: tables, figures, pages, report."""
    results, figures = Path("results", plan.name), Path("figures", plan.name)
    if plan.cells:
        tables = {"summarise": "metrics.csv", "reference_values": "reference_values.csv", "claims": "claims.csv"}
        yield from (Job(stage, results / name) for stage, name in tables.items())
        yield from (Job("page", results / "pages" / f"{page}.html") for page in wanted.pages)
    if wanted.reads("sensitivity", "agreement"):
        yield Job("agreement", results / "agreement.csv")
    yield from (Job(stage, results / f"{stage}.csv") for stage in wanted.stages)
    yield from (Job("render", figures / f"{figure}.png") for figure in wanted.figures)
    yield Job("report", results / "report.html")
