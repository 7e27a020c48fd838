"""Annotations written as strings, turned into the expressions that they are."""

from __future__ import annotations

import ast
from collections.abc import Sequence
from typing import cast

from sourcepanel.xref.scopes import last_name


def parse_annotations(expr: ast.expr, *, lines: Sequence[str]) -> ast.expr:
    """The annotation with every string in it parsed, save those of `Literal[…]` and `Annotated[…, …]`.

    A name from a string stands where the string has it. Where that cannot be told (escapes, several lines) its
    line is 0: it still has a meaning, but no place.
    """
    return cast("ast.expr", _Parser(lines).visit(expr))


class _Parser(ast.NodeTransformer):
    def __init__(self, lines: Sequence[str]) -> None:
        self._lines = lines

    def visit_Subscript(self, node: ast.Subscript) -> ast.expr:
        name = last_name(node.value)
        if name == "Annotated" and isinstance(node.slice, ast.Tuple) and node.slice.elts:
            node.slice.elts[0] = self.visit(node.slice.elts[0])
        elif name != "Literal":
            self.generic_visit(node)
        return node

    def visit_Call(self, node: ast.Call) -> ast.expr:
        return node

    def visit_Constant(self, node: ast.Constant) -> ast.expr:
        if not isinstance(node.value, str):
            return node
        try:
            parsed = ast.parse(node.value.strip(), mode="eval").body
        except (SyntaxError, ValueError, RecursionError, MemoryError):
            return node
        shift = self._shift(node, node.value)
        for child in ast.walk(parsed):
            if isinstance(child, ast.expr):
                child.lineno = child.end_lineno = node.lineno if shift is not None else 0
                child.col_offset += shift or 0
                child.end_col_offset = (child.end_col_offset or 0) + (shift or 0)
        # A string within the string is an annotation again; a string alone would go on for ever.
        return parsed if isinstance(parsed, ast.Constant) else cast("ast.expr", self.visit(parsed))

    def _shift(self, node: ast.Constant, value: str) -> int | None:
        """Bytes from the start of the line to the text of a plain, one-line string."""
        if not node.lineno or node.lineno != node.end_lineno or "\n" in value:
            return None
        literal = self._lines[node.lineno - 1].encode()[node.col_offset : node.end_col_offset].decode()
        for quotes in ('"""', "'''", '"', "'"):
            if literal == f"{quotes}{value}{quotes}":
                blanks = len(value) - len(value.lstrip())
                return node.col_offset + len(quotes) + blanks
        return None
