"""Edits of every sentence in a folder of modules, kind by kind, as somebody might make them who improves the words."""

import ast
from pathlib import Path
from typing import Any

EDITED = "Edited: "
RESULTS = ("UnavailableError", "NotFiniteError", "BoundError")  # their texts become statuses in tables
KINDS = ("comment", "docstring", "annotation", "error message", "log message", "help text")


def edit_all(folder: Path, kind: str) -> int:
    """Edit every sentence of a kind in all modules below a folder; returns how many there were."""
    edits = 0
    for path in sorted(folder.rglob("*.py")):
        text = path.read_text(encoding="utf-8")
        if kind == "comment":
            path.write_text(f"# {EDITED}\n{text}\n# and at the end\n", encoding="utf-8")
            edits += 1
            continue
        editor = _Editor(kind)
        tree = editor.visit(ast.parse(text))
        if editor.edits:  # unparsing loses comments and layout, too
            path.write_text(ast.unparse(ast.fix_missing_locations(tree)), encoding="utf-8")
        edits += editor.edits
    return edits


class _Editor(ast.NodeTransformer):
    def __init__(self, kind: str) -> None:
        self.kind, self.edits = kind, 0

    def _told(self, node: Any) -> Any:
        """The text with more words in front, if it is one."""
        if isinstance(node, ast.JoinedStr):
            self.edits += 1
            return ast.JoinedStr([ast.Constant(EDITED), *node.values])
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            self.edits += 1
            return ast.Constant(EDITED + node.value)
        return node

    def _documented(self, node: Any) -> Any:
        if self.kind == "docstring" and ast.get_docstring(node) is not None:
            node.body[0].value = self._told(node.body[0].value)
        return self.generic_visit(node)

    def visit_Module(self, node: ast.Module) -> Any:
        return self._documented(node)

    def visit_ClassDef(self, node: ast.ClassDef) -> Any:
        return self._documented(node)

    def visit_FunctionDef(self, node: ast.FunctionDef) -> Any:
        # Other decorators may read annotations.
        plain = {"property", "classmethod", "staticmethod"}
        if self.kind == "annotation" and {ast.unparse(entry) for entry in node.decorator_list} <= plain:
            for argument in node.args.args:
                if argument.annotation is not None:
                    argument.annotation, self.edits = ast.Constant("object"), self.edits + 1
        return self._documented(node)

    def visit_Raise(self, node: ast.Raise) -> Any:
        told = isinstance(node.exc, ast.Call) and ast.unparse(node.exc.func) not in RESULTS
        if self.kind == "error message" and told:
            node.exc.args = [self._told(argument) for argument in node.exc.args]
        return self.generic_visit(node)

    def visit_Call(self, node: ast.Call) -> Any:
        name = ast.unparse(node.func)
        if self.kind == "log message" and name.endswith(("log.info", "log.warning")):
            node.args = [self._told(argument) for argument in node.args]
        if self.kind == "help text" and name.endswith(("add_argument", "ArgumentParser")):
            for keyword in node.keywords:
                if keyword.arg in ("help", "description"):
                    keyword.value = self._told(keyword.value)
        return self.generic_visit(node)
