"""Tables in documents, filled from published CSV files so that no number is typed by hand.

A document holds a comment that says which table stands below it:

    <!-- table
    file: results/published/clusters/metrics.csv
    where: {metric: [fisher_divergence], model: [dkef_g15, mixture_dkef_g15]}
    rows: model
    columns: seed
    digits: 3
    -->
    ... the table ...
    <!-- end -->

Or it names a bundle and one of the tables of `bundle_tables`:

    <!-- table
    bundle: results/published/reproduction
    shows: figure_3
    -->
"""

import functools
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pandas as pd
import yaml  # type: ignore[import-untyped]

from dkef.config.typed import typed
from dkef.core.errors import ConfigError, DkefError, one_line
from dkef.report.bundle_tables import BundleTable, bundle_table, results_at

BLOCK = re.compile(r"(<!-- table\n(?P<what>.*?)-->\n)(?P<table>.*?)(<!-- end -->)", re.DOTALL)


@dataclass(frozen=True)
class DocumentTable:
    """What a table shows: some columns of a file as they are, or one value by rows and columns."""

    file: str  # below the project's folder
    where: dict[str, Any] = field(default_factory=dict)  # values that a column may have, in the order to show
    show: dict[str, str] = field(default_factory=dict)  # columns of the file and their headings
    rows: str = ""  # columns whose values become rows, separated by commas
    columns: str = ""  # column whose values become columns
    value: str = "value"
    error: str | None = None  # column of a standard error, set in brackets
    statistic: str | None = None  # median | mean over what rows and columns leave open
    digits: int = 3  # significant ones
    labels: dict[str, str] = field(default_factory=dict)  # words for values


def fill(text: str, root: Path, where: str) -> str:
    """The text of a document with every table made again from its file."""

    read = functools.cache(lambda folder: results_at(root / folder))  # tables of one bundle share what is read

    def table_of(match: re.Match[str]) -> str:
        try:
            section = yaml.safe_load(match["what"])
        except yaml.YAMLError as error:
            raise ConfigError(f"{where}: a table's description is not YAML ({one_line(error)})") from None
        place = f"{where}, table {one_line(section)}"
        if isinstance(section, dict) and "bundle" in section:
            of_bundle = typed(BundleTable, section, lambda key: place)
            table = _markdown(bundle_table(of_bundle, read(of_bundle.bundle), where), of_bundle.labels)
        else:
            table = render_table(typed(DocumentTable, section, lambda key: place), root, where)
        return f"{match[1]}{table}{match[4]}"

    return BLOCK.sub(table_of, text)


def render_table(about: DocumentTable, root: Path, where: str) -> str:
    """One table as Markdown."""
    path = root / about.file
    if not path.is_file():
        raise DkefError(f"{where}: {about.file} does not exist; publish it or correct the table's `file`")
    rows = pd.read_csv(path, dtype=dict.fromkeys(about.where, str) | {"status": str})
    for name, allowed in about.where.items():
        wanted = [str(entry) for entry in (allowed if isinstance(allowed, list) else [allowed])]
        rows = rows[rows[name].isin(wanted)]
        rows = rows.assign(**{name: pd.Categorical(rows[name], wanted)})
    if rows.empty:
        raise DkefError(f"{where}: no row of {about.file} fits {dict(about.where)}")
    table = _listing(about, rows) if about.show else _pivot(about, rows)
    return _markdown(table, about.labels)


def _listing(about: DocumentTable, rows: pd.DataFrame) -> pd.DataFrame:
    rows = rows.sort_values(list(about.where), kind="stable") if about.where else rows
    texts = {heading: [_text(entry, about.digits) for entry in rows[name]] for name, heading in about.show.items()}
    return pd.DataFrame(texts)


def _pivot(about: DocumentTable, rows: pd.DataFrame) -> pd.DataFrame:
    keys = [name.strip() for name in about.rows.split(",")]
    if about.statistic is not None:
        rows = rows.groupby([*keys, about.columns], observed=True, as_index=False)[[about.value]].agg(about.statistic)
    cells = [_text(value, about.digits) for value in rows[about.value]]
    if about.error is not None:
        cells = [f"{cell} ({_text(error, 2)})" for cell, error in zip(cells, rows[about.error], strict=True)]
    if rows.duplicated([*keys, about.columns]).any():
        raise DkefError(f"{about.file}: several values for one cell of a table; narrow `where` or add a `statistic`")
    wide = rows.assign(cell=cells).set_index([*keys, about.columns])["cell"].unstack(fill_value="")  # noqa: PD010
    order = rows[keys].drop_duplicates().sort_values(keys)  # as `where` lists them
    return wide.reset_index().astype(dict.fromkeys(keys, str)).merge(order.astype(str), how="right", on=keys)


def _text(value: Any, digits: int) -> str:
    if isinstance(value, float):
        return "" if pd.isna(value) else f"{value:#.{digits}g}".removesuffix(".")  # 0.10, not 0.1
    return str(value)


def _markdown(table: pd.DataFrame, labels: Mapping[str, str]) -> str:
    def line(cells: Any) -> str:
        return "| " + " | ".join(labels.get(str(cell), str(cell)).replace("|", "/") for cell in cells) + " |\n"

    body = "".join(line(row) for row in table.itertuples(index=False))
    return line(table.columns) + "|" + "---|" * len(table.columns) + "\n" + body
