"""`make status` and `make list`, on a made-up folder of results with one cell in every state."""

import base64
import json
import subprocess
import sys
from pathlib import Path

import pytest

from dkef.config.files import choices
from dkef.config.listing import GROUPS, description, listing
from dkef.config.plan import Plan
from dkef.core.files import write_json
from dkef.core.tables import write_table
from dkef.results.bundle import CELL_NUMBERS, CELLS
from dkef.results.cost import CostModel, Rate
from dkef.results.status import status_of
from dkef.results.tables import METRICS

EXPERIMENT = """
title: Two models on one set
figures: []
suites:
  only: {datasets: [ring], models: [gaussian, kcef], seeds: 3}
"""
RATES = [Rate("train", "ring", "kcef", 0, 100.0), Rate("compare", "ring", "kcef", 0, 20.0)]


def metrics(path: Path, model: str, seed: int, status: str) -> None:
    row = dict.fromkeys(METRICS.columns, "") | {"dataset": "ring", "model": model, "seed": seed, "status": status}
    write_table(path, METRICS.columns, [row])


@pytest.fixture
def plan(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Plan:
    (tmp_path / "experiment").mkdir()
    (tmp_path / "experiment" / "states.yaml").write_text(EXPERIMENT)
    monkeypatch.setenv("DKEF_CONFIG_PATH", str(tmp_path))
    return Plan("states")


def test_every_state_is_told_from_the_others(plan: Plan, tmp_path: Path) -> None:
    cell = "results/states/ring/{}/seed{}".format
    metrics(tmp_path / cell("gaussian", 0) / "metrics.csv", "gaussian", 0, "ok")
    metrics(tmp_path / cell("gaussian", 1) / "metrics.csv", "gaussian", 1, "untrusted: for a reason")
    (tmp_path / cell("gaussian", 0) / "train.benchmark.jsonl").write_text(json.dumps({"s": 90, "cpu_time": 60.0}))
    (tmp_path / cell("gaussian", 1) / "train.benchmark.jsonl").write_text(json.dumps({"s": 30, "cpu_time": "NA"}))
    # One cell is in the bundle only, which took 10 s of training there; another one is in both and counts once.
    bundle = tmp_path / "bundle"
    metrics(bundle / "metrics.csv", "gaussian", 2, "untrusted: for a reason")
    row = dict.fromkeys(CELLS, "") | {"dataset": "ring", "model": "gaussian"}
    cells = [
        row | {"seed": seed, **dict.fromkeys(CELL_NUMBERS), "train_seconds": 10, "normalise_seconds": 5}
        for seed in (0, 2)
    ]
    write_table(bundle / "cells.csv", CELLS, cells)
    write_json(bundle / "bundle.json", {"experiment": "states", "cells": 2})
    # kcef: seed 0 runs, seed 1 has failed after training, seed 2 was not begun.
    (tmp_path / ".snakemake/locks").mkdir(parents=True)
    (tmp_path / ".snakemake/locks/0.output.lock").touch()
    mark = base64.urlsafe_b64encode(f"{cell('kcef', 0)}/model.h5".encode()).decode()
    (tmp_path / ".snakemake/incomplete" / f"@{mark[:20]}").mkdir(parents=True)
    (tmp_path / ".snakemake/incomplete" / f"@{mark[:20]}" / mark[20:]).touch()
    (tmp_path / cell("kcef", 1)).mkdir(parents=True)
    (tmp_path / cell("kcef", 1) / "model.h5").touch()
    (tmp_path / cell("kcef", 1) / "evaluate.log").write_text("12:00:00 start\nerror: no rows; add some\n")

    found = status_of(plan, CostModel(plan, RATES, {}), tmp_path, bundle)
    kcef = [found.states["ring", "kcef", seed] for seed in range(3)]
    assert kcef == ["running", "failed", "left"]
    assert [found.states["ring", "gaussian", seed] for seed in range(3)] == ["done"] * 3
    assert found.untrusted == {("ring", "gaussian", 1), ("ring", "gaussian", 2)}
    assert found.spent_seconds == 60 + 30 + 10 + 5
    # Two trainings and three comparisons are left; nothing is known about the other stages.
    assert found.left.core_seconds == 2 * 100 + 3 * 20
    rows = {tuple(line.split()[:2]): line.split()[2:] for line in found.table().splitlines() if "ring" in line}
    assert rows["ring", "gaussian"] == ["3", "-", "-", "-", "2"]
    assert rows["ring", "kcef"] == ["-", "1", "1", "1", "-"]
    assert "core-hours: 0.03 spent, about 0.07 left" in found.table()


def test_without_its_lock_a_begun_cell_is_left(plan: Plan, tmp_path: Path) -> None:
    mark = base64.urlsafe_b64encode(b"results/states/ring/kcef/seed0/model.h5").decode()
    (tmp_path / ".snakemake/incomplete").mkdir(parents=True)
    (tmp_path / ".snakemake/incomplete" / mark).touch()
    found = status_of(plan, CostModel(plan, RATES, {}), tmp_path, tmp_path / "none")
    assert set(found.states.values()) == {"left"}


def test_the_list_has_one_line_for_every_choice() -> None:
    lines = listing().splitlines()
    for group in GROUPS:
        for name in choices(group):
            (line,) = [line for line in lines if line.split()[:1] == [name] and line.startswith("  ")][:1]
            assert line.split()[1:], f"{group} {name} says nothing about itself"
    assert max(map(len, lines)) <= 112
    assert description("experiment", "smoke") == "Smoke run"
    assert description("dataset", "ring") == "Radius 5 + 0.2 N(0, 1), angle uniform"
    assert description("model", "maf").startswith("Masked autoregressive flow: MADEs one upon another")


def test_both_are_commands(tmp_path: Path) -> None:
    for words in (("list",), ("status", "--experiment", "mixtures")):
        command = [sys.executable, "-m", "dkef", *words]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
        assert "experiment" in done.stdout
