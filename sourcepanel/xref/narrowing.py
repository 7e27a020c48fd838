"""What `isinstance` tells of a name or attribute for the code that follows it."""

from __future__ import annotations

import ast
from collections.abc import Sequence

Known = dict[str, ast.expr]
"""`name` or `name.attribute` → the class it is an instance of, or a tuple of classes."""


def holds(test: ast.expr) -> Known:
    """What is known where the test is true."""
    if isinstance(test, ast.BoolOp) and isinstance(test.op, ast.And):
        return {name: cls for part in test.values for name, cls in holds(part).items()}
    called = isinstance(test, ast.Call) and isinstance(test.func, ast.Name) and test.func.id == "isinstance"
    if called and isinstance(test, ast.Call) and len(test.args) == 2 and (name := path(test.args[0])):
        return {name: test.args[1]}
    return {}


def fails(test: ast.expr) -> Known:
    """What is known where the test is false: `if not isinstance(x, A): return`."""
    if isinstance(test, ast.BoolOp) and isinstance(test.op, ast.Or):
        return {name: cls for part in test.values for name, cls in fails(part).items()}
    return holds(test.operand) if isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not) else {}


def after(statement: ast.stmt) -> Known:
    """What is known behind a statement of the same block."""
    if isinstance(statement, ast.Assert):
        return holds(statement.test)
    return fails(statement.test) if isinstance(statement, ast.If) and leaves(statement.body) else {}


def leaves(block: Sequence[ast.stmt]) -> bool:
    """Whether nothing behind the block runs after it."""
    return bool(block) and isinstance(block[-1], ast.Return | ast.Raise | ast.Continue | ast.Break)


def path(expr: ast.expr) -> str:
    """`a.b.c`; empty for anything but names and attributes."""
    if isinstance(expr, ast.Name):
        return expr.id
    if isinstance(expr, ast.Attribute) and (before := path(expr.value)):
        return f"{before}.{expr.attr}"
    return ""
