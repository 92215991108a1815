"""All that a reader sees of an experiment, from results in memory: figures, tables, claims and one report page."""

import base64
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

import pandas as pd

from dkef.core.files import write_text
from dkef.core.tables import write_table
from dkef.metrics.summary import paired_rows
from dkef.report.claims.catalogue import judge_all
from dkef.report.figures.catalogue import find
from dkef.report.figures.drawing import draw, save
from dkef.report.pages.catalogue import PAGES
from dkef.report.pages.html import ENVIRONMENT, html_of
from dkef.report.reference_values import beside_ours
from dkef.results.lookup import Results
from dkef.results.read import read_files
from dkef.results.tables import (
    CLAIMS,
    DEVIATIONS,
    FIDELITY,
    KNOWN_VALUES,
    METRICS,
    PAIRED_TESTS,
    REFERENCE_VALUES,
    SUMMARY,
    Table,
)

BUNDLED_PAGES = ("summary", "claims", "reference_values", "deviations")  # the others read splits and model files


def write_all(results: Results, figures: Sequence[str], tables: Path, drawings: Path) -> Iterator[Path]:
    """Write everything; gives the paths as they are written."""
    results = with_files(results, KNOWN_VALUES, DEVIATIONS, FIDELITY)
    references = {entry.name: entry.reference for entry in results.info.datasets}
    rows = {
        METRICS: results.frame(METRICS).to_dict("records"),
        SUMMARY: results.frame(SUMMARY).to_dict("records"),
        PAIRED_TESTS: list(paired_rows(results.frame(METRICS), references)),
        CLAIMS: judge_all(results),
        REFERENCE_VALUES: list(beside_ours(results)),
    }
    for table, entries in rows.items():
        path = tables / f"{table.name}.csv"
        write_table(path, table.columns, entries)
        results = replace(
            results, tables={**results.tables, table.name: pd.DataFrame(entries, columns=list(table.columns))}
        )
        yield path
    for name in figures:
        figure = draw(name, results)
        for ending in ("pdf", "png"):
            save(figure, drawings / f"{name}.{ending}")
        yield drawings / f"{name}.png"
    write_text(tables / "report.html", report(results, figures, drawings))
    yield tables / "report.html"


def with_files(results: Results, *tables: Table) -> Results:
    """The results with tables that lie in the project itself."""
    found = {table.name: read_files(table, sorted(Path().glob(table.path))) for table in tables}
    return replace(results, tables={**results.tables, **found})


def report(results: Results, figures: Sequence[str], drawings: Path) -> str:
    """One self-contained page: figures with their captions, then the pages of tables."""
    shown = [
        {"title": find(name).title, "data": base64.b64encode((drawings / f"{name}.png").read_bytes()).decode()}
        for name in figures
    ]
    pages = [{"title": PAGES[name].title, "html": html_of(name, results)} for name in BUNDLED_PAGES]
    template = ENVIRONMENT.get_template("report.html")
    return template.render(title=results.info.title, info=results.info, figures=shown, pages=pages) + "\n"
