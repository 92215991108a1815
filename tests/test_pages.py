"""Pages of the report, from tables and files alone."""

import argparse
import html
import json
import re
import subprocess
import sys
from html.parser import HTMLParser
from pathlib import Path

import pytest

from dkef.core.streams import rng_for
from dkef.core.tables import write_table
from dkef.models.gaussian.density import GaussianModel
from dkef.models.protocol import Fit
from dkef.models.storage import write_model
from dkef.report.claims.evidence import Evidence
from dkef.report.markup import Markup, page, paragraph, table
from dkef.results.inputs import Request
from dkef.stages.claims import COLUMNS as CLAIM_COLUMNS
from dkef.stages.claims import judge_all
from dkef.stages.pages import PAGES
from dkef.stages.published import COLUMNS as PUBLISHED_COLUMNS
from dkef.stages.published import beside_ours, read_published
from tests import made_up

ROOT = Path(__file__).parents[1]
VOID = {"meta", "br"}


class Balance(HTMLParser):
    """Collects tags that are opened and not closed, and anything that a page would have to load."""

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.loads: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.loads += [f"{tag} {name}" for name, _ in attrs if name in ("src", "href")]
        if tag not in VOID:
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag


def check(text: str) -> None:
    balance = Balance()
    balance.feed(text)
    assert balance.open == []
    assert balance.loads == []


@pytest.fixture(scope="module")
def pages(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """Every page of a made-up benchmark experiment."""
    folder = tmp_path_factory.mktemp("pages")
    inputs = made_up.benchmark_inputs(("redwine", "hepmass_part"), 3)
    inputs.summary.to_csv(folder / "summary.csv", index=False)
    write_table(
        folder / "claims.csv", CLAIM_COLUMNS, judge_all(Evidence(inputs.request, inputs.metrics, inputs.summary))
    )
    published = beside_ours(read_published(ROOT / "data" / "published.csv"), inputs.summary)
    write_table(folder / "published.csv", PUBLISHED_COLUMNS, published)
    model = folder / "model.h5"
    config = {
        "dataset": "redwine",
        "model": "gaussian",
        "of": "gaussian",
        "seed": 0,
        "spec": {"_target_": "a.B", "width": 3},
        "threads": 1,
    }
    fitted = Fit(GaussianModel.fit(rng_for("pages").normal(size=(50, 2))))
    write_model(model, fitted, {"config": config, "config_digest": "0123456789abcdef", "data_digest": "fedcba"})
    (folder / "train.benchmark.jsonl").write_text('{"s": 12.5, "max_rss": 300.0}\n')
    fidelity = sorted((ROOT / "config" / "fidelity").glob("*.yaml"))
    args = {name: {} for name in PAGES} | {
        "summary": {"tables": [folder / "summary.csv"]},
        "claims": {"tables": [folder / "claims.csv"]},
        "published": {"tables": [folder / "published.csv"]},
        "deviations": {"tables": [ROOT / "workflow" / "report" / "deviations.csv"], "fidelity": fidelity},
        "provenance": {"models": [model]},
        "cards": {"splits": []},
    }
    return {
        name: page(title, *make(inputs.request, argparse.Namespace(**args[name])))
        for name, (title, make) in PAGES.items()
    }


@pytest.mark.parametrize("name", PAGES)
def test_a_page_is_whole_and_loads_nothing(name: str, pages: dict[str, str]) -> None:
    check(pages[name])


def test_the_claims_page_shows_every_statement_with_verdict_and_tendency(pages: dict[str, str]) -> None:
    text = pages["claims"]
    assert text.count("<tr>") == len(judge_all_rows()) + 1
    assert "not decidable" in text
    assert "points to: " in text  # the made-up experiment is a reduced one


def judge_all_rows() -> list[dict[str, str]]:
    inputs = made_up.benchmark_inputs(("redwine", "hepmass_part"), 3)
    return judge_all(Evidence(inputs.request, inputs.metrics, inputs.summary))


def test_the_results_page_counts_runs_and_names_subsets(pages: dict[str, str]) -> None:
    assert "subset of HepMass" in pages["summary"]
    assert re.search(r"\[-?[\d.]+, -?[\d.]+\] 3/3", pages["summary"])


def test_the_published_page_keeps_rows_without_ours_and_puts_them_last(pages: dict[str, str]) -> None:
    rows = re.findall(r"<tr>(.*?)</tr>", pages["published"])[1:]
    has_ours = ["parkinsons" not in row and "ring" not in row for row in rows]
    assert has_ours.index(True) < has_ours.index(False)


def test_the_deviations_page_shows_both_values_of_a_fidelity_key(pages: dict[str, str]) -> None:
    text = html.unescape(pages["deviations"])
    assert "paper: train" in text
    assert "code: all" in text
    assert "recommended_synthetic: folds" in text


def test_the_provenance_page_tells_time_versions_and_configuration(pages: dict[str, str]) -> None:
    text = pages["provenance"]
    for expected in ("12.5", "0123456789abcdef", "numpy", "width"):
        assert expected in text


def test_text_from_tables_cannot_become_markup() -> None:
    hostile = "<script>alert(1)</script>"
    text = page(hostile, paragraph(hostile), table(["a"], [{"a": hostile}]))
    assert "<script>" not in text
    assert text.count("&lt;script&gt;") == 4  # title, heading, paragraph, cell
    assert "<b>x</b>" in page("t", paragraph(Markup("<b>x</b>")))


def test_the_command_line_writes_cards_of_splits(tmp_path: Path) -> None:
    source = {"_target_": "dkef.data.synthetic.source.Synthetic", "distribution": "mog", "rows": 200}
    prepare = json.dumps({"name": "mog", "seed": 0, "dataset": {"title": "MoG", "source": source}})
    data, out = tmp_path / "seed0.h5", tmp_path / "cards.html"
    run = [sys.executable, "-m"]
    first = [*run, "dkef", "preprocess", "--config", prepare, "--raw", str(tmp_path), "--out", str(data)]
    subprocess.run(first, check=True, capture_output=True)
    config = json.dumps({"experiment": "mine", "title": "Mine", "datasets": [], "reduced": "small"})
    assert Request.parse(config).reduced == "small"
    second = [
        *run,
        "dkef.stages.pages",
        "--config",
        config,
        "--page",
        "cards",
        "--splits",
        str(data),
        "--out",
        str(out),
    ]
    subprocess.run(second, check=True, capture_output=True)
    text = out.read_text(encoding="utf-8")
    check(text)
    assert "200: 162 train, 18 valid, 20 test" in text
    assert "Reduced run" in text
