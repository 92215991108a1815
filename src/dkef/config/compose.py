"""From YAML to typed configuration: composition by Hydra, checked once, at the door.

Code past this module sees frozen dataclasses or the canonical JSON slice of one job, never a DictConfig.
"""

import difflib
import functools
import os
from collections.abc import Mapping
from pathlib import Path

from hydra import compose, initialize_config_dir
from hydra.errors import HydraException, MissingConfigException
from omegaconf import DictConfig, OmegaConf
from omegaconf.errors import OmegaConfBaseException
from yaml import YAMLError  # type: ignore[import-untyped]

from dkef.config.settings import Cell
from dkef.config.typed import instantiate, typed
from dkef.core.errors import ConfigError, one_line

# What Hydra lets through of a file that is not text, not YAML, or YAML of another shape than a mapping of names.
NOT_YAML = (YAMLError, OSError, ValueError, TypeError, AttributeError, KeyError, AssertionError, RecursionError)


def config_folder() -> Path:
    """`config/` of the working folder where there is one, otherwise of the checkout this package lives in."""
    for root in (Path.cwd(), Path(__file__).resolve().parents[3]):
        if (root / "config" / "config.yaml").is_file():
            return root / "config"
    raise ConfigError("no config/config.yaml in the working folder; run from the project's root")


def outside_folders() -> list[Path]:
    """Further config folders, from DKEF_CONFIG_PATH: models and datasets that live outside this repository."""
    return [Path(entry) for entry in os.environ.get("DKEF_CONFIG_PATH", "").split(os.pathsep) if entry]


def choices(group: str) -> list[str]:
    """All names that can be chosen in a config group."""
    folders = [config_folder(), *outside_folders()]
    return sorted({path.stem for folder in folders for path in (folder / group).glob("*.yaml")})


def check_choice(group: str, name: str, where: str) -> None:
    """Stop unless config/<group>/<name>.yaml exists."""
    known = choices(group)
    if name not in known:
        close = difflib.get_close_matches(name, known, n=1)
        hint = f"did you mean {close[0]}? " if close else ""
        raise ConfigError(f"{where}: {group} {name!r} is unknown; {hint}known are {', '.join(known)}")


def compose_section(name: str, overrides: tuple[str, ...] = ()) -> DictConfig:
    """Hydra's composition of one primary config, resolved, with `hydra.runtime.choices` still in it."""
    folders = [config_folder(), *outside_folders()]
    home = next((folder for folder in folders if (folder / f"{name}.yaml").is_file()), folders[0])
    search = ",".join(f"file://{folder.resolve()}" for folder in folders if folder != home)
    extra = [f"hydra.searchpath=[{search}]"] if search else []
    try:
        with initialize_config_dir(version_base="1.3", config_dir=str(home.resolve())):
            return compose(name, overrides=[*extra, *overrides], return_hydra_config=True)
    except (OmegaConfBaseException, *NOT_YAML) as error:
        raise ConfigError(f"config {name} {_told(overrides)}: {one_line(error)}") from None


@functools.cache
def compose_cell(overrides: tuple[str, ...]) -> Cell:
    """The checked configuration of one (dataset, model), given Hydra overrides such as "dataset=ring"."""
    try:
        composed = compose_section("config", overrides)
        chosen = {group: str(name) for group, name in composed.hydra.runtime.choices.items() if "/" not in group}
        values = {str(key): OmegaConf.to_container(composed[key], resolve=True) for key in composed if key != "hydra"}
    except MissingConfigException as error:
        raise ConfigError(f"{first_line(error)} (overrides: {_told(overrides)})") from None
    except (HydraException, OmegaConfBaseException) as error:
        raise ConfigError(f"overrides {_told(overrides)}: {first_line(error)}") from None
    cell = typed(Cell, values, lambda key: _file_of(key, chosen))
    # Build both open sections now, so that a bad value in them stops the run before any job starts.
    instantiate(cell.model, f"config/model/{chosen['model']}.yaml", "model")
    instantiate(cell.dataset.source, f"config/dataset/{chosen['dataset']}.yaml", "dataset.source")
    return cell


def _file_of(key: str, chosen: Mapping[str, str]) -> str:
    group = key.partition(".")[0]
    return f"config/{group}/{chosen[group]}.yaml" if group in chosen else "config/config.yaml"


def _told(overrides: tuple[str, ...]) -> str:
    """Overrides as they were given, on one line whatever is in them."""
    return " ".join(" ".join(overrides).split())


def first_line(error: Exception) -> str:
    """What an error of Hydra says; some say nothing and leave it to their cause."""
    told = str(error).strip() or str(error.__cause__ or "").strip() or type(error).__name__
    return one_line(told.partition("\n")[0]).rstrip(".")
