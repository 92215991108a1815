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
    shown = [
        {"title": find(name).title, "data": base64.b64encode(png).decode(), "width": width_of(png)}
        for name, png in figures.items()
    ]
    rest = [
        {"name": name, "title": PAGES[name].title, "caption": PAGES[name].caption, "body": body_of(name, text)}
        for name, text in pages.items()
        if name != FIRST
    ]
    first = body_of(FIRST, pages[FIRST]) if FIRST in pages else "This experiment trains no model."
    template = ENVIRONMENT.get_template("report.html")
    title = info.title or f"Experiment {info.experiment}"
    values = {"results_body": first, "figures": shown, "pages": rest, "absent": absent, "size": size_of(info)}
    return template.render(title=title, info=info, **values) + "\n"


def size_of(info: ExperimentInfo) -> str:
    """How many sets and models an experiment has."""
    models = {model for entry in info.datasets for model in entry.models}
    counts = {"dataset": len(info.datasets), "model": len(models)}
    return ", ".join(f"{n} {what}{'s' if n > 1 else ''}" for what, n in counts.items() if n)


def width_of(png: bytes) -> int:
    """Width of a figure on the page in pixels: half its own, which are 200 to the inch."""
    return max(1, int.from_bytes(png[16:20], "big") // 2)  # where the format keeps it


def body_of(name: str, text: str) -> Markup:
    """What stands in the <main> of a page; it was escaped when the page was made."""
    _, opened, rest = text.partition("<main>")
    body, closed, _ = rest.rpartition("</main>")
    if not (opened and closed):
        raise DkefError(f"page {name} is not one that the page stage wrote; delete it and run the same command")
    return Markup(body)
