"""Arithmetic over the dimensions of a run: `2 * L * m / pp`. Integers only, and nothing but arithmetic."""

from __future__ import annotations

import ast
import difflib
import operator
from collections.abc import Callable, Mapping

_LONGEST = 200


class CannotCompute(ValueError):
    """What cannot be computed; the message says why."""


def _exact(a: int, b: int) -> int:
    if a % b:
        raise CannotCompute(f"{a} / {b} leaves a rest; `//` rounds down")
    return a // b


_BINARY: Mapping[type[ast.operator], Callable[[int, int], int]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: _exact,
    ast.FloorDiv: operator.floordiv,
    ast.Mod: operator.mod,
}


def evaluate(expression: str, names: Mapping[str, int]) -> int:
    """The value; `/` must divide without a rest. Raises `CannotCompute`."""
    if len(expression) > _LONGEST:
        raise CannotCompute(f"is longer than {_LONGEST} characters")
    try:
        tree = ast.parse(expression.strip(), mode="eval")
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        raise CannotCompute(f"`{expression}` is not arithmetic") from None
    try:
        return _value(tree.body, names)
    except ZeroDivisionError:
        raise CannotCompute(f"`{expression}` divides by zero") from None


def _value(node: ast.expr, names: Mapping[str, int]) -> int:
    if isinstance(node, ast.Constant) and type(node.value) is int:
        return node.value
    if isinstance(node, ast.Name):
        if node.id in names:
            return names[node.id]
        near = [name for name in names if name.lower() == node.id.lower()]
        near += difflib.get_close_matches(node.id, names, n=1, cutoff=0.5)
        known = ", ".join(f"{name}={value}" for name, value in sorted(names.items()))
        hint = f"did you mean {near[0]}? " if near else ""
        raise CannotCompute(f"the run has no {node.id}; {hint}it has {known}")
    if isinstance(node, ast.BinOp) and (operation := _BINARY.get(type(node.op))):
        return operation(_value(node.left, names), _value(node.right, names))
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
        return -_value(node.operand, names)
    raise CannotCompute(f"`{ast.unparse(node)}` is not arithmetic: integers, names, + - * / // % and brackets")
