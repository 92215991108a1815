"""Defaults stand in the schema: no YAML repeats one, and every job's slice holds them all."""

import dataclasses
import importlib
import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import yaml

from dkef.config.compose import compose_cell
from dkef.config.files import config_folder
from dkef.config.plan import Plan
from dkef.config.schema.cell import Cell
from dkef.config.typed import Share, instantiate, resolved
from dkef.core.errors import ConfigError

SECTIONS = {field.name: field for field in dataclasses.fields(Cell)}
FILES = sorted(
    path.relative_to(config_folder())
    for path in config_folder().rglob("*.yaml")
    if path.parent.name != "experiment"  # lists overrides, not keys
)


def default_of(field: dataclasses.Field[Any]) -> Any:
    if field.default_factory is not dataclasses.MISSING:
        return field.default_factory()
    return field.default


def fields_of(kind: Any) -> dict[str, dataclasses.Field[Any]]:
    return {field.name: field for field in dataclasses.fields(kind)} if dataclasses.is_dataclass(kind) else {}


def repeated(body: Mapping[str, Any], fields: Mapping[str, dataclasses.Field[Any]], key: str) -> Iterator[str]:
    """Keys whose value is the default; a section with `_target_` has the fields of its class."""
    if "_target_" in body:
        module, _, name = body["_target_"].rpartition(".")
        fields = fields_of(getattr(importlib.import_module(module), name))
    for name, value in body.items():
        if name not in fields:
            if isinstance(value, Mapping) and "_target_" in value:
                yield from repeated(value, {}, f"{key}.{name}")
            continue
        default = default_of(fields[name])
        if isinstance(value, Mapping) and (dataclasses.is_dataclass(default) or "_target_" in value):
            yield from repeated(value, fields_of(default), f"{key}.{name}")
        elif value == default:
            yield f"{key}.{name}"


def inherited(path: Path) -> Iterator[dict[str, Any]]:
    """A file of a group and those that it builds upon, nearest first."""
    body = yaml.safe_load((config_folder() / path).read_text()) or {}
    yield body
    for parent in body.get("defaults", []):
        if isinstance(parent, str) and parent != "_self_":
            yield from inherited(path.with_name(f"{parent}.yaml"))


def names_repeated(path: Path) -> list[str]:
    own, *parents = inherited(path)
    group = path.parent.name
    target = next((body["_target_"] for body in (own, *parents) if "_target_" in body), None)
    kinds = {"dataset": Cell.__annotations__["dataset"], "normaliser": Cell.__annotations__["normaliser"]}
    body = {key: value for key, value in own.items() if key != "defaults"}
    if target is not None:
        body["_target_"] = target
    found = repeated(body, SECTIONS if group == "config" else fields_of(kinds.get(group)), group)
    # What an inherited file changes, a file may change back.
    return [key for key in found if not any(key.rpartition(".")[2] in parent for parent in parents)]


@pytest.mark.parametrize("path", FILES, ids=str)
def test_no_yaml_repeats_a_default(path: Path) -> None:
    assert names_repeated(path) == []


@pytest.mark.parametrize(
    ("group", "text", "expected"),
    [
        ("model", "_target_: dkef.models.kcef.spec.Kcef\nfolds: 10\nrows: 500\n", ["model.folds"]),
        ("model", "defaults: [dkef, _self_]\nwidth: 30\nlayers: 2\n", ["model.width"]),
        ("model", "defaults: [kef_g, _self_]\nlayers: 3\n", []),
        ("normaliser", "proposal: q0\ndefensive_mixture: {clusters: 20, centres: 7}\n",
         ["normaliser.proposal", "normaliser.defensive_mixture.clusters"]),
        ("dataset", "title: X\npreprocessing: {whiten: true}\n", ["dataset.preprocessing.whiten"]),
        ("dataset", "source: {_target_: dkef.data.tables.Csv, skip_lines: 0}\n", ["dataset.source.skip_lines"]),
    ],
)  # fmt: skip
def test_a_repeated_default_would_be_noticed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, group: str, text: str, expected: list[str]
) -> None:
    folder = tmp_path / "config"
    for path in FILES:
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_bytes((config_folder() / path).read_bytes())
    (folder / group / "mine.yaml").write_text(text)
    monkeypatch.chdir(folder.parent)
    assert names_repeated(Path(group) / "mine.yaml") == expected


@pytest.mark.parametrize("model", ["gaussian", "dkef_l50", "made", "kcef", "mixture_dkef_g15"])
def test_a_slice_names_every_key_of_the_model_and_of_the_source(model: str) -> None:
    cell = compose_cell(("dataset=redwine", f"model={model}"))
    for section in (cell.model, cell.dataset.source, *([cell.model["component"]] if "component" in cell.model else [])):
        names = {field.name for field in dataclasses.fields(instantiate(section)) if field.init}
        assert set(section) == names | {"_target_"}


def test_the_slice_of_a_training_job_holds_defaults_that_no_file_names() -> None:
    told = json.loads(Plan("smoke").train_slice("ring_tiny", "kcef", 0))
    assert told["spec"]["folds"] == 10
    assert told["spec"]["rows"] == 100  # from the experiment
    assert json.loads(Plan("smoke").preprocess_slice("ring_tiny", 0))["dataset"]["source"]["rotation_degrees"] == 0.0


@dataclass(frozen=True)
class Plain:
    """As users write them: a plain dataclass, whose annotations may carry ranges."""

    weight: Share = 0.5
    degree: int = 3
    names: tuple[str, ...] = ("a",)
    sum: float = dataclasses.field(init=False, default=0.0)

    def __post_init__(self) -> None:
        object.__setattr__(self, "sum", self.weight + self.degree)


def test_a_plain_dataclass_of_a_user_is_checked_and_resolved() -> None:
    target = {"_target_": f"{__name__}.Plain"}
    assert instantiate(target | {"degree": 2}).sum == 2.5
    assert resolved(target | {"degree": 2}) == target | {"weight": 0.5, "degree": 2, "names": ["a"]}
    for section, sentence in (
        ({"weight": 2.0}, "here: model.weight is 2.0; allowed is between 0 and 1"),
        ({"degree": "2"}, "here: model.degree is '2'; allowed is a whole number"),
        ({"degree": 2.0}, "here: model.degree is 2.0; allowed is a whole number"),
        ({"weight": True}, "here: model.weight is True; allowed is a number between 0 and 1"),
        ({"weight": float("nan")}, "here: model.weight is nan; allowed is a finite number"),
        ({"names": ["a", 1]}, "here: model.names[1] is 1; allowed is text"),
        ({"sum": 1.0}, "here: model.sum is an unknown key; allowed are weight, degree, names"),
        ({"wieght": 0.1},
         "here: model.wieght is an unknown key; did you mean weight? allowed are weight, degree, names, sum"),
    ):  # fmt: skip
        with pytest.raises(ConfigError, match="here") as caught:
            instantiate(target | section, "here", "model")
        assert str(caught.value) == sentence
