"""Frozen dataclasses from plain values; the first misspelt key, wrong type or bad range becomes one sentence."""

import dataclasses
import difflib
import importlib
import sys
import types
import typing
from collections.abc import Callable, Mapping
from typing import Any, TypeVar

from dkef.core.errors import ConfigError, DkefError, one_line
from dkef.core.trust import allowed

T = TypeVar("T")
WORDS = {int: "a whole number", float: "a number", bool: "true or false", str: "text"}


def require(holds: bool, key: str, found: object, allowed: str) -> None:
    """Stop with one sentence unless a value is in its range."""
    if not holds:
        raise ConfigError(f"{key} is {one_line(repr(found))}; allowed is {allowed}")


def one_of(key: str, found: str, *allowed: str) -> None:
    """Stop with one sentence unless a value is one of a few words."""
    require(found in allowed, key, found, "one of " + ", ".join(allowed))


def instantiate(section: Mapping[str, Any], where: str = "configuration", key: str = "section") -> Any:
    """The dataclass that a section's `_target_` names, with every key, type and range checked."""
    target = section.get("_target_") if isinstance(section, Mapping) else None
    if not isinstance(target, str):
        raise ConfigError(f"{where}: {key} has no `_target_` that names a class; found {one_line(repr(section))}")
    module, _, name = target.rpartition(".")
    if not allowed(target):
        raise ConfigError(
            f"{where}: {key}._target_ {target!r} cannot be imported: there is none, or it is in an installed package "
            "that is neither dkef nor named in DKEF_TRUSTED"
        )
    try:
        kind = getattr(importlib.import_module(module), name)
    except (ImportError, AttributeError, ValueError, TypeError) as error:
        raise ConfigError(f"{where}: {key}._target_ {target!r} cannot be imported ({one_line(error)})") from None
    if not (isinstance(kind, type) and dataclasses.is_dataclass(kind)):
        raise ConfigError(f"{where}: {key}._target_ {target!r} is not a dataclass")
    values = {name: value for name, value in section.items() if name != "_target_"}
    return typed(kind, values, lambda _: where, key)


def typed(kind: type[T], values: Mapping[str, Any], file_of: Callable[[str], str], key: str = "") -> T:
    """Build a (nested) dataclass from plain values; `file_of` tells the file in which a key stands."""
    try:
        built: T = _build(kind, values, key)
    except ConfigError as error:
        raise ConfigError(f"{file_of(str(error).split()[0])}: {error}") from None
    return built


def of_record(kind: type[T], record: Mapping[str, Any], where: object, remedy: str) -> T:
    """The dataclass whose fields stand in a record, perhaps among other keys; the sentence ends in the remedy."""
    names = {field.name for field in dataclasses.fields(kind)}  # type: ignore[arg-type]
    try:
        require(isinstance(record, Mapping), kind.__name__, record, "a mapping")
        built: T = _build(kind, {name: value for name, value in record.items() if name in names}, "")
    except ConfigError as error:
        raise DkefError(f"{where}: {error}; {remedy}") from None
    return built


def plain(value: Any) -> Any:
    """A dataclass as nested dicts and lists, ready for canonical JSON."""
    return dataclasses.asdict(value)


def _build(kind: Any, value: Any, key: str) -> Any:
    """`value` as an instance of the annotation `kind`; every message begins with the key."""
    origin, arguments = typing.get_origin(kind), typing.get_args(kind)
    if kind is Any:
        return value
    if origin in (types.UnionType, typing.Union):
        rest = [entry for entry in arguments if entry is not type(None)]
        return None if value is None else _build(rest[0], value, key)
    if dataclasses.is_dataclass(kind):
        return _build_dataclass(kind, value, key)
    if origin in (list, tuple):
        require(isinstance(value, list | tuple), key, value, "a list")
        return origin(_build(arguments[0], entry, f"{key}[{i}]") for i, entry in enumerate(value))
    if origin is dict:
        require(isinstance(value, Mapping), key, value, "a mapping")
        return {name: _build(arguments[1], entry, _join(key, name)) for name, entry in value.items()}
    if kind is float and isinstance(value, int) and not isinstance(value, bool):
        require(abs(value) <= sys.float_info.max, key, value, "a number that floating point can hold")
        return float(value)
    require(isinstance(value, kind) and (kind is bool or not isinstance(value, bool)), key, value, WORDS[kind])
    return value


def _build_dataclass(kind: Any, value: Any, key: str) -> Any:
    require(isinstance(value, Mapping), key or kind.__name__, value, "a mapping")
    fields = {field.name: field for field in dataclasses.fields(kind) if field.init}
    for name in value:
        if name not in fields:
            close = difflib.get_close_matches(str(name), fields, n=1)
            hint = f"did you mean {close[0]}? " if close else ""
            allowed = f"allowed are {', '.join(fields)}" if fields else "this section takes no keys"
            raise ConfigError(f"{_join(key, name)} is an unknown key; {hint}{allowed}")
    for name, field in fields.items():
        required = field.default is dataclasses.MISSING and field.default_factory is dataclasses.MISSING
        if required and name not in value:
            raise ConfigError(f"{_join(key, name)} is missing and has no default")
    hints = typing.get_type_hints(kind)
    return kind(**{name: _build(hints[name], entry, _join(key, name)) for name, entry in value.items()})


def _join(key: str, name: object) -> str:
    told = one_line(name)
    return f"{key}.{told}" if key else told
