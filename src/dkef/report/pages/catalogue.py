"""What pages there are, and which tables each shows: one entry a page.

The values of a page come from the function of its name in `of_tables` or `of_files`, its HTML from
templates/<name>.html. Light to import: the workflow reads this while it is planned.
"""

from dataclasses import dataclass
from pathlib import Path

from dkef.core.files import file_digest, record_digest
from dkef.results.tables import (
    CLAIMS,
    DEVIATIONS,
    FIDELITY,
    METRICS,
    MODELS,
    REFERENCE_VALUES,
    SPLITS,
    SUMMARY,
    TRAINING_COSTS,
    Table,
)

FILES = "dkef.report.pages.of_files"
TEMPLATES = Path(__file__).parent / "templates"


@dataclass(frozen=True)
class Page:
    """One page: its heading, its tables, and what the list of the report's results says of it."""

    title: str
    tables: tuple[Table, ...]
    caption: str
    module: str = "dkef.report.pages.of_tables"


PAGES: dict[str, Page] = {
    "summary": Page(
        "Results", (SUMMARY, METRICS),
        "Medians over seeds with their intervals, dataset by dataset; values that rest on a doubtful log Z are marked.",
    ),
    "claims": Page(
        "The paper's statements", (CLAIMS,),
        "Each checkable statement of the paper: its place, the rule by which we judge it, the numbers and the verdict.",
    ),
    "reference_values": Page(
        "Reference values beside ours", (REFERENCE_VALUES,),
        "Every recoverable number of the authors' notebooks and of other papers beside ours.",
    ),
    "cards": Page("Datasets", (SPLITS,), "What a reader should know of each dataset before its results.", FILES),
    "deviations": Page(
        "Deviations from the paper", (DEVIATIONS, FIDELITY),
        "Where the paper's text, the authors' code and this project differ, and why.", FILES,
    ),
    "provenance": Page(
        "Runs, versions, configuration", (MODELS, TRAINING_COSTS),
        "How every training run ended, how long it took, with which code, libraries and configuration.", FILES,
    ),
}  # fmt: skip


def templates_digest() -> str:
    """Digest of all templates: what a page looks like beyond its code."""
    return record_digest({path.name: file_digest(path) for path in TEMPLATES.glob("*.html")})
