"""Classes: the order in which Python looks for an attribute, and what it finds there."""

from __future__ import annotations

import ast
from collections import defaultdict
from collections.abc import Sequence
from typing import Literal

from sourcepanel.xref.names import Evaluator, live
from sourcepanel.xref.scopes import Scope, last_name
from sourcepanel.xref.values import NO_SITES, OUTSIDE_SITES, UNKNOWN_SITES, Sites

_BARE = frozenset({"object", "ABC", "Generic", "Protocol"})
"""Bases of the standard library that bring no attribute a reader would look for."""

Entry = Scope | Literal["outside", "unknown"]
"""A class of the snapshot, or that there is a base whose attributes nobody here knows."""


class Classes:
    """Method resolution orders and members of all classes."""

    def __init__(self, inference: Evaluator) -> None:
        self._inference = inference
        self._orders: dict[Scope, tuple[Entry, ...]] = {}
        self._busy: set[Scope] = set()
        self.children: dict[Scope, list[Scope]] = defaultdict(list)
        """Class → its direct subclasses; complete once `learn` has seen all classes."""

    def learn(self, classes: Sequence[Scope]) -> None:
        """Tell of all classes, so that subclasses are known."""
        for cls in classes:
            for base in self._bases(cls):
                if isinstance(base, Scope) and cls not in self.children[base]:
                    self.children[base].append(cls)

    def below(self, cls: Scope) -> list[Scope]:
        """All subclasses, near ones first."""
        found: dict[Scope, None] = {}
        queue = list(self.children.get(cls, ()))
        while queue:
            child = queue.pop(0)
            if child not in found and child is not cls:
                found[child] = None
                queue += self.children.get(child, ())
        return list(found)

    def order(self, cls: Scope) -> tuple[Entry, ...]:
        """The method resolution order (C3), the class itself first."""
        if cls not in self._orders:
            if cls in self._busy:
                return ("unknown",)
            self._busy.add(cls)
            bases = self._bases(cls)
            lines: list[list[Entry]] = []
            for base in bases:
                lines.append(list(self.order(base)) if isinstance(base, Scope) else [base])
            self._orders[cls] = (cls, *_merge([*lines, list(bases)]))
            self._busy.discard(cls)
        return self._orders[cls]

    def _bases(self, cls: Scope) -> list[Entry]:
        node = cls.node
        found: list[Entry] = []
        if not isinstance(node, ast.ClassDef) or cls.parent is None:
            return found
        for base in node.bases:
            meant = self._inference.values(base, cls.parent)
            own = [v.of for v in meant.items if v.kind == "class" and isinstance(v.of, Scope) and v.of is not cls]
            found += own
            if meant.outside:
                found += [] if last_name(base) in _BARE else ["outside"]
            elif not meant.complete or len(own) != len(meant.items):
                found.append("unknown")
            elif len(own) > 1:
                # One of several: which one is not known.
                found.insert(len(found) - len(own), "unknown")
        return found

    def member(self, cls: Scope, name: str, *, kind: str) -> Sites:
        """Where an attribute of the class, of an instance, or of `super()` in the class is defined."""
        if name.startswith("__") and not name.endswith("__"):
            # Python adds the class's name to it: no other class has this attribute.
            return self._search([cls], name, instance=kind != "class")
        found = self._search(self.order(cls)[1 if kind == "super" else 0 :], name, instance=kind != "class")
        if kind == "super":
            # In a subclass with more bases, `super()` may lead elsewhere.
            for child in self.below(cls):
                order = self.order(child)
                if cls in order:
                    found |= self._search(order[order.index(cls) + 1 :], name, instance=True)
        return found

    def _search(self, order: Sequence[Entry], name: str, *, instance: bool) -> Sites:
        before = NO_SITES
        for entry in order:
            if not isinstance(entry, Scope):
                # What this base has nobody knows; what comes after it may be hidden.
                before |= OUTSIDE_SITES if entry == "outside" else UNKNOWN_SITES
                continue
            found = self.own(entry, name, instance=instance)
            if found.items or found.outside:
                return before | found
        if before.outside or not before.complete:
            return before
        return OUTSIDE_SITES if name.startswith("__") and name.endswith("__") else UNKNOWN_SITES

    def own(self, cls: Scope, name: str, *, instance: bool) -> Sites:
        """What the class itself says of the attribute; empty where it says nothing."""
        body = self._inference.names.follow(live(cls.bindings.get(name, ())), name=name)
        set_in_methods = [b for b in cls.attributes.get(name, ()) if instance or b.shared]
        if not body.items and not body.outside:
            return Sites(tuple(set_in_methods))
        if set_in_methods and not all(getattr(item, "kind", "") == "value" for item in body.items):
            # A method that an instance may replace.
            return body | UNKNOWN_SITES
        return body if not set_in_methods else body | Sites(tuple(set_in_methods))


def _merge(lines: list[list[Entry]]) -> list[Entry]:
    """C3; where no order is consistent (Python would refuse the class) the bases in order of depth."""
    result: list[Entry] = []
    lines = [line for line in lines if line]
    while lines:
        for line in lines:
            head = line[0]
            if not any(head in other[1:] for other in lines) or not isinstance(head, Scope):
                break
        else:
            return list(dict.fromkeys([*result, *(entry for line in lines for entry in line)]))
        result.append(head)
        lines = [rest for line in lines if (rest := line[1:] if line[0] == head else line)]
    return result
