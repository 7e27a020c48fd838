"""What a value is by its annotation."""

from __future__ import annotations

import ast

from sourcepanel.xref.containers import elements, entries, items
from sourcepanel.xref.names import Evaluator
from sourcepanel.xref.scopes import Binding, Scope, last_name
from sourcepanel.xref.values import NOTHING, OUTSIDE, UNKNOWN, Value, Values, union

_ONE = frozenset({"Optional", "Final", "ClassVar", "Annotated", "Required", "NotRequired", "ReadOnly", "Awaitable"})
_LISTS = frozenset(
    {"list", "List", "set", "Set", "frozenset", "FrozenSet", "Sequence", "MutableSequence", "Iterable", "Iterator",
     "Collection", "deque", "Deque", "Generator", "AbstractSet"}
)  # fmt: skip
_DICTS = frozenset({"dict", "Dict", "Mapping", "MutableMapping", "OrderedDict", "defaultdict", "DefaultDict"})
_ANY = frozenset({"Any", "object", "TypeVar"})


class Annotations:
    """Reads annotations as types."""

    def __init__(self, inference: Evaluator) -> None:
        self._inference = inference
        self._depth = 0

    def instances(self, expr: ast.expr, scope: Scope, *, method: Scope | None = None) -> Values:
        """What something annotated so can be; `method` is the function whose result it is."""
        if self._depth > 20:
            return UNKNOWN
        self._depth += 1
        try:
            return self._read(expr, scope, method)
        finally:
            self._depth -= 1

    def of_classes(self, expr: ast.expr, scope: Scope) -> Values:
        """What `isinstance(…, expr)` says: an instance of the class, or of one of several."""
        if isinstance(expr, ast.Tuple):
            return union(self.of_classes(one, scope) for one in expr.elts)
        return self.instances(expr, scope)

    def _read(self, expr: ast.expr, scope: Scope, method: Scope | None) -> Values:
        match expr:
            case ast.Constant():
                # A string that could not be parsed says nothing; None is left out.
                return NOTHING if expr.value is None else UNKNOWN
            case ast.BinOp(op=ast.BitOr()):
                return self.instances(expr.left, scope, method=method) | self.instances(
                    expr.right, scope, method=method
                )
            case ast.Name() | ast.Attribute():
                return self._named(expr, scope, method)
            case ast.Subscript():
                return self._generic(expr, scope, method)
            case _:
                return UNKNOWN

    def _named(self, expr: ast.Name | ast.Attribute, scope: Scope, method: Scope | None) -> Values:
        name = last_name(expr)
        if name == "Self" and method and method.method_of:
            return Values((Value("instance", method.method_of),))
        if (written := self._alias(expr, scope)) is not None:
            return self.instances(written.expr, written.scope, method=method) if written.expr else UNKNOWN
        meant = self._inference.values(expr, scope)
        if meant.outside:
            # `list` alone says nothing of what the list holds.
            bare = elements(UNKNOWN) if name in _LISTS else entries(UNKNOWN) if name in _DICTS else OUTSIDE
            return UNKNOWN if name in _ANY else bare
        classes = tuple(Value("instance", v.of) for v in meant.items if v.kind == "class")
        return Values(classes, meant.complete and bool(classes) and len(classes) == len(meant.items))

    def _alias(self, expr: ast.Name | ast.Attribute, scope: Scope) -> Binding | None:
        """The variable that a name stands for, where it is a type: `Tensors = Union[Tensor, List[Tensor]]`."""
        if not isinstance(expr, ast.Name):
            return None
        sites = self._inference.names.find(expr.id, scope, line=expr.lineno)
        if not sites.complete or sites.outside or len(sites.items) != 1:
            return None
        found = sites.items[0]
        return found if isinstance(found, Binding) and isinstance(found.expr, ast.Subscript | ast.BinOp) else None

    def _generic(self, expr: ast.Subscript, scope: Scope, method: Scope | None) -> Values:
        name = last_name(expr.value)
        args = expr.slice.elts if isinstance(expr.slice, ast.Tuple) else [expr.slice]
        if not self._inference.values(expr.value, scope).outside:
            # A generic class of the snapshot: `Registry[int]`.
            return self.instances(expr.value, scope, method=method)
        held = [self.instances(arg, scope, method=method) for arg in args if not isinstance(arg, ast.List)]
        if name == "Union":
            return union(held)
        if name in _ONE and held:
            return held[0]
        if name in _LISTS and held:
            return elements(held[0])
        if name in _DICTS and len(held) == 2:
            return entries(held[1])
        if name in ("tuple", "Tuple") and held:
            endless = len(args) == 2 and isinstance(args[1], ast.Constant) and args[1].value is ...
            return elements(held[0]) if endless else items(tuple(held))
        if name in ("type", "Type") and held:
            return Values(tuple(Value("class", v.of) for v in held[0].items if v.kind == "instance"), held[0].complete)
        return OUTSIDE
