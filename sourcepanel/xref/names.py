"""Names: which binding a name means where it stands, through imports and star imports to the end."""

from __future__ import annotations

import ast
import builtins
from collections.abc import Iterable, Sequence
from typing import Protocol

from sourcepanel.xref.modules import Module, Modules
from sourcepanel.xref.scopes import Binding, Function, Scope, decorators
from sourcepanel.xref.values import NO_SITES, OUTSIDE_SITES, UNKNOWN_SITES, Sites, Values

_BUILTINS = frozenset(dir(builtins)) | {"__file__", "__path__", "__class__", "__builtins__", "reveal_type"}
_STATEMENTS = frozenset({"def", "class", "import"})
"""Bindings that replace what stood before; several plain assignments are one variable."""


class Evaluator(Protocol):
    """What names and classes need of the inference that is built on them."""

    @property
    def names(self) -> Names:
        """The names of the snapshot."""
        ...

    def values(self, expr: ast.expr, scope: Scope) -> Values:
        """What an expression can be."""
        ...


class Names:
    """Looks names up; every answer is remembered."""

    def __init__(self, modules: Modules) -> None:
        self.modules = modules
        self._members: dict[tuple[Module, str], Sites] = {}
        self._busy: set[tuple[Module, str]] = set()
        self._cut = False

    def find(self, name: str, scope: Scope, *, line: int) -> Sites:
        """What a name means that stands in this scope on this line."""
        here: Scope | None = scope
        while here:
            if name in here.globals:
                here = here.module
            # What a class binds, its methods do not see.
            if here.kind != "class" or here is scope:
                bound = self._seen(here, name, line=line if here is scope else 0)
                if bound:
                    return self.follow(bound, name=name)
            here = here.parent
        return OUTSIDE_SITES if name in _BUILTINS or self._starred_outside(scope.module) else UNKNOWN_SITES

    def _seen(self, scope: Scope, name: str, *, line: int) -> Sequence[Binding]:
        bound = self.bound(scope, name)
        # Statements of modules and classes run in order; a function's are taken together.
        before = [b for b in bound if b.effect < line] if line and scope.kind != "function" else bound
        return before if before or scope.kind == "class" else bound

    def bound(self, scope: Scope, name: str) -> list[Binding]:
        """The bindings of a name in one scope, in order, stars included."""
        own = scope.bindings.get(name, [])
        if not scope.stars or name.startswith("__"):
            return own
        stars = [star for star in scope.stars if self._gives(star, name)]
        return sorted([*own, *stars], key=lambda b: b.line) if stars else own

    def follow(self, bound: Iterable[Binding], *, name: str = "") -> Sites:
        """The ends of these bindings: those that are imports are followed."""
        result, own = NO_SITES, NO_SITES
        for binding in live(bound):
            if binding.kind == "import":
                result |= self._end(binding, name)
            else:
                own |= Sites((binding,))
        # What takes the place of a package that is not installed is a stand-in, not what the name means.
        stands_in = result.outside and all(getattr(item, "kind", "") == "value" for item in own.items)
        return result if stands_in else result | own

    def _end(self, binding: Binding, name: str) -> Sites:
        level, text = binding.module
        module = self.modules.resolve(level, text, importer=binding.scope.path)
        if module is None:
            # A relative import never leaves the package: its module is missing here.
            return OUTSIDE_SITES if not level else UNKNOWN_SITES
        if binding.name == "*":
            computed = module.scope is not None and module.scope.exports and exported(module.scope) is None
            return self.member(module, name) | (UNKNOWN_SITES if computed else NO_SITES)
        return self.member(module, binding.member) if binding.member else Sites((module,))

    def member(self, module: Module, name: str) -> Sites:
        """What `module.name` means."""
        key = module, name
        if key in self._members:
            return self._members[key]
        if key in self._busy:
            # Modules that import each other: this way round adds nothing.
            self._cut = True
            return NO_SITES
        self._busy.add(key)
        found = self._member(module, name)
        self._busy.discard(key)
        # What was asked within a circle may have seen only half of it; the first question has seen all.
        self._cut = self._cut and bool(self._busy)
        if not self._cut:
            self._members[key] = found
        return found

    def _member(self, module: Module, name: str) -> Sites:
        bound = self.bound(module.scope, name) if module.scope else []
        found = self.follow(bound, name=name)
        if found.items or found.outside:
            return found
        if below := self.modules.below(module, name):
            return Sites((below,))
        if name in ("__name__", "__file__", "__doc__", "__path__", "__dict__"):
            return OUTSIDE_SITES
        if module.scope and self._starred_outside(module.scope):
            return OUTSIDE_SITES
        return UNKNOWN_SITES

    def _gives(self, star: Binding, name: str) -> bool:
        """Whether this star import brings the name."""
        level, text = star.module
        module = self.modules.resolve(level, text, importer=star.scope.path)
        if module is None or module.scope is None:
            return False
        listed = exported(module.scope)
        if listed is not None and name not in listed:
            return False
        if listed is None and name.startswith("_"):
            return False
        found = self.member(module, name)
        if listed is None and name not in module.scope.bindings and all(isinstance(i, Module) for i in found.items):
            # Without `__all__` a submodule comes along only where the package has imported it.
            return found.outside
        return bool(found.items or found.outside)

    def _starred_outside(self, scope: Scope) -> bool:
        """Whether the file imports everything from another package."""
        return any(self.modules.resolve(*star.module, importer=scope.path) is None for star in scope.stars)


def live(bound: Iterable[Binding]) -> list[Binding]:
    """The bindings that a reader of the name may meet, of all in order."""
    found: list[Binding] = []
    for binding in bound:
        if _goes_on(binding, found):
            continue
        if not binding.conditional and (binding.kind in _STATEMENTS or any(b.kind in _STATEMENTS for b in found)):
            found.clear()
        found.append(binding)
    rest = [b for b in found if not is_none(b)]
    return rest or found


def _goes_on(binding: Binding, found: list[Binding]) -> bool:
    """Whether it only completes what stands before: an overload, a property's setter, `f = wrap(f)`."""
    same = [b for b in found if b.kind == "def"]
    if binding.kind == "def":
        assert isinstance(binding.node, Function)
        before = [b for b in same if "overload" in decorators(b.node)]
        for b in before:
            found.remove(b)
        marks = [d.value for d in binding.node.decorator_list if isinstance(d, ast.Attribute)]
        return bool(same) and any(isinstance(mark, ast.Name) and mark.id == binding.name for mark in marks)
    if binding.kind == "value" and found and found[-1].kind in _STATEMENTS and binding.expr is not None:
        return any(isinstance(n, ast.Name) and n.id == binding.name for n in ast.walk(binding.expr))
    return False


def is_none(binding: Binding) -> bool:
    """Whether it only says that there is nothing yet: `name = None`."""
    expr = binding.expr
    return binding.kind == "value" and not binding.steps and isinstance(expr, ast.Constant) and expr.value is None


def exported(scope: Scope) -> frozenset[str] | None:
    """The names of `__all__`; None where there is none, or where it is computed."""
    names: set[str] = set()
    for expr in scope.exports:
        if not isinstance(expr, ast.List | ast.Tuple):
            return None
        for part in expr.elts:
            if not isinstance(part, ast.Constant) or not isinstance(part.value, str):
                return None
            names.add(part.value)
    return frozenset(names) if scope.exports else None
