"""Values into HTML by the templates beside this module; every text is escaped, and a page loads nothing."""

import importlib
import json
import math

from jinja2 import Environment, FileSystemLoader, StrictUndefined

from dkef.report.pages.catalogue import PAGES, TEMPLATES
from dkef.results.lookup import Results
from dkef.results.names import label_of


def number(value: float | None, digits: int = 4) -> str:
    """A number as a reader wants it; nothing where there is none."""
    return "" if value is None or not math.isfinite(value) else f"{value:.{digits}g}"


def measured(value: float, error: float | None) -> str:
    """A value to the digits that its standard error leaves, with that error."""
    if error is None or not math.isfinite(error) or error <= 0:
        return number(value)
    decimals = 1 - math.floor(math.log10(error))  # two digits of the error
    if not 0 <= decimals <= 8:
        return f"{number(value)} ± {number(error, 2)}"
    return f"{value:.{decimals}f} ± {error:.{decimals}f}"


ENVIRONMENT = Environment(
    loader=FileSystemLoader(TEMPLATES), autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True
)
ENVIRONMENT.filters |= {"number": number, "measured": measured, "label": label_of, "json": json.dumps}


def html_of(name: str, results: Results) -> str:
    """The page of a name."""
    values = getattr(importlib.import_module(PAGES[name].module), name)(results)
    return ENVIRONMENT.get_template(f"{name}.html").render(title=PAGES[name].title, info=results.info, **values) + "\n"
