"""The stages of log Z: jobs of the workflow, a person's run, and their files."""

import json
import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path
from types import ModuleType

import pytest

from dkef import load_model
from dkef.models.gaussian.density import GaussianModel
from dkef.models.kef.density import KefModel
from dkef.models.protocol import Fit
from dkef.models.storage import write_model
from dkef.normaliser.files import PILOT, PROPOSAL, chunk_name
from dkef.stages import normalise, normalise_chunk, normalise_merge, normalise_pilot, normalise_target
from tests.normaliser.examples import random_kef

CONFIG = {
    "dataset": "toy", "model": "dkef", "seed": 3,
    "normaliser": {
        "proposal": "q0", "samples": 3000, "bound_samples": 2000, "pilot_samples": 2000, "chunk_samples": 1000,
        "tolerance": None,
    },
}  # fmt: skip
KEYS = {
    "log_z", "log_z_stderr", "log_z_bias_bound", "bound_condition", "effective_sample_size", "largest_weight_share",
    "samples", "stopped", "status", "log_a", "log_s", "rho",
}  # fmt: skip


@pytest.fixture
def model(tmp_path):
    path = tmp_path / "model.h5"
    write_model(path, Fit(KefModel(random_kef())), {})
    return path


def call(stage: ModuleType, *words: object) -> None:
    stage.main([str(word) for word in words])


def jobs(model: Path, folder: Path, config: dict = CONFIG, threads: int = 1) -> Path:
    """What the workflow runs: pilot, every chunk, merge."""
    text = json.dumps(config)
    common = ("--config", text, "--model", model, "--proposal", folder / PROPOSAL)
    call(normalise_pilot, *common, "--data", "--threads", threads, "--out", folder / PILOT)
    files = {"variance": [], "bound_z": [], "z": []}
    for stage, chunks in (("variance", 2), ("bound_z", 2), ("z", 3)):
        for k in reversed(range(chunks)):
            files[stage].append(folder / chunk_name(stage, k))
            call(
                normalise_chunk,
                *common,
                "--threads",
                threads,
                "--stage",
                stage,
                "--chunk",
                k,
                "--out",
                files[stage][-1],
            )
    stages = ("--variance", *files["variance"], "--bound-z", *files["bound_z"], "--z", *files["z"])
    call(normalise_merge, *common, "--pilot", folder / PILOT, *stages, "--out", folder / "log_z.json")
    return folder / "log_z.json"


def test_pilot_chunks_and_merge_give_the_record_that_others_rely_on(model, tmp_path):
    record = json.loads(jobs(model, tmp_path / "jobs").read_text())
    assert set(record) >= KEYS
    assert record["samples"] == 3000
    assert record["status"] == "ok"
    assert record["bound_condition"] == "ok"


def test_one_target_job_without_tolerance_gives_the_same_bytes_as_many_jobs(model, tmp_path):
    many = jobs(model, tmp_path / "jobs")
    one = tmp_path / "one.json"
    words = ("--config", json.dumps(CONFIG), "--model", model, "--data", "--folder", tmp_path / "chunks", "--out", one)
    call(normalise_target, *words)
    assert one.read_bytes() == many.read_bytes()


def test_files_are_identical_whatever_the_number_of_threads(model, tmp_path):
    jobs(model, tmp_path / "one", threads=1)
    jobs(model, tmp_path / "two", threads=2)
    written = sorted(path.relative_to(tmp_path / "one") for path in (tmp_path / "one").rglob("*.json"))
    assert len(written) == 9
    for path in written:
        assert (tmp_path / "one" / path).read_bytes() == (tmp_path / "two" / path).read_bytes()


def test_a_chunk_job_needs_no_sample_counts(model, tmp_path):
    reads = {key: CONFIG["normaliser"][key] for key in ("proposal", "pilot_samples", "chunk_samples")}
    text = json.dumps(CONFIG | {"normaliser": reads})
    common = ("--config", text, "--model", model, "--proposal", tmp_path / "proposal.h5")
    call(normalise_pilot, *common, "--out", tmp_path / "pilot.json")
    call(normalise_chunk, *common, "--stage", "z", "--chunk", "0001", "--out", tmp_path / "c.json")
    assert json.loads((tmp_path / "c.json").read_text())["chunk"] == 1


def test_a_run_by_hand_leaves_log_z_where_the_model_finds_it(model, caplog):
    caplog.set_level("INFO")
    call(normalise, "--model", model, "--samples", "4e3", "--chunk-samples", "1e3")
    assert load_model(model).log_z == json.loads(model.with_name("log_z.json").read_text())["log_z"]
    assert re.search(r"samples, [0-9.e+]+/s, 0:00:00 left", caplog.text)


def test_a_normalised_model_is_refused_with_a_sentence(tmp_path):
    path = tmp_path / "model.h5"
    write_model(path, Fit(GaussianModel.fit(random_kef(m=50).z)), {})
    done = subprocess.run(
        [sys.executable, "-m", "dkef", "normalise", "--model", str(path)],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 1
    assert done.stderr.startswith("error: ")
    assert "GaussianModel, which is normalised and needs no log Z" in done.stderr


@pytest.mark.parametrize("text", ["0", "1.5", "-1000"])
def test_sample_counts_must_be_whole_numbers(text, capsys):
    with pytest.raises(SystemExit):
        normalise.main(["--model", "m.h5", "--samples", text])
    assert "whole number" in capsys.readouterr().err


def test_the_stage_imports_no_tensorflow():
    code = "import sys, dkef.stages.normalise, dkef.models.kef.density; sys.exit('tensorflow' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_planning_needs_no_compiler():
    code = "import sys, dkef.config.schema.cell, dkef.normaliser; sys.exit('numba' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


@pytest.mark.slow
def test_a_run_killed_by_the_system_ends_as_if_nothing_had_happened(model, tmp_path):
    words = ["--samples", "4e6", "--chunk-samples", "5e5", "--pilot-samples", "1e5", "--bound-samples", "5e5"]
    command = [sys.executable, "-m", "dkef", "normalise", "--model", str(model), *words]
    process = subprocess.Popen([*command, "--folder", str(tmp_path / "killed"), "--out", str(tmp_path / "killed.json")])
    deadline = time.monotonic() + 120
    while not (tmp_path / "killed" / chunk_name("z", 1)).exists():
        assert time.monotonic() < deadline
        assert process.poll() is None, "the run ended before it could be killed"
        time.sleep(0.01)
    os.kill(process.pid, signal.SIGKILL)
    process.wait()
    assert not (tmp_path / "killed.json").exists()
    for name in ("killed", "undisturbed"):
        subprocess.run(
            [*command, "--folder", str(tmp_path / name), "--out", str(tmp_path / f"{name}.json")], check=True
        )
    assert (tmp_path / "killed.json").read_bytes() == (tmp_path / "undisturbed.json").read_bytes()
