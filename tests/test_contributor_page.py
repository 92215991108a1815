"""src/dkef/README.md, followed to the letter in a copy of the project: a model, a metric and two figures run."""

import csv
import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.workflow.project import ROOT, Project

pytestmark = pytest.mark.slow

PAGE = (ROOT / "src" / "dkef" / "README.md").read_text(encoding="utf-8")
BLOCK = re.compile(r"^`(?P<file>[^`\n]+)`\n```(?P<kind>\w+)\n(?P<text>.*?)^```$", re.MULTILINE | re.DOTALL)
EXPERIMENT = """
title: What the contributor page adds
figures: [loss_and_likelihood, spread]
stages: {spread: {repeats: 2000}}
datasets:
  ring_tiny: {of: ring, overrides: [dataset.source.rows=300]}
suites:
  all: {datasets: [ring_tiny], models: [gaussian, laplace], seeds: 1}
"""
FIGURES = ("figures/contribution/loss_and_likelihood.png", "figures/contribution/spread.png")
# SciPy is the witness of the model: log p, and the score by differences of its log p.
WITNESS = """
import json, numpy as np, dkef
from scipy.stats import laplace
from dkef.data.splits import read_splits
model = dkef.load_model("results/contribution/ring_tiny/laplace/seed0/model.h5")
rows = read_splits("data/processed/ring_tiny/seed0.h5")
def log_p(x):
    m = np.median(rows.train, axis=0)
    return laplace.logpdf(x, m, np.abs(rows.train - m).mean(axis=0)).sum(axis=1)
h = 1e-6 * np.eye(2)
score = np.stack([(log_p(rows.test + e) - log_p(rows.test - e)) / 2e-6 for e in h], axis=1)
print(json.dumps([float(np.abs(model.log_density(rows.test) - log_p(rows.test)).max()),
                  float(log_p(rows.test).mean()), float(np.sqrt((score**2).sum(axis=1)).mean())]))
"""


def sections() -> dict[str, list[re.Match[str]]]:
    """Blocks by the heading they stand under."""
    parts = re.split(r"^## (.+)$", PAGE, flags=re.MULTILINE)[1:]
    return {heading: list(BLOCK.finditer(text)) for heading, text in zip(parts[::2], parts[1::2], strict=True)}


def apply(change: str, path: Path) -> None:
    """Each hunk's old lines, which must stand in the file exactly once, become its new lines."""
    text = path.read_text(encoding="utf-8")
    for hunk in change.split("@@\n"):
        lines = hunk.splitlines()
        old = "".join(f"{line[1:]}\n" for line in lines if line[:1] != "+")
        new = "".join(f"{line[1:]}\n" for line in lines if line[:1] != "-")
        assert text.count(old) == 1, f"{path.name} has {text.count(old)} places like\n{old}"
        text = text.replace(old, new)
    path.write_text(text, encoding="utf-8")


@pytest.fixture(scope="module")
def followed(tmp_path_factory: pytest.TempPathFactory) -> Project:
    """The project with all that the page adds, and its two figures drawn."""
    project = Project.make(tmp_path_factory.mktemp("contributor") / "project")
    for blocks in sections().values():
        for block in blocks:
            path = project.folder / block["file"]
            if block["kind"] == "diff":
                apply(block["text"], path)
            else:
                assert not path.exists(), f"{block['file']} is there already"
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_text(block["text"], encoding="utf-8")
    (project.folder / "config" / "experiment" / "contribution.yaml").write_text(EXPERIMENT)
    done = project.run(*FIGURES, config=("experiment=contribution",))
    assert done.returncode == 0, done.stdout + done.stderr
    return project


def test_the_page_touches_as_few_files_as_it_says() -> None:
    touched = {heading.split(":")[0]: {block["file"] for block in blocks} for heading, blocks in sections().items()}
    model = touched.pop("A model")
    assert {Path(file).parent.as_posix() for file in model} == {"src/dkef/models/laplace", "config/model"}
    assert sum(file.endswith(".yaml") for file in model) == 1
    assert {heading: len(files) for heading, files in touched.items()} == {
        "A metric": 2,
        "A figure on existing tables": 2,
        "A figure with a table of its own": 4,
    }


def test_the_figures_are_drawn(followed: Project) -> None:
    for name in FIGURES:
        assert (followed.folder / name).read_bytes().startswith(b"\x89PNG")


def test_the_model_is_the_one_of_scipy_and_the_metric_is_in_the_table(followed: Project) -> None:
    command = [sys.executable, "-c", WITNESS]
    here = {"cwd": followed.folder, "env": followed.environment()}
    done = subprocess.run(command, check=True, capture_output=True, text=True, **here)
    gap, likelihood, norm = json.loads(done.stdout.splitlines()[-1])
    assert gap < 1e-12
    with open(followed.folder / "results" / "contribution" / "metrics.csv", encoding="utf-8") as file:
        rows = {(row["model"], row["metric"]): row for row in csv.DictReader(file)}
    assert float(rows["laplace", "log_likelihood"]["value"]) == pytest.approx(likelihood, rel=1e-12)
    # Differences of |x - m| / b are exact up to rounding of size 1e-16 / 1e-6.
    assert float(rows["laplace", "score_norm"]["value"]) == pytest.approx(norm, rel=1e-8)
    assert rows["gaussian", "score_norm"]["status"] == "ok"


def test_the_table_of_the_figure_agrees_with_theory(followed: Project) -> None:
    with open(followed.folder / "results" / "contribution" / "spread.csv", encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    assert [row["runs"] for row in rows] == ["5", "15", "45"]
    for row in rows:
        # 2000 repeats know a standard deviation to 1.6 %; the asymptotic one is 6 % too large at n = 5.
        assert float(row["spread"]) == pytest.approx(float(row["theory"]), rel=0.12)


def test_what_the_page_adds_is_in_the_style_of_the_project(followed: Project) -> None:
    added = [block["file"] for blocks in sections().values() for block in blocks if block["file"].endswith(".py")]
    config = ["--config", str(ROOT / "pyproject.toml")]
    for command in (["check", *config], ["format", "--check", *config]):
        done = subprocess.run(
            [sys.executable, "-m", "ruff", *command, *added], cwd=followed.folder, capture_output=True, text=True,
            check=False,
        )  # fmt: skip
        assert done.returncode == 0, done.stdout + done.stderr
