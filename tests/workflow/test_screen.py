"""What plain `snakemake --cores 1` shows of a job that fails and of Ctrl-C, and which logs it names."""

import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.workflow.project import ROOT, Project

SLOW = "fitted = GaussianModel.fit(train)"
EXPERIMENT = """
title: A file with a word in it
figures: []
suites:
  all: {datasets: [words], models: [gaussian], seeds: 1}
"""
DATASET = """
title: Words
source:
  _target_: dkef.data.tables.Csv
  paths: [words.csv]
"""


@pytest.mark.slow
def test_a_failed_job_s_sentence_is_on_the_terminal_and_its_configuration_is_not(tmp_path: Path) -> None:
    project = Project.make(tmp_path / "project")
    (project.folder / "words.csv").write_text("a,b\n1,2\n3,red\n")
    (project.folder / "config" / "dataset" / "words.yaml").write_text(DATASET)
    (project.folder / "config" / "experiment" / "words.yaml").write_text(EXPERIMENT)
    done = project.run("data/processed/words/seed0.h5", config=("experiment=words",), cores=1)
    shown = done.stdout + done.stderr
    assert done.returncode == 1
    sentence = re.search(r"^job \d+ \(preprocess\) failed: dataset words: words.csv.*'red'.*column 'b'", shown, re.M)
    assert sentence, shown
    assert "1 job failed, by log:\n  data/processed/words/seed0.log\n    dataset words: words.csv" in shown
    for noise in ("--config '", "whiten", "Traceback"):
        assert noise not in shown
    # Who wants the command finds it.
    assert any("--config '" in log.read_text() for log in (project.folder / ".snakemake/log").iterdir())


@pytest.mark.slow
def test_a_path_of_another_experiment_says_which_one_it_needs(tmp_path: Path) -> None:
    project = Project.make(tmp_path / "project")
    done = project.run("results/smoke/ring_tiny/gaussian/seed0/metrics.csv")
    assert done.returncode == 1
    sentence = "metrics.csv is of another experiment than contract; add --config experiment=smoke"
    assert sentence in done.stdout + done.stderr


# A shell without job control starts what runs in the background with SIGINT ignored, and children inherit that.
HEARS_CTRL_C = (
    "import os, signal, sys; signal.signal(signal.SIGINT, signal.SIG_DFL); os.execv(sys.argv[1], sys.argv[1:])"
)


@pytest.mark.slow
def test_ctrl_c_shows_one_line(tmp_path: Path) -> None:
    project = Project.make(tmp_path / "project")
    project.edit("mine/my_model.py", SLOW, f"context.log.info('under way'); import time; time.sleep(300); {SLOW}")
    folder = Path("results/contract/wine_recognition/shrunk/seed0")
    command = [sys.executable, "-m", "snakemake", "--cores", "1", f"{folder}/model.h5", "--config"]
    log = project.folder / folder / "train.log"
    with open(tmp_path / "shown", "w") as shown:
        run = subprocess.Popen(
            [sys.executable, "-c", HEARS_CTRL_C, *command, "experiment=contract"], cwd=project.folder,
            env=project.environment(), stdout=shown, stderr=shown, start_new_session=True,
        )  # fmt: skip
        while run.poll() is None and not (log.exists() and "under way" in log.read_text()):
            time.sleep(0.1)
        os.killpg(run.pid, signal.SIGINT)  # as a terminal sends it: to Snakemake and its jobs
        assert run.wait(timeout=60) != 0
    text = (tmp_path / "shown").read_text()
    after = text.partition("(progress: ")[2].splitlines()[1:]
    assert [line for line in after if line and not line.startswith("Reason: ")] == [
        "stopped; the same command continues"
    ], text
    assert "Traceback" not in log.read_text()


def test_rules_that_may_take_hours_name_their_log() -> None:
    seconds_only = {"agreement", "reference_values"}  # tables of results, whatever they ask for
    long = 0
    for path in sorted((ROOT / "workflow" / "rules").glob("*.smk")):
        text = path.read_text()
        if path.stem not in seconds_only and re.search(r'runtime="\d+h"', text):
            assert re.search(r'message:\n +".*\{log\}', text), path.name
            long += 1
    assert long >= 6
