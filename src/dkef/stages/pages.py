"""Stage `pages`: tables, claims, published numbers, dataset cards, deviations and provenance as pages of the report."""

import argparse
import json
import math
from collections import Counter
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

from omegaconf import OmegaConf

from dkef.core.errors import DkefError, one_line, run_stage
from dkef.core.files import AGAIN, write_text
from dkef.core.provenance import canonical
from dkef.core.tables import read_table
from dkef.data.card import card
from dkef.data.splits import read_splits
from dkef.models.storage import read_training
from dkef.report.claims.verdict import FAILED, HELD, OPEN
from dkef.report.figures.look import look_of, model_order
from dkef.report.markup import Markup, code, heading, marked, number, page, paragraph, table
from dkef.results.inputs import Request, read_summary
from dkef.stages.claims import COLUMNS as CLAIM_COLUMNS
from dkef.stages.published import COLUMNS as PUBLISHED_COLUMNS

KINDS = {HELD: "held", FAILED: "failed", OPEN: "open"}
SHOWN = (
    "log_likelihood",
    "log_likelihood_bias_bound",
    "score_loss",
    "fssd2",
    "fssd_p_value",
    "ksd2",
    "fisher_divergence",
)
DEVIATION_COLUMNS = ("topic", "paper", "code", "key", "text", "departure", "ours", "why", "recommended")


def summary_page(request: Request, args: argparse.Namespace) -> list[Markup]:
    """Medians over seeds with their intervals, dataset by dataset."""
    summary = read_summary(args.tables[0])
    parts = [paragraph("Median over seeds, [interval of order statistics], runs that have a value / all runs.")]
    for entry in request.ordered():
        rows = []
        for model in model_order(list(entry.models)):
            cells = summary[(summary["dataset"] == entry.name) & (summary["model"] == model)].set_index("metric")
            found: dict[str, Any] = {metric: _median(cells.loc[metric]) for metric in SHOWN if metric in cells.index}
            rows.append(found | {"model": look_of(model).label})
        present = [metric for metric in SHOWN if any(metric in row for row in rows)]
        parts.append(heading(entry.title + (f" (subset of {entry.subset_of})" if entry.subset_of else "")))
        parts.append(table(["model", *present], rows))
    return parts


def _median(row: Any) -> str | Markup:
    """One cell of the summary; doubted values say so, absent ones why."""
    valued = int(row["runs_ok"] + row["runs_untrusted"])
    if not math.isfinite(row["median"]):
        ended = {kind: int(row[f"runs_{kind}"]) for kind in ("diverged", "invalid", "undefined")}
        return marked(", ".join(f"{count} {kind}" for kind, count in ended.items() if count) or "no run", "faint")
    below = f"{valued}/{int(row['runs'])}"
    if math.isfinite(row["interval_low"]):
        below = f"[{number(row['interval_low'], 3)}, {number(row['interval_high'], 3)}] {below}"
    doubt = f"<br>{marked('log Z not trusted: ' + str(int(row['runs_untrusted'])), 'note').text}"
    shown = f"{number(row['median'])}<br>{marked(below, 'faint').text}"
    return Markup(shown + (doubt if row["runs_untrusted"] else ""))


def claims_page(request: Request, args: argparse.Namespace) -> list[Markup]:
    """Every statement with its verdict, the rule and the numbers."""
    claims = read_table(args.tables[0], CLAIM_COLUMNS)
    counts = Counter(claims["verdict"])
    if unknown := sorted(counts.keys() - KINDS.keys()):
        raise DkefError(f"{args.tables[0]} has the verdict {one_line(repr(unknown[0]))}, which is none; {AGAIN}")
    rows = []
    for _, row in claims.iterrows():
        verdict = marked(row["verdict"], KINDS[row["verdict"]])
        if row["tendency"]:
            verdict = Markup(f"{verdict.text}<br>{marked('points to: ' + row['tendency'], 'faint').text}")
        reason = f"{row['reason'][:1].upper()}{row['reason'][1:]}. " if row["reason"] else ""
        rows.append({
            "verdict": verdict, "statement": row["statement"], "place": row["place"], "rule": row["rule"],
            "numbers": f"{reason}{row['numbers']}",
        })  # fmt: skip
    told = ", ".join(f"{counts[verdict]} {verdict}" for verdict in KINDS)
    explained = (
        "A model is ahead of another on a set if it is better in at least three of four common seeds, or, with fewer "
        "than three seeds, by more than two standard errors of the test means."
    )
    return [
        paragraph(f"{len(claims)} statements: {told}."),
        paragraph(explained, "faint"),
        table(["verdict", "statement", "place", "rule", "numbers"], rows),
    ]


def published_page(request: Request, args: argparse.Namespace) -> list[Markup]:
    """Published numbers beside ours; those without ours at the end."""
    numbers = ("published", "uncertainty", "ours", "low", "high", "coverage", "difference")
    rows = read_table(args.tables[0], PUBLISHED_COLUMNS, numbers=numbers)
    shown = []
    for _, row in rows.sort_values("ours", key=lambda column: column.isna(), kind="stable").iterrows():
        spread = f" \u00b1 {number(row['uncertainty'])}" if math.isfinite(row["uncertainty"]) else ""
        interval = f" [{number(row['low'])}, {number(row['high'])}]" if math.isfinite(row["low"]) else ""
        doubt = marked(f" {row['untrusted']} not trusted", "note").text if row["untrusted"] != "0" else ""
        shown.append({
            "dataset": row["dataset"], "model": look_of(row["model"]).label, "metric": row["metric"].replace("_", " "),
            "published": number(row["published"]) + spread, "ours": Markup(number(row["ours"]) + interval + doubt),
            "runs": row["runs"], "difference": number(row["difference"], 3), "comparable": row["comparable"],
            "source": f"{row['source']}, {row['place']}", "note": row["note"],
        })  # fmt: skip
    told = (
        "The paper's results are pictures; these are the numbers that can be recovered. `roughly`: other settings, "
        "read off pixels or one seed. `no`: other preprocessing, shown for orientation only."
    )
    columns = ["dataset", "model", "metric", "published", "ours", "runs", "difference", "comparable", "source", "note"]
    return [paragraph(told), table(columns, shown, numeric=("published", "ours", "runs", "difference"))]


def cards_page(request: Request, args: argparse.Namespace) -> list[Markup]:
    """A card for each dataset, of its first seed."""
    parts: list[Markup] = []
    for path in args.splits:
        found = card(read_splits(path))
        rows: list[dict[str, Any]] = [
            {"what": "rows", "value": f"{found.rows}: {found.train} train, {found.valid} valid, {found.test} test"},
            {"what": "columns", "value": f"{found.dimension}: {', '.join(found.columns)}"},
            *({"what": f"removed {r.kind}", "value": f"{r.name}: {r.reason}"} for r in found.removed),
            {"what": "whitened", "value": "yes" if found.whitened else "no"},
            {"what": "log |det W|", "value": f"{found.log_det:.4f}, to be added for likelihoods in raw units"},
            {"what": "condition number", "value": f"{found.condition_number:.3g}, of the raw covariance"},
            *(
                {"what": f"{part} rows with a copy in training", "value": f"{c.exact} exact, {c.near} near"}
                for part, c in (("validation", found.valid_copies), ("test", found.test_copies))
            ),
            {"what": "digest", "value": code(found.digest)},
        ]
        parts.append(heading(found.title))
        if found.subset_of:
            parts.append(paragraph(f"A subset of {found.subset_of}: results are not those of the whole set.", "note"))
        parts.append(table(["what", "value"], rows))
    return parts or [paragraph("no splits were given")]


def deviations_page(request: Request, args: argparse.Namespace) -> list[Markup]:
    """Where paper, authors' code and this project differ, and why; with the values of all choices of `fidelity`."""
    rows = read_table(args.tables[0], DEVIATION_COLUMNS)
    choices: dict[str, Any] = {path.stem: OmegaConf.to_container(OmegaConf.load(path)) for path in args.fidelity}
    shown: list[dict[str, Any]] = []
    for row in rows.to_dict("records"):
        group, _, key = row["key"].partition(".")
        values = [f"{name}: {values[key]}" for name, values in choices.items() if group == "fidelity" and key in values]
        setting = code(row["key"]).text if row["key"] != "none" else ""
        shown.append(row | {"key": Markup(setting + "".join(f"<br>{code(value).text}" for value in values))})
    told = "Every choice in which the paper's text and its authors' code differ, or where we do something else."
    seen = ("topic", "paper", "code", "key", "ours", "why", "recommended")  # the others are for tests
    return [paragraph(told), table(seen, shown)]


def provenance_page(request: Request, args: argparse.Namespace) -> list[Markup]:
    """What produced each model: configuration digest, code version, how training ended, time and memory."""
    rows: list[dict[str, Any]] = []
    versions: Counter[str] = Counter()
    specs: dict[tuple[str, str], list[str]] = {}  # datasets on which a model was run with a configuration
    for path in args.models:
        trained = read_training(path)
        made, cell = trained.provenance, trained.provenance.config
        versions[json.dumps(made.libraries, sort_keys=True)] += 1
        specs.setdefault((cell.model, canonical(cell.spec)), []).append(cell.dataset)
        took = read_benchmark(path.with_name("train.benchmark.jsonl"))
        rows.append({
            "dataset": cell.dataset, "model": cell.model, "seed": cell.seed,
            "status": trained.status, "ended": trained.stopped, "seconds": number(took.get("s")),
            "memory_MB": number(took.get("max_rss")), "code": code(made.code_version),
            "configuration": code(made.config_digest),
        })  # fmt: skip
    parts = [heading("Training runs"), table(list(rows[0]) if rows else [], rows, numeric=("seconds", "memory_MB"))]
    for libraries, count in versions.items():
        listed = ", ".join(f"{name} {version}" for name, version in json.loads(libraries).items())
        parts.append(paragraph(f"{count} models with {listed}."))
    for (model, spec), datasets in specs.items():
        lines = [{"key": code(key), "value": code(json.dumps(value))} for key, value in json.loads(spec).items()]
        where = ", ".join(dict.fromkeys(datasets))
        parts += [heading(f"Configuration of {look_of(model).label} on {where}"), table(["key", "value"], lines)]
    return parts


def read_benchmark(path: Path) -> dict[str, float]:
    """What Snakemake measured of a job; nothing where it was run by hand."""
    if not path.is_file():
        return {}
    try:
        measured = dict(json.loads(path.read_text(encoding="utf-8").splitlines()[0]))
        return {name: float(measured[name]) for name in ("s", "max_rss") if isinstance(measured.get(name), int | float)}
    except (ValueError, TypeError, IndexError, OverflowError, RecursionError) as error:
        raise DkefError(
            f"{path} is not what Snakemake measured ({one_line(error)}); delete it and train again"
        ) from None


PAGES: dict[str, tuple[str, Callable[[Request, argparse.Namespace], Iterable[Markup]]]] = {
    "summary": ("Results", summary_page),
    "claims": ("The paper's statements", claims_page),
    "published": ("Published numbers beside ours", published_page),
    "cards": ("Datasets", cards_page),
    "deviations": ("Deviations from the paper", deviations_page),
    "provenance": ("Runs, versions, configuration", provenance_page),
}


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m dkef.stages.pages", description=__doc__.splitlines()[0])
    parser.add_argument("--config", required=True, help="canonical JSON: experiment, title, datasets, reduced")
    parser.add_argument("--page", required=True, choices=PAGES)
    parser.add_argument("--tables", type=Path, nargs="*", default=[], help="the CSV table behind the page")
    parser.add_argument("--splits", type=Path, nargs="*", default=[], help="splits, for cards")
    parser.add_argument("--models", type=Path, nargs="*", default=[], help="model files, for provenance")
    parser.add_argument("--fidelity", type=Path, nargs="*", default=[], help="config/fidelity/*.yaml, for deviations")
    parser.add_argument("--out", type=Path, required=True, help="HTML file to write")
    args = parser.parse_args()
    request = Request.parse(args.config)
    title, make = PAGES[args.page]
    parts = [paragraph(f"Experiment {request.experiment}: {request.title}", "faint")]
    if request.reduced:
        parts.append(paragraph(f"Reduced run, not the paper's budgets: {request.reduced}", "note"))
    write_text(args.out, page(title, *parts, *make(request, args)))


if __name__ == "__main__":
    run_stage(main)
