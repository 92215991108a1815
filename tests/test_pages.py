"""Pages of the report, from tables and files alone."""

import html
import json
import re
import subprocess
import sys
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path

import pandas as pd
import pytest
from jinja2 import UndefinedError

from dkef.core.errors import DkefError
from dkef.core.streams import rng_for
from dkef.core.tables import write_table
from dkef.models.gaussian.density import GaussianModel
from dkef.models.protocol import Fit
from dkef.models.storage import write_model
from dkef.report.claims.catalogue import STATEMENTS, judge_all
from dkef.report.claims.verdict import HELD
from dkef.report.pages.catalogue import PAGES
from dkef.report.pages.html import ENVIRONMENT, html_of, measured
from dkef.report.pages.whole import whole_report
from dkef.report.reference_values import beside_ours
from dkef.results.experiment import DatasetEntry, ExperimentInfo
from dkef.results.lookup import Results
from dkef.results.read import read_files, read_frame
from dkef.results.tables import CLAIMS, DEVIATIONS, KNOWN_VALUES, REFERENCE_VALUES, SUMMARY
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
    folder = tmp_path_factory.mktemp("pages") / "redwine" / "gaussian" / "seed0"
    inputs = made_up.benchmark_inputs(("redwine", "hepmass_part"), 3)
    for name in ("summary", "metrics"):
        inputs.tables[name].to_csv(folder.parents[2] / f"{name}.csv", index=False)
    judged = judge_all(made_up.benchmark_inputs(("parkinsons",), 15))  # three seeds point to nothing
    write_table(folder.parents[2] / "claims.csv", CLAIMS.columns, judged)
    known = {"known_values": read_frame(KNOWN_VALUES, ROOT / "data" / "reference_values.csv")}
    rows = beside_ours(Results(inputs.info, {**inputs.tables, **known}))
    write_table(folder.parents[2] / "reference_values.csv", REFERENCE_VALUES.columns, rows)
    config = {
        "dataset": "redwine", "model": "gaussian", "of": "gaussian", "seed": 0,
        "spec": {"_target_": "a.B", "width": 3}, "threads": 1,
    }  # fmt: skip
    fitted = Fit(GaussianModel.fit(rng_for("pages").normal(size=(50, 2))))
    digests = {"config_digest": "0123456789abcdef", "data_digest": "fedcba"}
    write_model(folder / "model.h5", fitted, {"config": config, **digests})
    (folder / "train.benchmark.jsonl").write_text('{"s": 12.5, "max_rss": 300.0}\n')
    files = {
        name: [folder.parents[2] / f"{name}.csv"] for name in ("summary", "metrics", "claims", "reference_values")
    } | {
        "deviations": [ROOT / "workflow" / "report" / "deviations.csv"],
        "fidelity": sorted((ROOT / "config" / "fidelity").glob("*.yaml")),
        "models": [folder / "model.h5"],
        "training_costs": [folder / "train.benchmark.jsonl"],
        "splits": [],
    }
    read = {table.name: read_files(table, files[table.name]) for page in PAGES.values() for table in page.tables}
    return {name: html_of(name, Results(inputs.info, read)) for name in PAGES}


@pytest.mark.parametrize("name", PAGES)
def test_a_page_is_whole_and_loads_nothing(name: str, pages: dict[str, str]) -> None:
    check(pages[name])


def test_the_claims_page_shows_every_statement_and_folds_those_without_a_run(pages: dict[str, str]) -> None:
    text = pages["claims"]
    first, folded = text.split("<details>")
    assert first.count("<tr>") + folded.count("<tr>") == len(STATEMENTS) + 2
    assert "not decidable" in first
    assert "points to: " in first  # the made-up experiment is a reduced one
    assert "most runs on Parkinson" in first  # the judged experiment has this set
    assert "On Ring, Square, and Cosine" in folded


def test_an_experiment_on_sets_of_ones_own_folds_all_statements_away() -> None:
    own = ExperimentInfo("own", "Own", (DatasetEntry("wages", "Wages", ("maf",), (0,)),))
    rows = pd.DataFrame(judge_all(Results(own)), columns=list(CLAIMS.columns))
    text = html_of("claims", Results(own, {"claims": rows}))
    assert "No run of this experiment speaks to any of them." in text
    assert text.partition("<details>")[0].count("<tr>") == 0


def test_the_results_page_counts_runs_and_names_subsets(pages: dict[str, str]) -> None:
    assert "subset of HepMass" in pages["summary"]
    assert re.search(r"\[-?[\d.]+, -?[\d.]+\]</span>", pages["summary"])
    assert ">3 runs</span>" in pages["summary"]


def test_the_results_page_has_reasons_and_of_one_run_its_standard_error(pages: dict[str, str]) -> None:
    assert "the model is its own reference (3)" in pages["summary"]
    one = made_up.benchmark_inputs(("redwine",), 1)
    value = one.run(("redwine", "maf", 0), "score_loss").value
    assert f"{value:.2f} ± 0.10" in html_of("summary", one)


@pytest.mark.parametrize(
    ("value", "error", "text"),
    [
        (-12.798402, 0.4964, "-12.80 ± 0.50"), (0.0007914, 0.0054, "0.0008 ± 0.0054"), (-812.6, 25.0, "-813 ± 25"),
        (0.5, None, "0.5"), (0.5, float("nan"), "0.5"), (0.25, 0.0, "0.25"), (1e-12, 3e-11, "1e-12 ± 3e-11"),
    ],
)  # fmt: skip
def test_a_value_has_the_digits_that_its_error_leaves(value: float, error: float | None, text: str) -> None:
    assert measured(value, error) == text


def test_the_page_of_reference_values_folds_rows_without_ours(pages: dict[str, str]) -> None:
    first, folded = pages["reference_values"].split("<details>")
    assert "redwine" in first
    assert "ring" in folded
    assert ">ring<" not in first


def test_the_report_opens_with_the_title_the_results_and_the_figures(pages: dict[str, str]) -> None:
    info = ExperimentInfo("mine", "Wages and <hours>", ())
    text = whole_report(info, {"real_data": b"png"}, pages, "Nothing is absent.")
    places = [
        text.index(part)
        for part in (
            "<h1>Wages and &lt;hours&gt;</h1>", '<section id="results">', ">3 runs<", "data:image/png;base64,cG5n",
            "<summary class=\"part\">The paper", "<summary class=\"part\">Runs, versions", "Nothing is absent.",
        )
    ]  # fmt: skip
    assert places == sorted(places)
    assert "<main>" not in text.partition("<main>")[2]  # of pages only what stands inside


def test_the_report_refuses_a_page_that_is_none() -> None:
    with pytest.raises(DkefError, match="page summary is not one that the page stage wrote"):
        whole_report(ExperimentInfo("mine", "", ()), {}, {"summary": "<html></html>"})


def test_the_deviations_page_shows_both_values_of_a_fidelity_key(pages: dict[str, str]) -> None:
    text = html.unescape(pages["deviations"])
    assert "paper: train" in text
    assert "code: all" in text
    assert "recommended_synthetic: folds" in text


def test_the_provenance_page_tells_time_versions_and_configuration(pages: dict[str, str]) -> None:
    text = pages["provenance"]
    for expected in ("12.5", "0123456789abcdef", "numpy", "width"):
        assert expected in text


HOSTILE = "<script>alert(1)</script>"


def test_text_from_tables_cannot_become_markup() -> None:
    claim = dict.fromkeys(CLAIMS.columns, HOSTILE) | {"verdict": HELD}
    value = dict.fromkeys(REFERENCE_VALUES.texts, HOSTILE) | dict.fromkeys(REFERENCE_VALUES.numbers, 1.0)
    deviation = dict.fromkeys(DEVIATIONS.columns, HOSTILE) | {"key": "fidelity.a"}
    splits = replace(made_up.splits_of(rng_for("pages").normal(size=(20, 2))), title=HOSTILE, digest=HOSTILE)
    entry = DatasetEntry("a", HOSTILE, (HOSTILE,), (0,), subset_of=HOSTILE)
    row = ["a", HOSTILE, "score_loss", *[1.0] * (len(SUMMARY.columns) - 3)]
    tables = {
        "claims": pd.DataFrame([claim]), "reference_values": pd.DataFrame([value]),
        "deviations": pd.DataFrame([deviation]), "fidelity": {HOSTILE: {"a": HOSTILE}},
        "splits": {("a", 0): splits}, "summary": pd.DataFrame([row], columns=list(SUMMARY.columns)),
    }  # fmt: skip
    results = Results(ExperimentInfo(HOSTILE, HOSTILE, (entry,), HOSTILE), tables)
    for name in PAGES:
        text = html_of(name, results)
        assert "<script" not in text, name
        assert text.count("&lt;script&gt;") >= (3 if name == "provenance" else 5), name
        check(text)


def test_a_value_that_a_template_misspells_is_an_error() -> None:
    with pytest.raises(UndefinedError):
        ENVIRONMENT.from_string("{{ no_such_value }}").render()


def test_the_command_line_writes_cards_of_splits(tmp_path: Path) -> None:
    source = {"_target_": "dkef.data.synthetic.source.Synthetic", "distribution": "mog", "rows": 200}
    prepare = json.dumps({"name": "mog", "seed": 0, "dataset": {"title": "MoG", "source": source}})
    data, out = tmp_path / "seed0.h5", tmp_path / "cards.html"
    run = [sys.executable, "-m"]
    first = [*run, "dkef", "preprocess", "--config", prepare, "--raw", str(tmp_path), "--out", str(data)]
    subprocess.run(first, check=True, capture_output=True)
    config = json.dumps({"experiment": "mine", "title": "Mine", "datasets": [], "reduced": "small"})
    second = [*run, "dkef", "page", "--config", config, "--page", "cards", "--table", "splits", str(data)]
    subprocess.run([*second, "--out", str(out)], check=True, capture_output=True)
    text = out.read_text(encoding="utf-8")
    check(text)
    assert "200: 162 train, 18 valid, 20 test" in text
    assert "Reduced run" in text
