"""Frozen dataclasses from plain values, with every key, type and range checked and one sentence for the first misfit."""

import dataclasses
import difflib
import importlib
from collections.abc import Callable, Mapping
from typing import Any, TypeVar

from omegaconf import OmegaConf
from omegaconf.errors import OmegaConfBaseException

from dkef.errors import ConfigError

T = TypeVar("T")


def require(holds: bool, key: str, found: object, allowed: str) -> None:
    """Stop with one sentence unless a value is in its range."""
    if not holds:
        raise ConfigError(f"{key} is {found!r}; allowed is {allowed}")


def one_of(key: str, found: str, *allowed: str) -> None:
    """Stop with one sentence unless a value is one of a few words."""
    require(found in allowed, key, found, "one of " + ", ".join(allowed))


def instantiate(section: Mapping[str, Any], where: str = "configuration", prefix: str = "") -> Any:
    """The frozen dataclass that a section's `_target_` names, with every key and type checked."""
    target = section.get("_target_") if isinstance(section, Mapping) else None
    if not isinstance(target, str):
        raise ConfigError(f"{where}: {prefix or 'section'} has no `_target_` that names a class, found {section!r}")
    module, _, name = target.rpartition(".")
    try:
        kind = getattr(importlib.import_module(module), name)
    except (ImportError, AttributeError, ValueError) as error:
        raise ConfigError(f"{where}: _target_ {target!r} cannot be imported ({error})") from None
    if not (isinstance(kind, type) and dataclasses.is_dataclass(kind)):
        raise ConfigError(f"{where}: _target_ {target!r} is not a dataclass")
    values = {key: value for key, value in section.items() if key != "_target_"}
    return typed(kind, values, lambda key: where, prefix)


def typed(kind: type[T], values: Mapping[str, Any], file_of: Callable[[str], str], prefix: str = "") -> T:
    """Build a (nested) dataclass from plain values; the first misfit becomes one sentence with file and key."""
    try:
        merged = OmegaConf.merge(OmegaConf.structured(kind), OmegaConf.create(dict(values)))
        return OmegaConf.to_object(merged)  # type: ignore[return-value]
    except ConfigError as error:
        raise ConfigError(f"{file_of(str(error).split(' is ')[0])}: {error}") from None
    except OmegaConfBaseException as error:
        if isinstance(error.__cause__, ConfigError):
            raise ConfigError(f"{file_of(str(error.__cause__).split(' is ')[0])}: {error.__cause__}") from None
        key = ".".join(part for part in (prefix, str(error.full_key or error.key or "")) if part)
        raise ConfigError(f"{file_of(key)}: {key}: {_explain(error, kind)}") from None


def plain(value: Any) -> Any:
    """A dataclass as nested dicts and lists, ready for canonical JSON."""
    return dataclasses.asdict(value) if dataclasses.is_dataclass(value) and not isinstance(value, type) else value


def _explain(error: OmegaConfBaseException, kind: type) -> str:
    """What was found and what is allowed, from OmegaConf's own message."""
    message = first_line(error)
    holder = error.object_type if dataclasses.is_dataclass(error.object_type) else kind
    allowed = [field.name for field in dataclasses.fields(holder)]
    if "not in" in message:
        close = difflib.get_close_matches(str(error.key), allowed, n=1)
        hint = f"did you mean {close[0]}? " if close else ""
        return f"unknown key; {hint}allowed are {', '.join(allowed)}"
    if "mandatory" in message.lower():
        return "a value is required and none is given"
    return message


def first_line(error: Exception) -> str:
    return str(error).strip().splitlines()[0].rstrip(".")
