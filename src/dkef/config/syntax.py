"""What of a source file can change a result: its syntax tree less comments, docstrings, annotations and messages.

Where in doubt, something counts. So these stay: annotations of fields (they decide what YAML is turned into) and of
functions behind a decorator that may read them; calls inside messages (they may do something); the text of an error
that some handler keeps (a status, say); docstrings where a module reads `__doc__`; every text outside a message.
"""

import ast
import builtins
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

LOGGERS = {"log", "logger", "logging"}
LEVELS = {"debug", "info", "warning", "error", "exception", "critical", "log"}
PARSERS = {"ArgumentParser", "add_argument", "add_parser", "add_subparsers", "add_argument_group"}
HELP = {"help", "description", "epilog", "prog", "usage", "metavar"}
SPEAKERS = {("sys", "exit"), ("warnings", "warn"), ("parser", "error")}  # calls that show a text and return nothing
# Calls that only make text or look at a value.
HARMLESS = {
    "abs", "all", "any", "ascii", "enumerate", "float", "format", "getattr", "int", "isinstance", "join", "len", "list",
    "map", "max", "min", "one_line", "range", "repr", "round", "set", "sorted", "str", "sum", "tuple", "type", "zip",
}  # fmt: skip
# Decorators that never look at annotations.
PLAIN = {
    "abstractmethod", "cache", "cached_property", "classmethod", "contextmanager", "function", "intrinsic", "jit",
    "lru_cache", "njit", "override", "property", "setter", "staticmethod", "wraps",
}  # fmt: skip
# Modules of types, whose names are imported for annotations.
TYPING = {"collections.abc", "dkef.core.arrays", "numpy.typing", "types", "typing"}
BUILT_IN = {name for name, kind in vars(builtins).items() if isinstance(kind, type) and issubclass(kind, BaseException)}
ERRORS = {*BUILT_IN, "DkefError", "ConfigError"}  # their texts are messages also where they are not raised at once
SILENT = ast.Constant("a message")


@dataclass(frozen=True)
class Errors:
    """What a module has to do with errors, by the names of their classes."""

    bases: dict[str, tuple[str, ...]]  # of every class it defines
    kept: frozenset[str]  # those that it catches, and whose text it goes on to use
    called: frozenset[str]  # whatever it calls, error classes among it


def reduced(source: str, kept: frozenset[str] = frozenset()) -> ast.Module:
    """The syntax tree of a module as far as it can change a result; the text of errors in `kept` can."""
    without = _Reduction(kept, docstrings=False).of(ast.parse(source))
    if any(_name(node) in ("__doc__", "getdoc") for node in ast.walk(without)):
        return _Reduction(kept, docstrings=True).of(ast.parse(source))
    return without


def canonical_tree(node: Any) -> str:
    """A syntax tree as text, equal for equal trees, whatever the version of Python leaves empty."""
    if isinstance(node, ast.AST):
        if isinstance(node, ast.Constant):
            return f"{type(node.value).__name__}:{node.value!r}"
        fields = ((name, value) for name, value in ast.iter_fields(node) if value is not None and value != [])
        return f"{type(node).__name__}({','.join(f'{name}={canonical_tree(value)}' for name, value in fields)})"
    if isinstance(node, list):
        return f"[{','.join(map(canonical_tree, node))}]"
    return repr(node)


def imports(tree: ast.Module, package: str) -> frozenset[str]:
    """Modules that a reduced tree imports, at the top or inside functions; `package` is where relative names start."""
    named: set[str] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            named |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            above = package.split(".")[: len(package.split(".")) - node.level + 1] if node.level else []
            module = ".".join([*above, *([node.module] if node.module else [])])
            named |= {module} | {f"{module}.{alias.name}" for alias in node.names}
    return frozenset(named)


def errors(tree: ast.Module) -> Errors:
    """The error classes of a reduced tree."""
    classes = {node.name: node.bases for node in ast.walk(tree) if isinstance(node, ast.ClassDef)}
    bases = {name: tuple(filter(None, map(_name, parents))) for name, parents in classes.items()}
    handlers = [node for node in ast.walk(tree) if isinstance(node, ast.ExceptHandler) and node.name]
    kept = frozenset(name for handler in handlers if _keeps_text(handler) for name in _caught(handler.type, tree))
    called = frozenset(_name(node) for node in ast.walk(tree) if isinstance(node, ast.Call))
    return Errors(bases, kept, called)


def ancestors(name: str, bases: dict[str, tuple[str, ...]]) -> set[str]:
    """A class and everything it derives from, by name."""
    found, waiting = set(), [name]
    while waiting:
        name = waiting.pop()
        if name not in found:
            found.add(name)
            built_in = getattr(builtins, name, None)
            above = [kind.__name__ for kind in built_in.__mro__] if isinstance(built_in, type) else []
            waiting += [*above, *bases.get(name, ())]
    return found


def _keeps_text(handler: ast.ExceptHandler) -> bool:
    """Whether the caught error goes anywhere but into another error; its attributes are no text."""

    def uses(node: ast.AST) -> Iterator[ast.AST]:
        if isinstance(node, ast.Raise):
            return
        if isinstance(node, ast.Attribute) and node.attr != "args" and isinstance(node.value, ast.Name):
            return
        if isinstance(node, ast.Call) and _name(node.func) in ("isinstance", "type"):
            return
        if isinstance(node, ast.Name) and node.id == handler.name:
            yield node
        for child in ast.iter_child_nodes(node):
            yield from uses(child)

    return any(True for statement in handler.body for _ in uses(statement))


def _caught(kind: ast.expr | None, tree: ast.Module) -> Iterator[str]:
    """Names of the classes of an `except` clause; constants are looked up in their module."""
    if isinstance(kind, ast.Tuple):
        for entry in kind.elts:
            yield from _caught(entry.value if isinstance(entry, ast.Starred) else entry, tree)
    elif isinstance(kind, ast.Name) and kind.id.isupper():
        values = [
            node.value for node in tree.body
            if isinstance(node, ast.Assign) and [_name(target) for target in node.targets] == [kind.id]
        ]  # fmt: skip
        if len(values) == 1 and isinstance(values[0], ast.Tuple):
            yield from _caught(values[0], tree)
        else:  # from elsewhere: it may be anything
            yield "BaseException"
    else:
        yield _name(kind) or "BaseException"


def _name(node: ast.AST | None) -> str:
    """The last word of a name: `c` of a.b.c and of a.b.c(...)."""
    if isinstance(node, ast.Call):
        node = node.func
    return node.attr if isinstance(node, ast.Attribute) else node.id if isinstance(node, ast.Name) else ""


def _is_text(node: ast.expr) -> bool:
    """Whether an expression is certain to be text made on the spot."""
    if isinstance(node, ast.BinOp):
        return isinstance(node.op, ast.Add | ast.Mod) and (_is_text(node.left) or _is_text(node.right))
    if isinstance(node, ast.IfExp):
        return _is_text(node.body) and _is_text(node.orelse)
    if isinstance(node, ast.Call):
        return isinstance(node.func, ast.Attribute) and _is_text(node.func.value)
    return isinstance(node, ast.JoinedStr) or (isinstance(node, ast.Constant) and isinstance(node.value, str))


def _calls(node: ast.AST) -> list[ast.expr]:
    """What inside a message may do more than make text."""
    if isinstance(node, ast.Await | ast.Yield | ast.YieldFrom | ast.NamedExpr):
        return [node]
    if isinstance(node, ast.Call) and _name(node) not in HARMLESS:
        return [node]
    return [call for child in ast.iter_child_nodes(node) for call in _calls(child)]


def _silenced(node: ast.expr) -> ast.expr:
    calls = _calls(node)
    return ast.Tuple([SILENT, *calls], ast.Load()) if calls else SILENT


class _Reduction(ast.NodeTransformer):
    """Takes away what cannot change a result."""

    def __init__(self, kept: frozenset[str], docstrings: bool) -> None:
        self.kept, self.docstrings = kept, docstrings
        self.in_fields = False  # directly in a class whose annotations may be read

    def of(self, tree: ast.Module) -> ast.Module:
        tree = self.visit(tree)
        used = {node.id for node in ast.walk(tree) if isinstance(node, ast.Name)}
        return _WithoutTypes(used).visit(tree)  # type: ignore[no-any-return]

    def generic_visit(self, node: ast.AST) -> ast.AST:
        super().generic_visit(node)
        if getattr(node, "body", None) == []:
            node.body = [ast.Pass()]  # type: ignore[attr-defined]
        return node

    def visit_Expr(self, node: ast.Expr) -> Any:
        value = node.value
        if isinstance(value, ast.Constant):
            return node if self.docstrings and isinstance(value.value, str) else None
        if isinstance(value, ast.Call) and _logs(value):
            arguments = [*value.args, *(keyword.value for keyword in value.keywords)]
            return [ast.Expr(call) for argument in arguments for call in _calls(argument)]
        if isinstance(value, ast.Call) and _name(value) == "require" and value.args:
            value.args = [value.args[0], *(_silenced(entry) if _is_text(entry) else entry for entry in value.args[1:])]
        return self.generic_visit(node)

    def visit_Assert(self, node: ast.Assert) -> ast.AST:
        node.msg = None
        return self.generic_visit(node)

    def visit_Raise(self, node: ast.Raise) -> ast.AST:
        if isinstance(node.exc, ast.Call):
            self._silence(node.exc)
        return self.generic_visit(node)

    def visit_Call(self, node: ast.Call) -> ast.AST:
        name, receiver = _name(node), _name(node.func.value) if isinstance(node.func, ast.Attribute) else ""
        if name in ERRORS or (receiver, name) in SPEAKERS:
            self._silence(node)
        if name in PARSERS:
            node.keywords = [keyword for keyword in node.keywords if keyword.arg not in HELP]
        return self.generic_visit(node)

    def _silence(self, call: ast.Call) -> None:
        if _name(call) not in self.kept:
            call.args = [_silenced(entry) if _is_text(entry) else entry for entry in call.args]

    def visit_If(self, node: ast.If) -> Any:
        if _name(node.test) == "TYPE_CHECKING":
            return self.generic_visit(ast.Module(node.orelse, [])).body if node.orelse else None  # type: ignore[attr-defined]
        return self.generic_visit(node)

    def visit_ClassDef(self, node: ast.ClassDef) -> ast.AST:
        outside, self.in_fields = self.in_fields, bool(node.bases or node.keywords or node.decorator_list)
        self.generic_visit(node)
        self.in_fields = outside
        return node

    def visit_FunctionDef(self, node: ast.FunctionDef) -> ast.AST:
        return self._function(node)

    def visit_AsyncFunctionDef(self, node: ast.AsyncFunctionDef) -> ast.AST:
        return self._function(node)

    def _function(self, node: ast.FunctionDef | ast.AsyncFunctionDef) -> ast.AST:
        if all(_name(decorator) in PLAIN for decorator in node.decorator_list):
            node.returns = None
            for argument in (entry for entry in ast.walk(node.args) if isinstance(entry, ast.arg)):
                argument.annotation = None
        outside, self.in_fields = self.in_fields, False
        self.generic_visit(node)
        self.in_fields = outside
        _silence_unused_texts(node)
        return node

    def visit_AnnAssign(self, node: ast.AnnAssign) -> Any:
        if self.in_fields:
            return self.generic_visit(node)
        return self.visit(ast.Assign([node.target], node.value)) if node.value is not None else None


class _WithoutTypes(ast.NodeTransformer):
    """Takes imported names of types away that nothing uses any more."""

    def __init__(self, used: set[str]) -> None:
        self.used = used

    def visit_ImportFrom(self, node: ast.ImportFrom) -> ast.ImportFrom | None:
        if node.module not in TYPING:
            return node
        node.names = [alias for alias in node.names if (alias.asname or alias.name) in self.used]
        return node if node.names else None


def _logs(call: ast.Call) -> bool:
    """Whether a call is one of log.info(...), self.log.warning(...) and the like."""
    if not (isinstance(call.func, ast.Attribute) and call.func.attr in LEVELS):
        return False
    return _name(call.func.value).lower().lstrip("_") in LOGGERS


def _silence_unused_texts(function: ast.AST) -> None:
    """Texts in variables that only messages have used."""
    nodes = list(ast.walk(function))
    used = {node.id for node in nodes if isinstance(node, ast.Name) and not isinstance(node.ctx, ast.Store)}
    used |= {name for node in nodes if isinstance(node, ast.Global | ast.Nonlocal) for name in node.names}
    if used & {"locals", "vars", "eval", "exec"}:
        return
    for node in _own_statements(function):
        if not (isinstance(node, ast.Assign) and _is_text(node.value)):
            continue
        if all(isinstance(target, ast.Name) and target.id not in used for target in node.targets):
            node.value = _silenced(node.value)


def _own_statements(function: ast.AST) -> Iterator[ast.AST]:
    """Nodes of a function less those of classes in it, whose variables are attributes."""
    for child in ast.iter_child_nodes(function):
        if not isinstance(child, ast.ClassDef):
            yield child
            yield from _own_statements(child)
