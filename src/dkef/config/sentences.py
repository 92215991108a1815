"""What pydantic found wrong, as one sentence: the key, what was found, what is allowed, what was probably meant."""

import difflib
from collections.abc import Iterable, Mapping
from typing import Any, Self

from pydantic import TypeAdapter, ValidationError

from dkef.core.errors import ConfigError, one_line

UNKNOWN = ("unexpected_keyword_argument", "extra_forbidden")
MISSING = ("missing", "missing_argument")
RANGE = ("greater_than", "greater_than_equal", "less_than", "less_than_equal")
WORDS = {
    "integer": "a whole number", "number": "a number", "boolean": "true or false", "string": "text",
    "array": "a list", "object": "a mapping",
}  # fmt: skip


class RuleError(ConfigError, ValueError):
    """A key of a section breaks a rule. Being a ValueError it passes through pydantic, which knows where it was."""

    def __init__(self, key: str, sentence: str) -> None:
        super().__init__(f"{key} {sentence}".strip())
        self.key, self.sentence = key, sentence

    def below(self, key: str) -> Self:
        """The same about a section that is itself called `key`."""
        return type(self)(join(key, self.key), self.sentence)


class UnknownKeyError(RuleError):
    """A key that its section does not have."""


def join(key: str, name: object) -> str:
    text = one_line(name) if name != "" else ""
    return f"{key}.{text}" if key and text else key or text


def suggestion(name: object, known: Iterable[str]) -> str:
    """ "did you mean X? ", or nothing where no known name is close."""
    lower = {entry.lower(): entry for entry in known}
    close = difflib.get_close_matches(str(name).lower(), list(lower), n=1)
    return f"did you mean {lower[close[0]]}? " if close else ""


def unknown(what: str, name: str, known: Iterable[str], more: str = "") -> str:
    """The sentence about a name that stands for nothing."""
    names = list(known)
    return f"{what} {name!r} is unknown; {suggestion(name, names)}known are {', '.join(names)}{more}"


def first_problem(error: ValidationError, values: Any, adapter: TypeAdapter[Any]) -> RuleError:
    """The problem to tell: an unknown key before all others, for a misspelt key is often a missing one too."""
    problems = error.errors(include_url=False)
    problem: Mapping[str, Any] = next((p for p in problems if p["type"] in UNKNOWN), problems[0])
    schema = adapter.json_schema()
    node, key = _Node(schema, schema), ""
    steps = list(problem["loc"])
    last = steps.pop() if problem["type"] in UNKNOWN + MISSING else None
    for step in steps:
        # Where a value may be of several types, pydantic names the type as a step: it is no key of the values.
        if isinstance(values, Mapping) and step in values:
            values, node, key = values[step], node.entry(step), join(key, step)
        elif isinstance(values, list | tuple) and isinstance(step, int) and step < len(values):
            values, node, key = values[step], node.entry(step), f"{key}[{step}]"
    if problem["type"] in UNKNOWN:
        known = [name for name in node.names() if name != last]  # not a field that its class sets by itself
        allowed = f"allowed are {', '.join(known)}" if known else "this section takes no keys"
        return UnknownKeyError(join(key, last), f"is an unknown key; {suggestion(last, known)}{allowed}")
    if problem["type"] in MISSING:
        return RuleError(join(key, last), "is missing and has no default")
    rule = problem.get("ctx", {}).get("error")
    if isinstance(rule, RuleError):
        return rule.below(key)
    text = f"is {one_line(repr(problem['input']))}; allowed is {node.allowed(problem['type'] in RANGE)}"
    return RuleError(key or adapter.json_schema().get("title", ""), text)


class _Node:
    """A place in a JSON schema, which pydantic derives from the annotations of a dataclass."""

    def __init__(self, node: Mapping[str, Any], root: Mapping[str, Any]) -> None:
        while "$ref" in node:
            node = root["$defs"][node["$ref"].rpartition("/")[2]]
        self.node, self.root = node, root

    def names(self) -> list[str]:
        return list(self._choices()[0].node.get("properties", {}))

    def entry(self, step: str | int) -> "_Node":
        """The schema of an entry of a mapping or list."""
        for choice in self._choices():
            known = choice.node
            if isinstance(step, int) and "items" in known:
                return _Node(known["items"], self.root)
            if step in known.get("properties", {}):
                return _Node(known["properties"][step], self.root)
            if isinstance(known.get("additionalProperties"), Mapping):
                return _Node(known["additionalProperties"], self.root)
        return _Node({}, self.root)

    def allowed(self, only_range: bool = False) -> str:
        """What may stand here, in words."""
        words = [choice._words(only_range) for choice in self._choices()]
        return " or ".join(words) + (", or null" if self._nullable() else "")

    def _choices(self) -> list["_Node"]:
        choices = [choice for choice in self.node.get("anyOf", [self.node]) if choice.get("type") != "null"]
        return [_Node(choice, self.root) for choice in choices]

    def _nullable(self) -> bool:
        return any(choice.get("type") == "null" for choice in self.node.get("anyOf", []))

    def _words(self, only_range: bool) -> str:
        node = self.node
        if "description" in node and "properties" not in node:
            return str(node["description"])
        words: list[object] = node.get("enum", [node["const"]] if "const" in node else [])
        if words:
            return "one of " + ", ".join(map(str, words))
        kind = WORDS.get(node.get("type", ""), "another value")
        if "minItems" in node:
            return f"{kind} of at least {node['minItems']}"
        limits = _limits(node)
        return limits if only_range and limits else f"{kind} {limits}".strip()


def _limits(node: Mapping[str, Any]) -> str:
    if "exclusiveMinimum" in node and "exclusiveMaximum" in node:
        return f"between {node['exclusiveMinimum']:.12g} and {node['exclusiveMaximum']:.12g}"
    signs = {"minimum": ">=", "exclusiveMinimum": ">", "maximum": "<=", "exclusiveMaximum": "<"}
    return " and ".join(f"{sign} {node[key]:.12g}" for key, sign in signs.items() if key in node)
