"""What lists, tuples and dictionaries hold."""

from __future__ import annotations

import ast

from sourcepanel.xref.scopes import Step
from sourcepanel.xref.values import NOTHING, OUTSIDE, UNKNOWN, Value, Values, union

TORCH_LISTS = frozenset({"ModuleList", "Sequential"})
"""Containers of torch that models are built of; they hold what they are given."""


def elements(held: Values) -> Values:
    """A list, set or iterator of these."""
    return Values((Value("elements", parts=(held,)),))


def entries(held: Values) -> Values:
    """A dictionary with these as values."""
    return Values((Value("entries", parts=(held,)),))


def items(parts: tuple[Values, ...]) -> Values:
    """A tuple of these."""
    return Values((Value("items", parts=parts),))


def grown(values: Values, by: Values) -> Values:
    """Containers into which these were put, too."""
    more = (
        v if v.kind not in ("elements", "entries") else Value(v.kind, parts=(v.parts[0] | by,)) for v in values.items
    )
    return Values(tuple(more), values.complete)


def take(value: Value, step: Step) -> Values:
    """What a target gets of a container: each element, or the item of this number."""
    if value.kind == "outside":
        return OUTSIDE
    if isinstance(step, int) and value.kind == "items":
        return value.parts[step] if step < len(value.parts) else UNKNOWN
    if step != "enter" and step != "star" and value.kind in ("elements", "items"):
        return union(value.parts)
    return UNKNOWN


def subscript(value: Value, index: ast.expr) -> Values:
    """`container[index]`; unknown for anything else."""
    if value.kind in ("outside", "class"):
        # `Class[int]` is the class still.
        return Values((value,))
    if value.kind in ("elements", "items") and isinstance(index, ast.Slice):
        return Values((value,)) if value.kind == "elements" else elements(union(value.parts))
    if value.kind == "items":
        number = _number(index)
        if number is None:
            return union(value.parts)
        return value.parts[number] if -len(value.parts) <= number < len(value.parts) else UNKNOWN
    return union(value.parts) if value.kind in ("elements", "entries") else UNKNOWN


def _number(index: ast.expr) -> int | None:
    try:
        number = ast.literal_eval(index)
    except ValueError:
        return None
    return number if isinstance(number, int) else None


def of_dict(held: Values, method: str) -> Values | None:
    """What a dictionary with such values gives; None for a method that is not one of these."""
    if method in ("get", "pop", "setdefault"):
        return held
    if method == "values":
        return elements(held)
    if method == "items":
        return elements(items((UNKNOWN, held)))
    return entries(held) if method == "copy" else None


def of_builtin(name: str, given: list[Values]) -> Values | None:
    """What a builtin function that goes over its arguments gives; None for any other."""
    if name in ("list", "tuple", "set", "frozenset", "sorted", "reversed", "iter"):
        return elements(_each(given[0]))
    if name == "filter":
        return elements(_each(given[-1]))
    if name in ("next", "min", "max"):
        return _each(given[0]) if len(given) == 1 or name == "next" else union(given)
    if name == "enumerate":
        return elements(items((OUTSIDE, _each(given[0]))))
    return elements(items(tuple(map(_each, given)))) if name == "zip" else None


def of_iterables(name: str, given: list[tuple[Values, bool]]) -> Values:
    """What torch's lists of modules and `itertools.chain` hold; with each argument whether it had a star."""
    parts = [_each(values) if starred else values for values, starred in given]
    if name == "Sequential" and not any(starred for _, starred in given):
        return elements(union(parts))
    return elements(union(map(_each, parts)))


def holds_own(values: Values) -> bool:
    """Whether something of the snapshot is among these, or in what they hold."""
    return any(value.of is not None or any(map(holds_own, value.parts)) for value in values.items)


def _each(values: Values) -> Values:
    return union([NOTHING if values.complete else UNKNOWN, *(take(value, "iter") for value in values.items)])
