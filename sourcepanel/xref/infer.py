"""What expressions stand for: just enough to know the class of an object, and never a guess.

An answer is the union over everything that can be assigned; what cannot be read makes it incomplete, and an
incomplete answer never makes a certain link.
"""

from __future__ import annotations

import ast
from collections.abc import Sequence

from sourcepanel.xref.annotations import Annotations
from sourcepanel.xref.classes import Classes
from sourcepanel.xref.containers import (
    TORCH_LISTS,
    elements,
    entries,
    grown,
    holds_own,
    items,
    of_builtin,
    of_dict,
    of_iterables,
    subscript,
    take,
)
from sourcepanel.xref.modules import Module, Modules
from sourcepanel.xref.names import Names
from sourcepanel.xref.scopes import Binding, Function, Scope, Step, decorators, last_name, parameters
from sourcepanel.xref.values import (
    NO_SITES,
    NOTHING,
    OUTSIDE,
    OUTSIDE_SITES,
    UNKNOWN,
    UNKNOWN_SITES,
    Sites,
    Value,
    Values,
    union,
)  # fmt: skip

_DEPTH = 60
"""Nested questions after which an expression counts as unknown."""
_CLASSES_OF_METHODS = frozenset({"classmethod", "__new__", "__init_subclass__", "__class_getitem__"})


class Inference:
    """Answers about expressions of a whole snapshot; every answer is remembered."""

    def __init__(self, modules: Modules) -> None:
        self.names = Names(modules)
        self.classes = Classes(self)
        self.annotations = Annotations(self)
        self._values: dict[tuple[ast.expr, Scope], Values] = {}
        self._bindings: dict[Binding, Values] = {}
        self._calls: dict[Scope, Values] = {}
        self._busy: set[object] = set()

    # Expressions

    def values(self, expr: ast.expr, scope: Scope) -> Values:
        """What the expression can be where it stands."""
        key = expr, scope
        if key not in self._values:
            if key in self._busy or len(self._busy) > _DEPTH:
                return UNKNOWN
            self._busy.add(key)
            self._values[key] = self._evaluate(expr, scope)
            self._busy.discard(key)
        return self._values[key]

    def _evaluate(self, expr: ast.expr, scope: Scope) -> Values:
        if (told := scope.module.narrowed.get(expr)) is not None:
            return self.annotations.of_classes(*told)
        match expr:
            case ast.Name():
                return self._from_sites(self.names.find(expr.id, scope, line=expr.lineno))
            case ast.Attribute():
                return self._attribute(self.values(expr.value, scope), expr.attr)
            case ast.Call():
                return self._call(expr, scope)
            case ast.Constant():
                return NOTHING if expr.value is None else OUTSIDE
            case ast.BoolOp():
                return union(self.values(value, scope) for value in expr.values)
            case ast.IfExp():
                return self.values(expr.body, scope) | self.values(expr.orelse, scope)
            case ast.NamedExpr() | ast.Await() | ast.Starred():
                return self.values(expr.value, scope)
            case ast.Subscript():
                return self._item(self.values(expr.value, scope), expr.slice)
            case ast.List() | ast.Set():
                return elements(union(self.values(part, scope) for part in expr.elts))
            case ast.ListComp() | ast.SetComp() | ast.GeneratorExp():
                return elements(self.values(expr.elt, scope.module.comprehensions[expr]))
            case ast.DictComp():
                return entries(self.values(expr.value, scope.module.comprehensions[expr]))
            case ast.Tuple():
                return items(tuple(self.values(part, scope) for part in expr.elts))
            case ast.Dict():
                return entries(union(self.values(part, scope) for part in expr.values))
            case ast.BinOp():
                # `[x] * n` and `xs + ys` are lists of the same things.
                left = self.values(expr.left, scope)
                return left if any(value.kind == "elements" for value in left.items) else UNKNOWN
            case ast.JoinedStr() | ast.Compare() | ast.Lambda() | ast.UnaryOp():
                return OUTSIDE
            case _:
                return UNKNOWN

    def sites(self, expr: ast.Attribute, scope: Scope) -> tuple[Sites, Values]:
        """Where `object.name` is defined, and what the object can be."""
        values = self.values(expr.value, scope)
        return self.member(values, expr.attr), values

    def member(self, values: Values, name: str) -> Sites:
        """Where an attribute of these is defined."""
        found = NO_SITES if values.complete and values.items else UNKNOWN_SITES
        for value in values.items:
            found |= self._member(value, name)
        return found

    def _member(self, value: Value, name: str) -> Sites:
        if isinstance(value.of, Module):
            return self.names.member(value.of, name)
        if value.of is not None and value.kind in ("class", "instance", "super"):
            return self.classes.member(value.of, name, kind=value.kind)
        return OUTSIDE_SITES

    def _attribute(self, values: Values, name: str) -> Values:
        if name == "__class__":
            return Values(tuple(Value("class", v.of) for v in values.items if v.kind == "instance"), values.complete)
        result = NOTHING if values.complete else UNKNOWN
        for value in values.items:
            sites = self._member(value, name)
            result |= self._from_sites(
                sites, bound=value.kind in ("instance", "super", "class"), instance=value.kind != "class"
            )
        return result

    def _from_sites(self, sites: Sites, *, bound: bool = False, instance: bool = False) -> Values:
        result = NOTHING if sites.complete else UNKNOWN
        if sites.outside:
            result |= OUTSIDE
        for site in _declared(sites.items):
            if isinstance(site, Module):
                result |= Values((Value("module", site),))
                continue
            got = self.binding(site)
            if bound and instance and site.kind == "def" and is_property(site):
                got = union(self.call(value) for value in got.items)
            result |= got
        return result

    # Bindings

    def binding(self, binding: Binding) -> Values:
        """What this binding gives its name."""
        if binding not in self._bindings:
            if binding in self._busy or len(self._busy) > _DEPTH:
                return UNKNOWN
            self._busy.add(binding)
            self._bindings[binding] = self._binding(binding)
            self._busy.discard(binding)
        return self._bindings[binding]

    def _binding(self, binding: Binding) -> Values:
        if binding.kind in ("def", "class"):
            return Values((Value("class" if binding.kind == "class" else "function", binding.inner),))
        if binding.kind == "param":
            return self._parameter(binding)
        if binding.kind == "import":
            return self._from_sites(self.names.follow([binding]))
        if binding.annotation is not None:
            declared = self.annotations.instances(binding.annotation, binding.scope)
            if declared.items or binding.expr is None:
                return declared
        if binding.expr is None:
            return UNKNOWN
        values = self.values(binding.expr, binding.scope)
        for step in binding.steps:
            values = self._step(values, step)
        put = binding.owner.grown.get(binding.name)
        return grown(values, union(self.values(*one) for one in put)) if put else values

    def _parameter(self, binding: Binding) -> Values:
        function, cls = binding.owner.node, binding.owner.method_of
        listed = list(parameters(function.args)) if isinstance(function, Function | ast.Lambda) else []
        stars = next((stars for argument, stars in listed if argument is binding.node), "")
        if cls and isinstance(function, Function) and listed[0][0] is binding.node and not stars:
            marks = {function.name, *decorators(function)}
            if "staticmethod" not in marks:
                return Values((Value("class" if marks & _CLASSES_OF_METHODS else "instance", cls),))
        if binding.annotation is None:
            return UNKNOWN
        declared = self.annotations.instances(binding.annotation, binding.scope)
        return elements(declared) if stars == "*" else entries(declared) if stars else declared

    def _step(self, values: Values, step: Step) -> Values:
        result = NOTHING if values.complete else UNKNOWN
        for value in values.items:
            result |= (
                self._ask(value, "__enter__") if step == "enter" and value.kind == "instance" else take(value, step)
            )
        return result

    def _item(self, values: Values, index: ast.expr) -> Values:
        result = NOTHING if values.complete else UNKNOWN
        for value in values.items:
            result |= self._ask(value, "__getitem__") if value.kind == "instance" else subscript(value, index)
        return result

    def _ask(self, value: Value, method: str) -> Values:
        """What an object's own method gives back."""
        found = self._attribute(Values((value,)), method)
        return union(self.call(v) for v in found.items) if found.complete else UNKNOWN

    # Calls

    def _call(self, expr: ast.Call, scope: Scope) -> Values:
        name, args = last_name(expr.func), expr.args
        if isinstance(expr.func, ast.Name) and name == "super":
            return self._super(args, scope)
        if isinstance(expr.func, ast.Attribute):
            of = self.values(expr.func.value, scope)
            if of.complete and len(of.items) == 1 and of.items[0].kind == "entries":
                return of_dict(of.items[0].parts[0], name) or OUTSIDE
        called = self.values(expr.func, scope)
        if called.outside and args and name:
            found = self._known(name, args, scope, plain=isinstance(expr.func, ast.Name))
            if found is None and any(holds_own(self.values(arg, scope)) for arg in args):
                # What goes into a function of another package may come out of it.
                return UNKNOWN
            if found is not None:
                return found
        return union([*(self.call(value) for value in called.items), NOTHING if called.complete else UNKNOWN])

    def _known(self, name: str, args: list[ast.expr], scope: Scope, *, plain: bool) -> Values | None:
        """A few functions of the standard library that give back what they get."""
        if name == "cast" and len(args) == 2:
            return self.annotations.instances(args[0], scope)
        first = self.values(args[0], scope)
        if name in ("deepcopy", "copy", "partial"):
            return first
        if name in TORCH_LISTS or name in ("chain", "from_iterable"):
            return of_iterables(name, [(self.values(arg, scope), isinstance(arg, ast.Starred)) for arg in args])
        if not plain:
            return None
        if name == "type" and len(args) == 1:
            return Values(tuple(Value("class", v.of) for v in first.items if v.kind == "instance"), first.complete)
        return of_builtin(name, [self.values(arg, scope) for arg in args])

    def _super(self, args: list[ast.expr], scope: Scope) -> Values:
        if args:
            return Values(tuple(Value("super", v.of) for v in self.values(args[0], scope).items if v.kind == "class"))
        here: Scope | None = scope
        while here and here.method_of is None:
            here = here.parent
        return Values((Value("super", here.method_of),)) if here else UNKNOWN

    def call(self, value: Value) -> Values:
        """What calling this gives."""
        if value.kind == "outside":
            return OUTSIDE
        if value.kind == "class":
            return Values((Value("instance", value.of),))
        if value.kind == "function" and isinstance(value.of, Scope):
            return self._returned(value.of)
        return UNKNOWN

    def _returned(self, function: Scope) -> Values:
        if function not in self._calls:
            if function in self._busy or len(self._busy) > _DEPTH:
                return UNKNOWN
            self._busy.add(function)
            self._calls[function] = self._result(function)
            self._busy.discard(function)
        return self._calls[function]

    def _result(self, function: Scope) -> Values:
        node = function.node
        if not isinstance(node, Function) or function.parent is None:
            return UNKNOWN
        marks = decorators(node)
        if node.returns is not None:
            declared = self.annotations.instances(node.returns, function.parent, method=function)
            # What a context manager's function returns is not what `with` gives.
            return UNKNOWN if "contextmanager" in marks else declared
        if function.yields or marks - {"staticmethod", "classmethod", "property", "cached_property", "abstractmethod"}:
            return UNKNOWN
        return union(NOTHING if expr is None else self.values(expr, function) for expr in function.returns)


def is_property(binding: Binding) -> bool:
    """Whether reading the attribute calls this function."""
    return bool({"property", "cached_property"} & decorators(binding.node))


def _declared(items: tuple[Binding | Module, ...]) -> Sequence[Binding | Module]:
    """Of several assignments to one variable those that declare its type, if there are any."""
    declared = [i for i in items if isinstance(i, Binding) and i.kind in ("value", "attribute") and i.annotation]
    same = len({(i.owner, i.name) if isinstance(i, Binding) else i for i in items}) == 1
    return declared if declared and same else items
