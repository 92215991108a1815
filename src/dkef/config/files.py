"""Where the YAML of a configuration lies, and in which file a key stands."""

import os
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import yaml  # type: ignore[import-untyped]

from dkef.config.sentences import unknown
from dkef.core.errors import ConfigError, one_line

ABSENT = object()


def config_folder() -> Path:
    """`config/` of the working folder where there is one, otherwise of the checkout or the wheel of this package."""
    package = Path(__file__).resolve().parents[1]
    for root in (Path.cwd(), package.parents[1], package / "share"):  # setup.py fills `share` of a wheel
        if (root / "config" / "config.yaml").is_file():
            return root / "config"
    raise ConfigError("no config/config.yaml in the working folder; run from the project's root, or install dkef again")


def outside_folders() -> list[Path]:
    """Further config folders, from DKEF_CONFIG_PATH: models and datasets that live outside this repository."""
    return [Path(entry) for entry in os.environ.get("DKEF_CONFIG_PATH", "").split(os.pathsep) if entry]


def choices(group: str) -> list[str]:
    """All names that can be chosen in a config group."""
    folders = [config_folder(), *outside_folders()]
    return sorted({path.stem for folder in folders for path in (folder / group).glob("*.yaml")})


def check_choice(group: str, name: str, where: str) -> None:
    """Stop unless some config folder has <group>/<name>.yaml."""
    if name not in choices(group):
        raise ConfigError(f"{where}: {unknown(group, name, choices(group))}")


def shown(path: Path) -> str:
    """A path as a user would write it: below the working folder where it lies there."""
    try:
        return str(path.resolve().relative_to(Path.cwd()))
    except ValueError:
        return str(path)


def file_of(group: str, name: str) -> Path:
    """The file of a choice; the first config folder that has one wins, as it does for Hydra."""
    folders = [config_folder(), *outside_folders()]
    paths = [folder / group / f"{name}.yaml" for folder in folders]
    return next((path for path in paths if path.is_file()), paths[0])


def file_with(key: str, chosen: Mapping[str, str]) -> str:
    """The file in which a key stands, be it one that the chosen file builds upon."""
    group, *steps = key.partition("[")[0].split(".")
    if group not in chosen:
        return shown(config_folder() / "config.yaml")
    path = file_of(group, chosen[group])
    return shown(next(_files_with(group, chosen[group], steps), path))


def broken_file(choices: Mapping[str, str]) -> str | None:
    """What is wrong with the first chosen file that is not YAML of the right shape, if one is not."""
    for group, name in choices.items():
        path = file_of(group, name)
        try:
            _read(path)
        except (yaml.YAMLError, OSError, ValueError, RecursionError) as error:
            return f"{shown(path)} cannot be read ({one_line(error)}); expected is YAML, keys with values"
    return None


def entry_at(values: Any, steps: Sequence[str]) -> Any:
    """What nested mappings hold under a path of keys; ABSENT where there is no such key."""
    for step in steps:
        values = values.get(step, ABSENT) if isinstance(values, Mapping) else ABSENT
    return values


def _read(path: Path) -> dict[str, Any]:
    body = yaml.safe_load(path.read_text(encoding="utf-8"))
    if not isinstance(body, dict | None):
        raise ValueError(f"it holds {one_line(repr(body))}")
    return body or {}


def _files_with(group: str, name: str, steps: Sequence[str]) -> Iterator[Path]:
    path = file_of(group, name)
    try:
        body = _read(path)
    except (yaml.YAMLError, OSError, ValueError, RecursionError):
        return
    if entry_at(body, steps) is not ABSENT:
        yield path
    entries = body.get("defaults", [])
    for entry in entries if isinstance(entries, list) else []:
        if isinstance(entry, str) and entry != "_self_":
            yield from _files_with(group, entry, steps)
        elif isinstance(entry, Mapping):  # "/model@component: gaussian", a choice that fills one key
            for place, choice in entry.items():
                other, _, package = str(place).rpartition("/")[2].partition("@")
                if steps[:1] == [package]:
                    yield from _files_with(other, str(choice), steps[1:])
