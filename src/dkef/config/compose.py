"""From YAML to typed configuration: composition by Hydra, checked once, at the door.

Code past this module sees frozen dataclasses or the canonical JSON slice of one job, never a DictConfig.
"""

import functools
from collections.abc import Mapping
from typing import Any

from hydra import compose, initialize_config_dir
from hydra.core.override_parser.overrides_parser import OverridesParser
from hydra.core.override_parser.types import Override, OverrideType
from hydra.errors import HydraException
from omegaconf import DictConfig, OmegaConf
from omegaconf.errors import OmegaConfBaseException
from yaml import YAMLError  # type: ignore[import-untyped]

from dkef.config.files import broken_file, choices, config_folder, file_with, outside_folders
from dkef.config.kept_cells import KeptCells
from dkef.config.schema.cell import Cell
from dkef.config.sentences import RuleError, UnknownKeyError, unknown
from dkef.config.typed import build
from dkef.core.errors import ConfigError, one_line

# What Hydra lets through of a file that is not text, not YAML, or YAML of another shape than a mapping of names.
NOT_YAML = (YAMLError, OSError, ValueError, TypeError, AttributeError, KeyError, AssertionError, RecursionError)
GROUPS = ("dataset", "model", "protocol", "fidelity", "normaliser")


class OverrideError(ConfigError):
    """An override that cannot be followed; whoever gave it adds where it stands."""

    def __init__(self, override: str, sentence: str, unknown_key: str | None = None) -> None:
        super().__init__(f"override '{one_line(override)}': {sentence}")
        self.override, self.unknown_key = override, unknown_key


def compose_section(name: str, overrides: tuple[str, ...] = ()) -> DictConfig:
    """Hydra's composition of one primary config, resolved, with `hydra.runtime.choices` still in it."""
    folders = [config_folder(), *outside_folders()]
    home = next((folder for folder in folders if (folder / f"{name}.yaml").is_file()), folders[0])
    search = ",".join(f"file://{folder.resolve()}" for folder in folders if folder != home)
    extra = [f"hydra.searchpath=[{search}]"] if search else []
    with initialize_config_dir(version_base="1.3", config_dir=str(home.resolve())):
        return compose(name, overrides=[*extra, *overrides], return_hydra_config=True)


@functools.cache
def compose_cell(overrides: tuple[str, ...], kept: KeptCells | None = None) -> Cell:
    """The checked configuration of one (dataset, model), given Hydra overrides such as "dataset=ring"."""
    parsed = [_parsed(override) for override in overrides]
    chosen = {p.key_or_group: str(p.value()) for p in parsed if p.key_or_group in GROUPS and p.package is None}
    given = tuple(map(_as_hydra_takes_it, parsed))
    try:
        composed = _composed(given) if kept is None else kept.cell(given, _composed)
        chosen, values = composed["chosen"], composed["values"]
    except (HydraException, OmegaConfBaseException, *NOT_YAML) as error:
        raise ConfigError(broken_file(chosen) or _astray(error, overrides, chosen)) from None
    try:
        return build(Cell, values)
    except RuleError as error:
        raise _at_home(error, parsed, chosen) from None


def _composed(overrides: tuple[str, ...]) -> dict[str, Any]:
    """What Hydra makes of overrides, in plain types: the values of a cell, and which files it chose."""
    composed = compose_section("config", overrides)
    known = composed.hydra.runtime.choices.items()
    return {
        "chosen": {group: str(name) for group, name in known if "/" not in group and "@" not in group},
        "values": {str(key): OmegaConf.to_container(composed[key], resolve=True) for key in composed if key != "hydra"},
    }


@functools.cache
def _parsed(override: str) -> Override:
    """An override by itself, whose choice among files must exist."""
    try:
        parsed: Override = OverridesParser.create().parse_override(override)
        value = parsed.value()
    except (HydraException, *NOT_YAML) as error:
        text = first_line(error).replace("\\n", " ")  # Hydra quotes what it stumbled over, line breaks as escapes
        raise OverrideError(override, f"{text}; expected is key=value") from None
    group = parsed.key_or_group
    if group in GROUPS and parsed.type == OverrideType.CHANGE and str(value) not in choices(group):
        raise OverrideError(override, unknown(group, str(value), choices(group)))
    return parsed


def _as_hydra_takes_it(override: Override) -> str:
    """With ++ before a value: Hydra knows the keys of YAML files, but defaults stand in the schema, which checks it."""
    group, text = override.key_or_group, str(override.input_line)
    is_value = group not in GROUPS and override.package is None and not group.startswith("hydra") and "/" not in group
    return f"++{text}" if is_value and override.type == OverrideType.CHANGE else text


def _at_home(error: RuleError, overrides: list[Override], chosen: Mapping[str, str]) -> ConfigError:
    """A broken rule with the place where the key was given: the last override of it, or a file."""
    key, no_such_key = error.key.partition("[")[0], isinstance(error, UnknownKeyError)
    for override in reversed(overrides):
        given = override.key_or_group
        within = f"{key}.".startswith(f"{given}.") or (no_such_key and given.startswith(f"{key}."))
        if given not in GROUPS and within:
            return OverrideError(str(override.input_line), str(error), error.key if no_such_key else None)
    return ConfigError(f"{file_with(error.key, chosen)}: {error}")


def _astray(error: Exception, overrides: tuple[str, ...], chosen: Mapping[str, str]) -> str:
    """What Hydra could not do, with the file of the key that it speaks of, or else the overrides."""
    key = getattr(error, "full_key", None)
    if key and str(key).partition(".")[0] in chosen:
        return f"{file_with(str(key), chosen)}: {key}: {first_line(error)}"
    return f"overrides {' '.join(' '.join(overrides).split())}: {first_line(error)}"


def first_line(error: Exception) -> str:
    """What an error of Hydra says; some say nothing and leave it to their cause."""
    text = str(error).strip() or str(error.__cause__ or "").strip() or type(error).__name__
    return one_line(text.partition("\n")[0]).rstrip(".")
