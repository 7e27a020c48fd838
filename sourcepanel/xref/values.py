"""What an expression can stand for, as far as the index needs to know."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal

from sourcepanel.xref.modules import Module
from sourcepanel.xref.scopes import Binding, Scope


@dataclass(frozen=True, slots=True)
class Value:
    """One thing an expression can be."""

    kind: Literal["module", "class", "instance", "super", "function", "outside", "elements", "entries", "items"]
    of: Module | Scope | None = None
    """The module, the class (its scope) or the function (its scope)."""
    parts: tuple[Values, ...] = ()
    """Of `elements` (list, set, iterator) their common value; of `entries` (dict) that of its values; of `items`
    (tuple) each."""


@dataclass(frozen=True, slots=True)
class Values:
    """All that an expression can be. `None` is left out: it has no attributes of its own to lead to."""

    items: tuple[Value, ...] = ()
    complete: bool = True
    """False when it can also be something else."""

    def __or__(self, other: Values) -> Values:
        return Values(tuple(dict.fromkeys(self.items + other.items)), self.complete and other.complete)

    @property
    def outside(self) -> bool:
        """Whether it is for certain nothing of the snapshot."""
        return self.complete and bool(self.items) and all(value.kind == "outside" for value in self.items)


@dataclass(frozen=True, slots=True)
class Sites:
    """Where a name or attribute gets its meaning: bindings and modules, imports followed to their ends."""

    items: tuple[Binding | Module, ...] = ()
    complete: bool = True
    """False when it can also be something that is not known."""
    outside: bool = False
    """Whether it can be something of another package."""

    def __or__(self, other: Sites) -> Sites:
        items = tuple(dict.fromkeys(self.items + other.items))
        return Sites(items, self.complete and other.complete, self.outside or other.outside)


NOTHING = Values()
UNKNOWN = Values(complete=False)
OUTSIDE = Values((Value("outside"),))

NO_SITES = Sites()
UNKNOWN_SITES = Sites(complete=False)
OUTSIDE_SITES = Sites(outside=True)


def union(values: Iterable[Values]) -> Values:
    """All of them together."""
    result = NOTHING
    for value in values:
        result |= value
    return result
