"""Dataclasses from plain values, checked by pydantic; whatever is wrong becomes one sentence.

A section of the configuration, a specification of a model and the record in a file are all frozen dataclasses. Their
annotations say what is allowed (`width: Count = 30`), their defaults stand nowhere else, and a rule between several
keys is a `require` in `__post_init__`. Plain dataclasses of users work in the same way.
"""

import dataclasses
import functools
import importlib
import inspect
import json
import sys
from collections.abc import Callable, Iterator, Mapping
from typing import Annotated, Any, TypeVar

from pydantic import AfterValidator, Field, TypeAdapter, ValidationError
from pydantic.errors import PydanticUserError
from pydantic_core import ArgsKwargs

from dkef.config.sentences import RuleError, first_problem, join
from dkef.core.errors import ConfigError, DkefError, one_line
from dkef.core.trust import allowed

T = TypeVar("T")

Count = Annotated[int, Field(ge=1)]
AtLeastTwo = Annotated[int, Field(ge=2)]
Whole = Annotated[int, Field(ge=0)]
Positive = Annotated[float, Field(gt=0)]
NotNegative = Annotated[float, Field(ge=0)]
Share = Annotated[float, Field(gt=0, lt=1)]


def require(holds: bool, key: str, found: object, allowed: str) -> None:
    """Stop with one sentence unless a value keeps a rule; `key` as it is called in its own section."""
    if not holds:
        raise RuleError(key, f"is {one_line(repr(found))}; allowed is {allowed}")


def section(kind: type[T]) -> type[T]:
    """Check the values of a dataclass also where Python code builds it."""
    signature = inspect.signature(kind)

    @functools.wraps(kind.__init__)
    def checked(self: T, *arguments: Any, **named: Any) -> None:
        values = signature.bind(*arguments, **named).arguments
        try:
            _adapter(kind).validator.validate_python(ArgsKwargs((), values), self_instance=self)
        except ValidationError as error:
            raise first_problem(error, values, _adapter(kind)) from None

    kind.__init__ = checked  # type: ignore[method-assign,assignment]
    return kind


def instantiate(values: Mapping[str, Any], where: str = "configuration", key: str = "section") -> Any:
    """The dataclass that a section's `_target_` names, with every key, type and range checked."""
    try:
        return _of_target(values)
    except RuleError as error:
        raise ConfigError(f"{where}: {error.below(key)}") from None


def build(kind: type[T], values: Any, finite: bool = True) -> T:
    """`values` as an instance of `kind`, or a RuleError.

    As strict as JSON is: "3" is no number, but mappings become dataclasses and lists tuples.
    """
    for key, number in _extreme_numbers(values, ""):
        if isinstance(number, int):  # pydantic would take it for infinity
            raise RuleError(key, f"is {one_line(repr(number))}; allowed is a number that floating point can hold")
        if finite:
            raise RuleError(key, f"is {number}; allowed is a finite number")
    adapter = _adapter(kind)
    try:
        built: T = adapter.validate_json(json.dumps(values, default=str), strict=True, extra="forbid")
    except ValidationError as error:
        raise first_problem(error, values, adapter) from None
    return built


def typed(kind: type[T], values: Mapping[str, Any], file_of: Callable[[str], str], key: str = "") -> T:
    """Build a (nested) dataclass from plain values; `file_of` tells the file in which a key stands."""
    try:
        return build(kind, values)
    except RuleError as error:
        inner = error.below(key)
        raise ConfigError(f"{file_of(inner.key)}: {inner}") from None


def of_record(kind: type[T], record: Mapping[str, Any], where: object, remedy: str) -> T:
    """The dataclass whose fields stand in a record, perhaps among other keys; the sentence ends in the remedy."""
    names = {field.name for field in dataclasses.fields(kind)}  # type: ignore[arg-type]
    known = {n: v for n, v in record.items() if n in names} if isinstance(record, Mapping) else record
    try:
        return build(kind, known, finite=False)
    except RuleError as error:
        raise DkefError(f"{where}: {error}; {remedy}") from None


def plain(value: Any) -> Any:
    """A dataclass as nested dicts and lists, ready for canonical JSON."""
    return dataclasses.asdict(value)


def resolved(values: Mapping[str, Any]) -> dict[str, Any]:
    """A section with `_target_` and all its keys: those that it does not name have their default."""
    built = _of_target(values)
    taken = {field.name for field in dataclasses.fields(built) if field.init}
    dumped = _adapter(type(built)).dump_python(built, mode="json")
    return {**values, **{name: value for name, value in dumped.items() if name in taken}}


Section = Annotated[dict[str, Any], AfterValidator(resolved)]  # an open section: `_target_` and the keys of its class


_ADAPTERS: dict[type, TypeAdapter[Any]] = {}


def _adapter(kind: type) -> TypeAdapter[Any]:
    if kind not in _ADAPTERS:
        _ADAPTERS[kind] = TypeAdapter(kind)
    return _ADAPTERS[kind]


def _extreme_numbers(values: Any, key: str) -> Iterator[tuple[str, float]]:
    """Whole numbers beyond floating point, infinities and NaN, with their keys."""
    if isinstance(values, Mapping):
        for name, value in values.items():
            yield from _extreme_numbers(value, join(key, name))
    elif isinstance(values, list | tuple):
        for i, value in enumerate(values):
            yield from _extreme_numbers(value, f"{key}[{i}]")
    elif isinstance(values, int | float) and not abs(values) <= sys.float_info.max:
        yield key, values


def _of_target(values: Any) -> Any:
    target = values.get("_target_") if isinstance(values, Mapping) else None
    if not isinstance(target, str):
        raise RuleError("", f"has no `_target_` that names a class; found {one_line(repr(values))}")
    kind = _class_of(target)
    try:
        _adapter(kind)
    except (PydanticUserError, NameError, TypeError) as error:
        raise RuleError("_target_", f"{target!r} has a field that cannot be checked ({one_line(error)})") from None
    return build(kind, {name: value for name, value in values.items() if name != "_target_"})


def _class_of(target: str) -> Any:
    """The dataclass of a name, once it is known to be this package's or the user's own."""
    module, _, name = target.rpartition(".")
    if not allowed(target):
        raise RuleError(
            "_target_",
            f"{target!r} cannot be imported: there is none, or it is in an installed package that is neither dkef nor "
            "named in DKEF_TRUSTED",
        )
    try:
        kind = getattr(importlib.import_module(module), name)
    except (ImportError, AttributeError, ValueError, TypeError) as error:
        raise RuleError("_target_", f"{target!r} cannot be imported ({one_line(error)})") from None
    if not (isinstance(kind, type) and dataclasses.is_dataclass(kind)):
        raise RuleError("_target_", f"{target!r} is not a dataclass")
    return kind
