"""The whole report as one page that loads nothing: title, results, figures, and all else folded away."""

import base64
from collections.abc import Mapping

from markupsafe import Markup

from dkef.core.errors import DkefError
from dkef.report.figures.catalogue import find
from dkef.report.pages.catalogue import PAGES
from dkef.report.pages.html import ENVIRONMENT
from dkef.results.experiment import ExperimentInfo

FIRST = "summary"  # the page that the report opens with


def whole_report(info: ExperimentInfo, figures: Mapping[str, bytes], pages: Mapping[str, str], absent: str = "") -> str:
    """From figures as PNG and pages as `html_of` made them, by name; `absent` says what is not there and why."""
    shown = [{"title": find(name).title, "data": base64.b64encode(png).decode()} for name, png in figures.items()]
    rest = [
        {"name": name, "title": PAGES[name].title, "caption": PAGES[name].caption, "body": body_of(name, text)}
        for name, text in pages.items()
        if name != FIRST
    ]
    first = body_of(FIRST, pages[FIRST]) if FIRST in pages else "This experiment trains no model."
    template = ENVIRONMENT.get_template("report.html")
    title = info.title or f"Experiment {info.experiment}"
    return template.render(title=title, info=info, results_body=first, figures=shown, pages=rest, absent=absent) + "\n"


def body_of(name: str, text: str) -> Markup:
    """What stands in the <main> of a page; it was escaped when the page was made."""
    _, opened, rest = text.partition("<main>")
    body, closed, _ = rest.rpartition("</main>")
    if not (opened and closed):
        raise DkefError(f"page {name} is not one that the page stage wrote; delete it and run the same command")
    return Markup(body)
