"""Records of the normalise stage, whole and broken: one part is fuzzed, the others are as they were written."""

import functools
import logging
import tempfile
from pathlib import Path
from typing import Any

from dkef.config.schema.normaliser import Normaliser
from dkef.core.files import read_json, write_json
from dkef.normaliser.chunks import ChunkRun
from dkef.normaliser.integrand import KernelIntegrand
from dkef.normaliser.target import TargetRun
from dkef.normaliser.weights import LONG_STAGES
from tests.normaliser.examples import random_kef

SAMPLES = 200  # enough for a tail index
NAME = ("fuzz",)
MODEL = random_kef(m=5, widths=(3, 3))
SETTINGS = Normaliser(
    samples=SAMPLES, bound_samples=SAMPLES, pilot_samples=SAMPLES, chunk_samples=SAMPLES, tolerance=0.01
)
KINDS = ("pilot", "chunk", "choice")
LOG = logging.getLogger("fuzz")


@functools.cache
def _run() -> ChunkRun:
    return ChunkRun(KernelIntegrand(MODEL), SETTINGS, NAME, 1, LOG)


@functools.cache
def whole_records() -> dict[str, dict[str, Any]]:
    """What the stage itself writes, by kind."""
    with tempfile.TemporaryDirectory() as name:
        _candidate(Path(name))
        choice = read_json(Path(name) / "q0" / "choice.json")
    return {"pilot": _run().pilot(), "chunk": _run().chunk("z", 0), "choice": choice}


def _candidate(folder: Path) -> Any:
    return TargetRun(KernelIntegrand(MODEL), None, SETTINGS, NAME, 1, LOG)._look("q0", folder)


@functools.cache
def _other_parts(folder: Path) -> dict[str, Path]:
    paths = {"pilot": folder / "whole_pilot.json"} | {stage: folder / f"whole_{stage}.json" for stage in LONG_STAGES}
    write_json(paths["pilot"], whole_records()["pilot"])
    for stage in LONG_STAGES:
        write_json(paths[stage], _run().chunk(stage, 0))
    return paths


def read(kind: str, data: bytes, folder: Path) -> None:
    """Read one fuzzed record as the stage does, up to the estimate that rests on it."""
    if kind == "choice":
        (folder / "q0").mkdir(exist_ok=True)
        (folder / "q0" / "choice.json").write_bytes(data)
        candidate = _candidate(folder)
        candidate.cost_of(0.01, 0.04)
        write_json(folder / "method.json", candidate.method.record())
        return
    fuzzed = folder / "fuzzed.json"
    fuzzed.write_bytes(data)
    parts = _other_parts(folder) | {"pilot" if kind == "pilot" else "z": fuzzed}
    record = _run().merge(parts["pilot"], {stage: [parts[stage]] for stage in LONG_STAGES})
    write_json(folder / "log_z.json", record)
