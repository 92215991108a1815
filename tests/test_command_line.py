"""`python -m dkef`: lists the stages, runs one, suggests one for a typing error, and imports nothing before it must."""

import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from dkef.__main__ import stages

ROOT = Path(__file__).parents[1]
RULES = ROOT / "workflow" / "rules"
BY_HAND = {
    "figures",
    "fssd_power",
    "list",
    "missing",
    "normalise",
    "plan",
    "publish",
    "status",
    "tables",
}  # for a person, not a job


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


def test_every_rule_has_a_file_and_a_stage_of_its_name():
    found = {path.stem: re.findall(r"^rule (\w+):", path.read_text(), re.MULTILINE) for path in RULES.glob("*.smk")}
    rules = {name for names in found.values() for name in names}
    assert {stem: names for stem, names in found.items() if names not in ([], [stem])} == {}
    assert rules == set(stages()) - BY_HAND


def test_every_rule_calls_its_stage_and_depends_on_its_code():
    for path in sorted(RULES.glob("*.smk")):
        if f"rule {path.stem}:" in path.read_text():
            assert f'"python -m dkef {path.stem} ' in path.read_text(), path.name
            if path.stem != "fetch":  # a checked file stays valid whatever becomes of our code
                assert f'code=code_of("dkef.stages.{path.stem}"' in path.read_text(), path.name


def test_stages_are_short():
    lengths = {path.stem: len(path.read_text().splitlines()) for path in (ROOT / "src/dkef/stages").glob("*.py")}
    assert {stage: lines for stage, lines in lengths.items() if lines > 60} == {}


def test_a_list_that_is_cut_off_by_its_reader_ends_without_a_traceback() -> None:
    command = f"{shlex.quote(sys.executable)} -m dkef missing --experiment reproduction --bundle no_such | head -n 1"
    done = subprocess.run(command, shell=True, capture_output=True, text=True, check=True)
    assert len(done.stdout.splitlines()) == 1
    assert done.stderr == ""
