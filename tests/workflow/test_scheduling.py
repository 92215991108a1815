"""Snakemake's own processor time does not grow with the jobs that are done."""

import subprocess
import sys
from pathlib import Path

import pytest

RULES = Path(__file__).parents[2] / "workflow" / "rules"
JOBS = 12
SNAKEFILE = """
import threading

{include}

rule all:
    input: expand("{{i}}", i=range({jobs}))

rule one:
    output: "{{i}}"
    shell: "touch {{output}}"

onsuccess:
    print("threads", threading.active_count())
"""


def threads_at_the_end(folder: Path, include: str) -> int:
    (folder / "Snakefile").write_text(SNAKEFILE.format(include=include, jobs=JOBS))
    run = [sys.executable, "-m", "snakemake", "--cores", "2", "--scheduler", "greedy", "--quiet", "all"]
    done = subprocess.run(run, cwd=folder, capture_output=True, text=True, check=True)
    return int(done.stdout.split("threads ")[1].split()[0])


@pytest.mark.parametrize("kept", [True, False])
def test_finished_jobs_leave_no_timers_behind(tmp_path: Path, kept: bool) -> None:
    found = threads_at_the_end(tmp_path, f'include: "{RULES / "scheduling.smk"}"' if kept else "")
    # Without the rule file Snakemake still leaves them. Once this fails, scheduling.smk can go.
    assert (found < JOBS / 2) == kept
