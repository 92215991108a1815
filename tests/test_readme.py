"""What the README shows is what happens."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
README = (ROOT / "README.md").read_text()


def test_the_python_example_runs_and_prints_a_score(capsys):
    (example,) = re.findall(r"```python\n(.*?)```", README, re.DOTALL)
    exec(compile(example, "README.md", "exec"), {})
    status, numbers = capsys.readouterr().out.split(maxsplit=1)
    assert status == "ok"
    assert len(re.findall(r"-?\d+\.\d*", numbers)) == 6


@pytest.mark.parametrize(
    "page", ["README.md", "config/README.md", "data/README.md", "results/README.md", "workflow/README.md"]
)
def test_every_file_that_a_page_links_to_is_there(page):
    links = re.findall(r"\]\((?!https?:)([^)#]+)\)", (ROOT / page).read_text())
    for link in links:
        assert (ROOT / page).parent.joinpath(link).exists(), link


def test_every_make_target_it_names_exists():
    targets = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(), re.MULTILINE))
    named = set(re.findall(r"(?:^|`)make ([a-z-]+)", README, re.MULTILINE))
    assert {"smoke", "test", "reproduce"} <= named <= targets
