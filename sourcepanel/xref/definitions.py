"""From bindings to definitions: places, signatures and first lines of documentation."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Mapping

from sourcepanel.source import SourceFile
from sourcepanel.xref.model import Definition, DefinitionKind
from sourcepanel.xref.modules import Module
from sourcepanel.xref.scopes import Binding, Function, Scope

_CUT = 80
"""Characters of a variable's value that are shown."""
_BLOCKS = ast.For | ast.AsyncFor | ast.With | ast.AsyncWith | ast.Match | ast.If | ast.While | ast.Try


class Definitions:
    """Makes the definitions of a snapshot; every answer is remembered."""

    def __init__(self, files: Mapping[str, SourceFile]) -> None:
        self._files = files
        self._made: dict[Binding, Definition] = {}

    def of(self, site: Binding | Module) -> Definition:
        """The definition of a binding for which `defines` holds, or of a module that has a file."""
        if isinstance(site, Module):
            return Definition(site.path, "", "module")
        if site not in self._made:
            self._made[site] = self._of_statement(site) if site.inner else self._of_variable(site)
        return self._made[site]

    def _of_statement(self, binding: Binding) -> Definition:
        node, inner = binding.node, binding.inner
        assert inner is not None and isinstance(node, Function | ast.ClassDef)
        path, start = inner.path, min([node.lineno, *(d.lineno for d in node.decorator_list)])
        method = binding.owner.kind == "class"
        kind: DefinitionKind = "class" if inner.kind == "class" else "method" if method else "function"
        column = self.column(path, node.lineno, node.col_offset)
        head = re.match(r"(?:async\s+)?(?:def|class)\s+", self.line(path, node.lineno)[column:])
        column += len(head[0]) if head else 0
        symbol = next((s for s in self._files[path].symbols.get(inner.name) if s.line == node.lineno), None)
        said = (symbol.signature, symbol.doc) if symbol else ("", "")
        return Definition(path, inner.name, kind, start, node.lineno, node.end_lineno or node.lineno, column, *said)

    def _of_variable(self, binding: Binding) -> Definition:
        """One definition for all assignments of a variable: its declaration, or the first."""
        owner, name = binding.owner, binding.name
        every = [b for b in owner.bindings.get(name, ()) if b.kind == "value"] + owner.attributes.get(name, [])
        best = binding if binding.kind == "option" else min(every, key=_rank)
        node, path, statement = best.node, owner.path, best.statement
        line, offset = best.line, int(getattr(node, "col_offset", 0))
        if isinstance(node, ast.Attribute):
            line, offset = node.end_lineno or 0, (node.end_col_offset or 0) - len(name.encode())
        start, end = line, line
        if statement and not isinstance(statement, _BLOCKS):
            start, end = statement.lineno, statement.end_lineno or line
        kind: DefinitionKind = "attribute" if best.kind == "attribute" else "variable"
        full = ".".join(filter(None, [owner.name, name]))
        if best.kind == "option" and isinstance(node, ast.Constant):
            kind, full = "option", str(node.value)
        column = self.column(path, line, offset)
        return Definition(path, full, kind, start, line, end, column, _written(best), best.doc)

    def line(self, path: str, line: int) -> str:
        """The text of a line; empty where there is none."""
        lines = self._files[path].lines
        return lines[line - 1] if 0 < line <= len(lines) else ""

    def column(self, path: str, line: int, offset: int) -> int:
        """Characters, where Python counts the bytes of a text without byte order mark."""
        text = self.line(path, line)
        mark = "\ufeff" if line == 1 and text.startswith("\ufeff") else ""
        return len(text.removeprefix(mark).encode()[:offset].decode(errors="ignore")) + len(mark)


def scopes(scope: Scope) -> Iterator[Scope]:
    """A scope and all classes and functions in it."""
    yield scope
    for bound in list(scope.bindings.values()):
        for binding in bound:
            if binding.inner:
                yield from scopes(binding.inner)


def defines(binding: Binding) -> bool:
    """Whether it is something a link can lead to: no parameter, and no variable of a function."""
    if binding.inner or binding.kind in ("attribute", "option"):
        return True
    return binding.kind == "value" and binding.owner.kind != "function"


def _rank(binding: Binding) -> tuple[bool, int, int]:
    """The declaration first, then the body of the module or class, then `__init__`, then any other function."""
    if binding.kind == "value":
        place = 0 if binding.scope is binding.owner else 2
    else:
        place = 1 if getattr(binding.scope.node, "name", "") == "__init__" else 2
    return binding.annotation is None, place, binding.line


def _written(binding: Binding) -> str:
    """`: int = 4`, as far as it is short."""
    declared = f": {ast.unparse(binding.annotation)}" if binding.annotation else ""
    value = f" = {ast.unparse(binding.expr)}" if binding.expr and not binding.steps else ""
    text = " ".join((declared + value).split())
    return text if len(text) <= _CUT else text[: _CUT - 1] + "…"
