"""Small self-contained HTML pages: a heading, paragraphs and tables, with their style inside and nothing to load."""

import html
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

STYLE = """
:root { color-scheme: light; }
body { font: 14px/1.5 system-ui, "DejaVu Sans", sans-serif; color: #222; margin: 2rem auto; max-width: 78rem;
       padding: 0 1.5rem; }
h1 { font-size: 1.5rem; margin-bottom: .2rem; } h2 { font-size: 1.1rem; margin-top: 2rem; }
p { max-width: 60rem; } .note { color: #b3261e; } .faint { color: #666; }
.wide { overflow-x: auto; }
table { border-collapse: collapse; font-size: 13px; }
th, td { text-align: left; vertical-align: top; padding: .35rem .8rem .35rem 0; border-bottom: 1px solid #e4e4e4; }
th { border-bottom: 2px solid #bbb; font-weight: 600; white-space: nowrap; }
td.number, th.number { text-align: right; font-variant-numeric: tabular-nums; white-space: nowrap; }
code { font: 12.5px/1.4 ui-monospace, "DejaVu Sans Mono", monospace; }
.held { color: #00624a; font-weight: 600; white-space: nowrap; }
.failed { color: #b3261e; font-weight: 600; white-space: nowrap; }
.open { color: #777; font-weight: 600; white-space: nowrap; }
"""


@dataclass(frozen=True)
class Markup:
    """Text that is HTML already; everything else is escaped."""

    text: str


def escaped(value: object) -> str:
    return value.text if isinstance(value, Markup) else html.escape(str(value))


def code(value: object) -> Markup:
    return Markup(f"<code>{escaped(value)}</code>")


def marked(value: object, kind: str) -> Markup:
    """A word in one of the page's colours: held, failed, open, note, faint."""
    return Markup(f'<span class="{kind}">{escaped(value)}</span>')


def number(value: float | None, digits: int = 4) -> str:
    """A number as a reader wants it; nothing where there is none."""
    return "" if value is None or not math.isfinite(value) else f"{value:.{digits}g}"


def paragraph(text: object, kind: str = "") -> Markup:
    return Markup(f'<p class="{kind}">{escaped(text)}</p>' if kind else f"<p>{escaped(text)}</p>")


def heading(text: object) -> Markup:
    return Markup(f"<h2>{escaped(text)}</h2>")


def table(columns: Sequence[str], rows: Sequence[Mapping[str, Any]], numeric: Sequence[str] = ()) -> Markup:
    """Rows under the given columns; `numeric` ones are right-aligned. A key that a row lacks is an empty cell."""

    def cell(tag: str, name: str, value: object) -> str:
        kind = ' class="number"' if name in numeric else ""
        return f"<{tag}{kind}>{escaped(value)}</{tag}>"

    head = "".join(cell("th", name, name.replace("_", " ")) for name in columns)
    body = "".join(
        "<tr>" + "".join(cell("td", name, row.get(name, "")) for name in columns) + "</tr>\n" for row in rows
    )
    return Markup(f'<div class="wide"><table>\n<thead><tr>{head}</tr></thead>\n<tbody>\n{body}</tbody>\n</table></div>')


def page(title: str, *parts: Markup) -> str:
    """A whole document."""
    body = "\n".join(part.text for part in parts)
    return (
        '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f"<title>{html.escape(title)}</title>\n<style>{STYLE}</style>\n</head>\n<body>\n"
        f"<h1>{html.escape(title)}</h1>\n{body}\n</body>\n</html>\n"
    )
