"""All that a reader sees of an experiment, from results in memory: figures, tables, claims and one report page."""

from collections.abc import Iterator, Sequence
from pathlib import Path

import pandas as pd

from dkef.core.files import write_text
from dkef.core.tables import write_table
from dkef.metrics.summary import paired_rows
from dkef.report.claims.catalogue import judge_all
from dkef.report.figures.catalogue import find
from dkef.report.figures.drawing import draw, save
from dkef.report.pages.catalogue import PAGES
from dkef.report.pages.html import html_of
from dkef.report.pages.whole import whole_report
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
)

WITHOUT = ("cards",)
ABSENT = (
    "Cards of the datasets and whole configurations of the models are not here: they are read from splits and model "
    "files, which a bundle does not hold."
)


def write_all(results: Results, figures: Sequence[str], tables: Path, drawings: Path) -> Iterator[Path]:
    """Write everything; gives the paths as they are written."""
    fixed = [table for name in figures for table in find(name).tables if Path(table.path).is_file()]
    for table in (KNOWN_VALUES, DEVIATIONS, FIDELITY, *fixed):  # they lie in the project itself
        results = results.having({table.name: read_files(table, sorted(Path().glob(table.path)))})
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
        results = results.having({table.name: pd.DataFrame(entries, columns=list(table.columns))})
        yield path
    for name in figures:
        figure = draw(name, results)
        for ending in ("pdf", "png"):
            save(figure, drawings / f"{name}.{ending}")
        yield drawings / f"{name}.png"
    pictures = {name: (drawings / f"{name}.png").read_bytes() for name in figures}
    pages = {name: html_of(name, results) for name in PAGES if name not in WITHOUT}
    write_text(tables / "report.html", whole_report(results.info, pictures, pages, ABSENT))
    yield tables / "report.html"


def with_own_tables(results: Results, figures: Sequence[str], folder: Path) -> Results:
    """The results with tables of single figures that lie in the folder of a bundle."""
    own = {table for name in figures for table in find(name).tables if table.stage}
    found = {table: path for table in own if (path := folder / Path(table.path).name).is_file()}
    return results.having({table.name: read_files(table, [path]) for table, path in found.items()})
