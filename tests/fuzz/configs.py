"""Target `configs`: YAML of every group and the overrides of a command line, up to the plan of an experiment."""

import os
from pathlib import Path
from typing import Any

import yaml
from hypothesis import strategies as st

from dkef.config.compose import compose_cell
from dkef.config.experiment import load_experiment
from dkef.config.files import config_folder
from dkef.config.plan import Plan
from tests.fuzz.mutations import TEXT, changed_tree, edited

NAMES = {
    "dataset": ("ring", "redwine", "wine_recognition"),
    "model": ("gaussian", "dkef_g15", "made", "kcef", "mixture_gaussian"),
    "normaliser": ("fast",),
    "protocol": ("synthetic",),
    "fidelity": ("paper",),
}
EXPERIMENT = """
title: Fuzzed
figures: [toys]
datasets:
  ring_tiny: {of: ring, overrides: [dataset.source.rows=300]}
models:
  wide: {of: made, overrides: [model.width=10]}
suites:
  all: {datasets: [ring_tiny], models: [gaussian, wide], seeds: 2, overrides: [protocol=synthetic]}
"""
OVERRIDES = (
    "model.width=20",
    "dataset.source.rows=10",
    "~model.width",
    "+model.new=3",
    "fidelity=code",
    "made: model.width=3",
)


def _text_of(group: str, name: str) -> bytes:
    return EXPERIMENT.encode() if group == "experiment" else (config_folder() / group / f"{name}.yaml").read_bytes()


def whole_files() -> list[tuple[str, bytes]]:
    return [(group, _text_of(group, names[0])) for group, names in NAMES.items()] + [
        ("experiment", EXPERIMENT.encode())
    ]


@st.composite
def cases(draw: Any) -> tuple[str, bytes]:
    group = draw(st.sampled_from([*NAMES, "model", "experiment", "experiment", "overrides"]))
    if group == "overrides":
        return group, draw(edited(draw(st.sampled_from(OVERRIDES)).encode(), TEXT))
    whole = _text_of(group, draw(st.sampled_from(NAMES.get(group, ("fuzzed",)))))
    if draw(st.booleans()):
        return group, draw(edited(whole, TEXT))
    tree = draw(changed_tree(yaml.safe_load(whole)))
    return group, yaml.safe_dump(tree, allow_unicode=True, sort_keys=False).encode("utf-8", "replace")


def read(kind: str, data: bytes, folder: Path) -> None:
    compose_cell.cache_clear()
    load_experiment.cache_clear()
    if kind == "overrides":
        Plan("smoke", (data.decode("utf-8", "replace"),)).cell("ring_tiny", "made")
        return
    for old in folder.glob("*/*.yaml"):
        old.unlink()
    path = folder / kind / "fuzzed.yaml"
    path.parent.mkdir(exist_ok=True)
    path.write_bytes(data)
    os.environ["DKEF_CONFIG_PATH"] = str(folder)
    if kind != "experiment":
        compose_cell((f"{kind}=fuzzed",))
        return
    fuzzed = Plan("fuzzed")
    if len(fuzzed.cells) < 1000:
        fuzzed.check()
        fuzzed.experiment_slice()
