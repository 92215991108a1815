"""What the README shows is what happens."""

import re
from pathlib import Path

import pandas as pd
import pytest

ROOT = Path(__file__).parents[1]
README = (ROOT / "README.md").read_text()


def test_the_python_example_runs_and_prints_log_z_and_a_table(capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (example,) = re.findall(r"```python\n(.*?)```", README, re.DOTALL)
    names = {}
    exec(compile(example, "README.md", "exec"), names)
    shown = capsys.readouterr().out
    assert shown.startswith("LogZ(value=")
    assert "fssd_p_value" in names["dkef"].compare({"dkef": names["fit"]}, names["test"])
    assert re.search(r"^dkef .*\n^maf ", shown, re.MULTILINE)


def test_the_published_numbers_are_read_as_shown():
    (example,) = re.findall(r"```py\n(.*?)```", README, re.DOTALL)
    names = {}
    exec(compile(example, "README.md", "exec"), names)
    assert {"dataset", "model", "seed", "metric", "value"} <= set(names["table"].columns)


@pytest.mark.parametrize(
    "page", ["README.md", "config/README.md", "data/README.md", "results/README.md", "workflow/README.md"]
)
def test_every_file_that_a_page_links_to_is_there(page):
    links = re.findall(r"\]\((?!https?:)([^)#]+)#?([^)]*)\)", (ROOT / page).read_text())
    for link, heading in links:
        target = (ROOT / page).parent.joinpath(link)
        assert target.exists(), link
        if heading:
            titles = re.findall(r"^#+ (.+)$", target.read_text(), re.MULTILINE)
            assert heading in [re.sub(r"[^\w -]", "", title).lower().replace(" ", "-") for title in titles], heading


def test_every_published_folder_stands_in_the_table_of_results():
    folders = {path.name for path in (ROOT / "results" / "published").iterdir() if path.is_dir()}
    page = (ROOT / "results" / "README.md").read_text()
    assert set(re.findall(r"^\| \[(\w+)\]\(published/", page, re.MULTILINE)) == folders


def test_every_make_target_it_names_exists():
    targets = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(), re.MULTILINE))
    named = set(re.findall(r"(?:^|`)make ([a-z-]+)", README, re.MULTILINE))
    assert {"smoke", "test", "reproduce"} <= named <= targets


def test_the_table_of_log_z_is_what_the_published_runs_say():
    rows = re.findall(
        r"^\| (RedWine|Parkinsons|MiniBooNE)[^|]*?(\d?) \| ([\d.]+) \| ([\d.]+) \|$", README, re.MULTILINE
    )
    assert len(rows) == 5
    files = {"RedWine": "redwine", "Parkinsons": "parkinsons", "MiniBooNE": "miniboone_part"}
    for title, seed, *shown in rows:
        runs = pd.read_csv(ROOT / "results" / "published" / "normalisers" / f"{files[title]}.csv")
        runs = runs[runs["seed"] == int(seed or 0)]
        chains = runs[runs["proposal"] == "annealed"].sort_values("samples")["log_z"].iloc[-1]
        q0 = runs[runs["proposal"] == "q0"].set_index("samples")["log_z"]
        assert [f"{chains - q0[samples]:.1f}" for samples in (10**6, 10**8)] == shown, title
