"""`python -m dkef`: lists the stages, runs one, suggests one for a typing error, and imports nothing before it must."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

from dkef.__main__ import stages

ROOT = Path(__file__).parents[1]
RULES = ROOT / "workflow" / "rules"
BY_HAND = {"normalise"}  # for a person, not for the workflow
NOT_OURS = {"report"}  # Snakemake's own reporter


def dkef(*words: str) -> "subprocess.CompletedProcess[str]":
    return subprocess.run([sys.executable, "-m", "dkef", *words], capture_output=True, text=True, check=False)


def test_every_stage_is_listed_with_what_it_does():
    done = dkef("--help")
    assert done.returncode == 0
    for name, summary in stages().items():
        assert summary
        assert re.search(rf"^  {name} +{re.escape(summary)}$", done.stdout, re.MULTILINE)


def test_an_unknown_stage_gets_one_sentence_with_a_suggestion():
    done = dkef("preproces")
    assert done.returncode == 1
    assert done.stderr.startswith("error: stage 'preproces' is unknown; did you mean preprocess? known are agreement, ")
    assert len(done.stderr.splitlines()) == 1


@pytest.mark.parametrize("stage", ["fetch", "normalise_chunk"])
def test_a_stage_shows_its_own_command_in_its_help(stage):
    done = dkef(stage, "--help")
    assert done.returncode == 0
    assert done.stdout.startswith(f"usage: python -m dkef {stage} ")


def test_the_list_of_stages_imports_no_library():
    heavy = {"tensorflow", "numpy", "pandas", "h5py", "numba", "scipy", "hydra"}
    code = f"import sys, dkef.__main__ as m; m.stages(); sys.exit(bool({heavy} & set(sys.modules)))"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
