"""Tables of a whole bundle for documents: what an experiment found, as texts in rows and columns."""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import pandas as pd

from dkef.config.plan import Plan
from dkef.core.errors import ConfigError
from dkef.report.claims.catalogue import judge_all
from dkef.report.claims.evidence import LEVEL
from dkef.report.claims.verdict import FAILED, HELD, IN_PART, NO_TEST, OPEN
from dkef.results.bundle import read_bundle, rows_of
from dkef.results.experiment import DatasetEntry
from dkef.results.lookup import Results, Run
from dkef.results.names import label_of, model_order
from dkef.results.publish import results_of
from dkef.results.read import Key
from dkef.results.tables import CELLS_TABLE, METRICS

Rows = list[dict[str, str]]  # texts by column
NOT_RUN = "not run yet"
# Metrics with their heading and significant digits.
SHOWN = {
    "fssd2": ("FSSD^2", 2), "fssd_p_value": ("p of the FSSD test", 2), "score_loss": ("score loss", 3),
    "log_likelihood": ("log-likelihood", 4), "fisher_divergence": ("Fisher divergence", 2),
}  # fmt: skip
FIGURE_3 = ("fssd2", "fssd_p_value", "score_loss", "log_likelihood")
COPIES = ("score_loss", "log_likelihood")


@dataclass(frozen=True)
class BundleTable:
    """A table of a document that is made of a whole bundle."""

    bundle: str  # folder below the project's
    shows: str  # one of KINDS
    metric: str = "fisher_divergence"  # of `medians`
    labels: dict[str, str] = field(default_factory=dict)  # words for values


def results_at(folder: Path) -> Results:
    """What a bundle holds, as figures and claims read it."""
    bundle = read_bundle(folder)
    return results_of(bundle, Plan(bundle.experiment).experiment_slice())


def bundle_table(about: BundleTable, results: Results, where: str) -> pd.DataFrame:
    """The rows and columns of a table, as texts."""
    if about.shows not in KINDS:
        raise ConfigError(f"{where}: a bundle's table shows {about.shows!r}; allowed are {', '.join(KINDS)}")
    return pd.DataFrame(KINDS[about.shows](results, about) or [{"dataset": NOT_RUN}])


def claims(results: Results, about: BundleTable) -> Rows:
    """Every statement with its verdict, level and numbers, the decided ones first."""
    rows = sorted(judge_all(results), key=lambda row: (HELD, FAILED, OPEN).index(row["verdict"]))
    return [
        {
            "the paper": f"“{row['statement']}” {row['place']}",
            "verdict": row["verdict"] + (f"; points to: {row['tendency']}" if row["tendency"] else ""),
            "level": row["level"],
            "test": row["test"],
            "p for all claims": f"{float(row['adjusted_p']):.2g}" if row["adjusted_p"] else "",
            "numbers": ". ".join(filter(None, [row["reason"], row["numbers"] if _has_numbers(row) else ""])),
        }
        for row in rows
    ]


def verdicts(results: Results, about: BundleTable) -> Rows:
    """How many statements have each verdict, and how many of these stand when all are tested at once."""
    rows = judge_all(results)
    tested = sum(row["adjusted_p"] != "" for row in rows)
    counted = []
    for verdict in (HELD, FAILED, OPEN):
        own = [row for row in rows if row["verdict"] == verdict]
        sure = sum(row["adjusted_p"] == "" or float(row["adjusted_p"]) <= LEVEL for row in own)
        counted.append({
            "verdict": verdict, "statements": str(len(own)),
            f"also with all {tested} tests at once": "" if verdict == OPEN else str(sure),
        })  # fmt: skip
    return counted


def _has_numbers(row: Mapping[str, str]) -> bool:
    """Where nothing was run, not even in part, the reason names the same parts as the numbers."""
    return row["test"] != NO_TEST or row["reason"].startswith(IN_PART)


def median_text(results: Results, dataset: str, model: str, metric: str) -> str:
    """A median with its interval; one run with its standard error; else why there is no value."""
    median, runs = results.median(dataset, model, metric), results.runs(dataset, model, metric)
    digits = SHOWN.get(metric.removesuffix("_no_copies"), ("", 3))[1]
    if len(runs) == 1:
        return run_text(next(iter(runs.values())), digits)
    if not runs:
        return results.reasons(dataset, model, metric) or NOT_RUN
    low, high = (f"{end:#.{digits}g}" for end in (median.low, median.high))
    return f"{median.value:#.{digits}g} [{low}, {high}]"


def run_text(run: Run, digits: int) -> str:
    """A value with its standard error in brackets."""
    error = f" ({run.stderr:#.2g})" if math.isfinite(run.stderr) else ""
    return f"{run.value:#.{digits}g}{error}{'' if run.trusted else '?'}"


def _runs(results: Results, entry: DatasetEntry, model: str) -> dict[str, str]:
    """How many runs a model has of those planned, and how many of them are in doubt or invalid."""
    loss, likelihood = (results.median(entry.name, model, metric) for metric in ("score_loss", "log_likelihood"))
    counts = {"runs": f"{loss.runs} of {entry.planned(model)}"}
    return counts | {"log Z untrusted": str(likelihood.untrusted), "invalid": str(loss.failed)}


def _models(entry: DatasetEntry) -> list[str]:
    return [model for model in model_order(entry.models) if model not in entry.beside]


def figure_3(results: Results, about: BundleTable) -> Rows:
    """Benchmark sets and models: medians with intervals, runs, and how many of them are in doubt or invalid."""
    entries = [entry for entry in results.info.ordered(synthetic=False) if entry.variant_of is None]
    return _benchmark(results, [(entry, model) for entry in entries for model in _models(entry)])


def variants(results: Results, about: BundleTable) -> Rows:
    """The same for variants that only some sets have."""
    entries = results.info.ordered()
    return _benchmark(results, [(entry, model) for entry in entries for model in entry.beside if model in entry.models])


def _benchmark(results: Results, cells: Sequence[tuple[DatasetEntry, str]]) -> Rows:
    return [
        {"dataset": entry.title, "model": label_of(model)}
        | {SHOWN[metric][0]: median_text(results, entry.name, model, metric) for metric in FIGURE_3}
        | _runs(results, entry, model)
        for entry, model in cells
    ]


def medians(results: Results, about: BundleTable) -> Rows:
    """One metric of the synthetic sets: a row a model, a column a set, medians over seeds with their runs."""
    entries = results.info.ordered(synthetic=True)
    has = [e for e in entries if any(results.median(e.name, m, about.metric).runs for m in _models(e))]
    models = model_order([model for entry in has for model in _models(entry)])

    def cell(entry: DatasetEntry, model: str) -> str:
        if model not in entry.models:
            return ""
        found = results.median(entry.name, model, about.metric)
        doubt = f" ({found.untrusted} in doubt)" if found.untrusted else ""
        shown = median_text(results, entry.name, model, about.metric)
        return f"{shown}, {found.runs} of {entry.planned(model)}{doubt}"

    return [{"model": label_of(model)} | {entry.title: cell(entry, model) for entry in has} for model in models]


def copies(results: Results, about: BundleTable) -> Rows:
    """With all test rows, without those that are copies of training rows, and trained without copies.

    Of benchmark sets: in the plane some rows of thousands are close by chance, and no two are copies.
    """
    entries = results.info.ordered(synthetic=False)
    distinct = {entry.variant_of: entry for entry in entries if entry.variant_of}
    rows = []
    for entry in entries:
        of_rows = [m for m in _models(entry) if results.median(entry.name, m, f"{COPIES[0]}_no_copies").runs]
        for model in of_rows:
            row = {"dataset": entry.title, "model": label_of(model)}
            for metric in COPIES:
                row[SHOWN[metric][0]] = median_text(results, entry.name, model, metric)
                row[f"{SHOWN[metric][0]}, no copies in test"] = median_text(
                    results, entry.name, model, f"{metric}_no_copies"
                )
                other = distinct.get(entry.name)
                told = median_text(results, other.name, model, metric) if other else NOT_RUN
                row[f"{SHOWN[metric][0]}, no copies at all"] = told
            rows.append(row)
    return rows


def log_z(results: Results, about: BundleTable) -> Rows:
    """log Z of the very same model by the paper's samples of q0 and by the other estimate, run by run."""
    plan = Plan(results.info.experiment)
    asked = [(d, m, plan.experiment.models[m].of, s) for d, m, s in plan.cells if plan.by_q0(d, m)]
    rows = []
    cells = results.frame(CELLS_TABLE)
    for dataset, model, of, seed in asked:
        made = rows_of(cells, [(dataset, model, seed)])
        found = {name: results.run((dataset, name, seed), "log_z") for name in (model, of)}
        both = [run.value for run in found.values()]
        difference = both[0] - both[1]
        rows.append({
            "dataset": plan.any_cell(dataset).dataset.title,
            "seed": str(seed),
            "samples of q0": f"{plan.cell(dataset, model).normaliser.samples:.0e}",
            "log Z by q0": _log_z_text(found[model]),
            "bound on its bias": _bound_text(results, (dataset, model, seed)),
            "effective samples": _most(made["effective_sample_size"], ".3g"),
            "core-hours": _most(made["normalise_seconds"] / 3600, ".2f"),
            "log Z by the other estimate": _log_z_text(found[of]),
            "difference": f"{difference:.3f}" if math.isfinite(difference) else "",
        })  # fmt: skip
    return rows


def _log_z_text(run: Run) -> str:
    if not math.isfinite(run.value):
        return NOT_RUN
    return f"{run.value:.4f} ({run.stderr:.1g})" + ("" if run.trusted else f", {run.status}")


def _bound_text(results: Results, cell: Key) -> str:
    """The bound of Proposition 1, or why there is none."""
    metrics = results.frame(METRICS)
    bounds = metrics[metrics["metric"] == "log_z_bias_bound"]
    found = rows_of(bounds, [cell])
    if found.empty:
        return NOT_RUN
    value, status = found.iloc[0][["value", "status"]]
    return f"{value:.2g}" if math.isfinite(value) else f"none: {status.removeprefix('undefined: ')}"


def costs(results: Results, about: BundleTable) -> Rows:
    """Hours of all jobs, set by set, and in all."""
    cells = results.frame(CELLS_TABLE)
    stages = {"training": "train_seconds", "log Z": "normalise_seconds", "metrics and grids": "other_seconds"}
    titles = {entry.name: entry.title for entry in results.info.datasets}

    def row(name: str, rows: pd.DataFrame) -> dict[str, str]:
        hours = {f"{stage}, hours": f"{rows[column].sum() / 3600:.2f}" for stage, column in stages.items()}
        slowest = {f"{stage}, slowest run in s": _most(rows[column]) for stage, column in stages.items()}
        return {"dataset": name, "runs": str(len(rows))} | hours | slowest

    by_set = [row(titles.get(name, name), rows) for name, rows in cells.groupby("dataset", sort=False)]
    return [*by_set, row("all", cells)]


def _most(numbers: pd.Series, digits: str = ".0f") -> str:
    return "" if numbers.isna().all() else format(numbers.max(), digits)


KINDS: Mapping[str, Callable[[Results, BundleTable], Rows]] = {
    "claims": claims, "verdicts": verdicts, "figure_3": figure_3, "variants": variants, "medians": medians,
    "copies": copies, "log_z": log_z, "costs": costs,
}  # fmt: skip
