"""Every file of results that a report is made of: where it lies, which cells have one, which columns it has.

Light to import: the workflow reads this while it is planned.
"""

import glob
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from dkef.config.plan import Plan

PROVENANCE = ("config_digest", "code_version")
CELL = "results/{experiment}/{dataset}/{model}/seed{seed}"


@dataclass(frozen=True)
class Table:
    """A file of an experiment, or a family of files with one for each cell."""

    name: str  # on command lines and in `Results`
    path: str  # from the project's folder; {experiment}, {dataset}, {model} and {seed} are filled in
    columns: tuple[str, ...] = ()
    texts: tuple[str, ...] = ()  # columns that are not numbers
    reader: str = "table"  # one of dkef.results.read.READERS
    cells: str = "all"  # which cells have one: all, planar or unnormalised
    stage: str = ""  # that makes it, where it belongs to one figure alone

    @property
    def numbers(self) -> tuple[str, ...]:
        return tuple(column for column in self.columns if column not in self.texts)

    def files(self, plan: "Plan") -> list[str]:
        """Paths of all files of this kind in an experiment."""
        if "{dataset}" not in self.path:
            path = self.path.format(experiment=plan.name)
            return sorted(glob.glob(path)) if "*" in path else [path]
        chosen = (cell for cell in plan.cells if self._has(plan, *cell[:2]))
        paths = (self.path.format(experiment=plan.name, dataset=d, model=m, seed=s) for d, m, s in chosen)
        return list(dict.fromkeys(paths))

    def _has(self, plan: "Plan", dataset: str, model: str) -> bool:
        if self.cells == "planar":  # the space can be drawn
            return plan.synthetic(dataset)
        return self.cells == "all" or not plan.normalised(dataset, model)


METRICS = Table(
    "metrics", "results/{experiment}/metrics.csv",
    columns=("dataset", "model", "seed", "metric", "value", "stderr", "status", *PROVENANCE),
    texts=("dataset", "model", "metric", "status", *PROVENANCE),
)  # fmt: skip
SUMMARY = Table(
    "summary", "results/{experiment}/summary.csv",
    columns=(
        *("dataset", "model", "metric", "median", "interval_low", "interval_high", "interval_coverage"),
        *("runs", "runs_ok", "runs_untrusted", "runs_diverged", "runs_invalid", "runs_undefined"),
    ),
    texts=("dataset", "model", "metric"),
)  # fmt: skip
PAIRED_TESTS = Table(
    "paired_tests", "results/{experiment}/paired_tests.csv",
    columns=(
        *("dataset", "metric", "model", "reference", "pairs", "pairs_untrusted", "seeds_without_pair"),
        *("median_difference", "interval_low", "interval_high", "interval_coverage", "p_value", "better", "status"),
    ),
    texts=("dataset", "metric", "model", "reference", "better", "status"),
)  # fmt: skip
SENSITIVITY = Table(
    "sensitivity", "results/{experiment}/sensitivity.csv",
    columns=(
        *("dataset", "model", "seed", "statistic", "bandwidth_factor", "locations", "value", "stderr", "status"),
        *PROVENANCE,
    ),
    texts=("dataset", "model", "statistic", "status", *PROVENANCE),
)  # fmt: skip
AGREEMENT = Table(
    "agreement", "results/{experiment}/agreement.csv",
    columns=(
        *("dataset", "seed", "bandwidth_factor", "locations", "models", "best_by_fssd", "best_by_ksd"),
        *("tau_fssd_ksd", "tau_fssd_default", "tau_ksd_default", "status"),
    ),
    texts=("dataset", "best_by_fssd", "best_by_ksd", "status"),
)  # fmt: skip
PROPOSALS = Table(
    "proposals", f"{CELL}/proposals.csv",
    columns=(
        *("dataset", "model", "seed", "proposal", "samples", "evaluations", "log_z", "stderr", "bias_bound"),
        *("effective_sample_size", "pareto_k_hat", "halves_apart", "log_likelihood", "status"),
        *PROVENANCE,
    ),
    texts=("dataset", "model", "proposal", "status", *PROVENANCE),
    cells="unnormalised",
)  # fmt: skip
OBJECTIVE_COSTS = Table(
    "objective_costs", "results/{experiment}/objective_costs.csv",
    columns=(
        *("dataset", "model", "seed", "objective", "iterations"),
        *("cpu_seconds_per_step", "cpu_seconds_per_validation"),
    ),
    texts=("dataset", "model", "objective"),
    stage="objective_costs",
)  # fmt: skip
OBJECTIVE_SCALING = Table("objective_scaling", "results/published/objectives/scaling.json", reader="record")
CLAIMS = Table(
    "claims", "results/{experiment}/claims.csv",
    columns=(
        claims := (
            *("claim", "place", "statement", "rule", "test", "level", "power", "p_value", "adjusted_p"),
            *("verdict", "tendency", "numbers", "reason"),
        )
    ),
    texts=claims,
)  # fmt: skip
KNOWN_VALUES = Table(
    "known_values", "data/reference_values.csv",
    columns=("source", "place", "comparable", "dataset", "model", "metric", "value", "uncertainty", "note"),
    texts=("source", "place", "comparable", "dataset", "model", "metric", "note"),
)  # fmt: skip
REFERENCE_VALUES = Table(
    "reference_values", "results/{experiment}/reference_values.csv",
    columns=(
        *("dataset", "model", "metric", "reference_value", "uncertainty", "ours", "low", "high", "coverage", "runs"),
        *("untrusted", "difference", "comparable", "source", "place", "note"),
    ),
    texts=("dataset", "model", "metric", "comparable", "source", "place", "note"),
)  # fmt: skip
DEVIATIONS = Table(
    "deviations", "workflow/report/deviations.csv",
    columns=(deviations := ("topic", "paper", "code", "key", "text", "departure", "ours", "why", "recommended")),
    texts=deviations,
)  # fmt: skip
FIDELITY = Table("fidelity", "config/fidelity/*.yaml", reader="yaml")
SPLITS = Table("splits", "data/processed/{dataset}/seed0.h5", reader="splits")
GRIDS = Table("grids", f"{CELL}/grid.h5", reader="grid", cells="planar")
TRACES = Table("traces", f"{CELL}/trace.csv", reader="trace")
SCORE_TRACES = replace(TRACES, cells="unnormalised")  # of kernel exponential families, as claims read them
MODELS = Table("models", f"{CELL}/model.h5", reader="paths")
TRAINING_COSTS = Table("training_costs", f"{CELL}/train.benchmark.jsonl", reader="benchmark")

# What two tables of the report are made from; figures and pages say so in their catalogues.
BEHIND_CLAIMS = (METRICS, SUMMARY, GRIDS, SCORE_TRACES)
BEHIND_REFERENCE_VALUES = (SUMMARY, KNOWN_VALUES)

# What a bundle says of its cells.
CELLS = (
    "dataset", "model", "seed", "config_digest", "code_version", "code_date", "processor", "libraries",
    "status", "stopped", "effective_sample_size", "nearest_neighbour_ratio",
    "train_seconds", "normalise_seconds", "other_seconds", "cpu_seconds_per_step",
)  # fmt: skip
SECONDS = ("train_seconds", "normalise_seconds", "other_seconds")  # of all jobs; those of log Z may be many
# The first two as in log_z.json, the last as a training notes it.
CELL_NUMBERS = ("effective_sample_size", "nearest_neighbour_ratio", *SECONDS, "cpu_seconds_per_step")
CELLS_TABLE = Table(
    "cells", "results/published/{experiment}/cells.csv", columns=CELLS,
    texts=tuple(name for name in CELLS if name not in (*CELL_NUMBERS, "seed")),
)  # fmt: skip
