"""Notes what a walk over a syntax tree meets: identifiers, bindings, attributes of `self`, what grows lists."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Sequence

from sourcepanel.xref.model import UseKind
from sourcepanel.xref.narrowing import Known, path
from sourcepanel.xref.scopes import Binding, Function, ImportPart, Reference, Scope, Step, decorators, parameters
from sourcepanel.xref.strings import parse_annotations

_STATIC = frozenset({"staticmethod", "__new__", "__init_subclass__", "__class_getitem__"})


class Recorder(ast.NodeVisitor):
    """The part of the walk that does not depend on the kind of statement."""

    def __init__(self, file: str, tree: ast.Module, *, lines: Sequence[str]) -> None:
        self.module = Scope("module", tree, file)
        self.references: list[Reference] = []
        self._lines = lines
        self._scope = self.module
        self._statement: ast.stmt | None = None
        self._depth = 0
        """How many branches and loops of the current scope are open."""
        self._known: Known = {}
        """What `isinstance` has told of names where the walk stands."""
        self._own: list[tuple[ast.Name, Binding]] = []
        """`self.name = …`: whether that was `self` is known once the whole function has been read."""

    @property
    def _effect(self) -> int:
        return (self._statement.end_lineno or 0) if self._statement else 0

    def _refer(self, expr: ast.expr, kind: UseKind) -> None:
        """Note the identifier in which the expression ends, and what it holds before that."""
        if self._known and kind != "set" and (cls := self._known.get(path(expr))) is not None:
            self.module.narrowed[expr] = cls, self._scope
        if isinstance(expr, ast.Name):
            self.references.append(Reference(expr.id, expr.lineno, expr.col_offset, expr, self._scope, kind))
        elif isinstance(expr, ast.Attribute):
            self.visit(expr.value)
            # The name is the last thing of the expression.
            offset = (expr.end_col_offset or 0) - len(expr.attr.encode())
            self.references.append(Reference(expr.attr, expr.end_lineno or 0, offset, expr, self._scope, kind))
        elif isinstance(expr, ast.Subscript) and kind == "base":
            self._refer(expr.value, kind)
            self.visit(expr.slice)
        else:
            self.visit(expr)

    def _bind(
        self,
        target: ast.expr,
        expr: ast.expr | None,
        steps: tuple[Step, ...] = (),
        *,
        annotation: ast.expr | None = None,
        evaluated: Scope | None = None,
    ) -> None:
        """The names that a target gives their meaning; what else it holds is only read."""
        if isinstance(target, ast.Tuple | ast.List):
            starred = False
            for i, part in enumerate(target.elts):
                starred = starred or isinstance(part, ast.Starred)
                # From a star on nobody knows the number.
                self._bind(part, expr, (*steps, "star" if starred else i), evaluated=evaluated)
            return
        if isinstance(target, ast.Starred):
            self._bind(target.value, None)
            return
        self._forget(path(target))
        made = Binding("", "value", target, evaluated or self._scope, self._scope, self._effect, False)
        made.expr, made.steps, made.annotation, made.statement = expr, steps, annotation, self._statement
        if isinstance(target, ast.Name):
            made.name = target.id
            if target.id == "__all__" and self._scope is self.module and expr is not None:
                self.module.exports.append(expr)
            self._refer(target, "set")
            self._add(made)
        elif isinstance(target, ast.Attribute):
            self._refer(target, "set")
            if isinstance(target.value, ast.Name):
                made.name, made.kind = target.attr, "attribute"
                self._own.append((target.value, made))
        else:
            self.visit(target)
            if isinstance(target, ast.Subscript) and expr is not None and not steps:
                self._grow(target.value, expr)

    def _forget(self, name: str) -> None:
        """An assignment to a name: nothing is known of it any more, nor of its attributes."""
        if name and self._known:
            self._known = {k: v for k, v in self._known.items() if k != name and not k.startswith(f"{name}.")}

    def _forget_assigned(self, loop: ast.stmt) -> None:
        """What a loop assigns may have another value when its body runs again."""
        for node in ast.walk(loop) if self._known else ():
            if isinstance(node, ast.Name | ast.Attribute) and not isinstance(node.ctx, ast.Load):
                self._forget(path(node))

    def _add(self, binding: Binding) -> None:
        self._forget(binding.name)
        owner = self._scope.owner(binding.name)
        binding.owner = owner
        binding.conditional = binding.conditional or self._depth > 0 or owner is not self._scope
        owner.bindings.setdefault(binding.name, []).append(binding)

    def _grow(self, container: ast.expr, expr: ast.expr) -> None:
        """`name.append(expr)` or `name[…] = expr`, also of an attribute of `self`."""
        grown = expr, self._scope
        if isinstance(container, ast.Name):
            self._scope.owner(container.id).grown.setdefault(container.id, []).append(grown)
        elif isinstance(container, ast.Attribute) and isinstance(container.value, ast.Name):
            made = Binding(container.attr, "grown", container, self._scope, self._scope, 0, True, expr=expr)
            self._own.append((container.value, made))

    def _keep_attributes(self) -> None:
        for name, binding in self._own:
            scope: Scope | None = binding.scope
            while scope and (name.id not in scope.bindings or scope.kind == "class"):
                scope = scope.parent
            bound = scope.bindings[name.id] if scope else []
            cls = scope.method_of if scope else None
            if cls is None or scope is None or len(bound) != 1 or not isinstance(scope.node, Function):
                continue
            first = next(parameters(scope.node.args), None)
            static = _STATIC & {scope.node.name, *(ast.unparse(d) for d in scope.node.decorator_list)}
            if first is None or first[0] is not bound[0].node or first[1] or static:
                continue
            binding.owner = cls
            binding.shared = "classmethod" in decorators(scope.node)
            if binding.kind == "grown" and binding.expr is not None:
                cls.grown.setdefault(binding.name, []).append((binding.expr, binding.scope))
            else:
                cls.attributes.setdefault(binding.name, []).append(binding)

    def _inner(self, kind: str, node: ast.AST, *, name: str = "") -> Scope:
        """A new scope in the current one."""
        full = ".".join(filter(None, [self._scope.name, name]))
        made = Scope("class" if kind == "class" else "function", node, self.module.path, self._scope, full)
        # Type parameters (PEP 695) live in a scope of their own around this one; nothing of it can be a link.
        around: Scope | None = None
        for parameter in getattr(node, "type_params", ()):
            if around is None:
                around = made.parent = Scope("function", node, self.module.path, self._scope, self._scope.name)
            around.bindings[parameter.name] = [Binding(parameter.name, "param", parameter, around, around, 0, False)]
        return made

    def _import(self, alias: ast.alias, *, name: str, module: tuple[int, str], member: str = "") -> None:
        made = Binding(name, "import", alias, self._scope, self._scope, self._effect, self._depth > 0)
        made.module, made.member = module, member
        if name == "*":
            self.module.stars.append(made)
        else:
            self._add(made)

    def _module_parts(self, module: str, level: int, *, line: int, offset: int) -> None:
        """One reference a segment of `a.b.c`, each to the module up to there."""
        so_far = ""
        for part in module.split("."):
            so_far = f"{so_far}.{part}" if so_far else part
            self.references.append(Reference(part, line, offset, ImportPart(level, so_far), self._scope, "import"))
            offset += len(part.encode()) + 1

    def _option(self, node: ast.Call) -> None:
        """`add_argument("-x", "--some-name", help="…")` makes `args.some_name`."""
        given = {keyword.arg: keyword.value for keyword in node.keywords}
        names = [arg for arg in node.args if isinstance(arg, ast.Constant) and str(arg.value).startswith("--")]
        dest, said = given.get("dest"), given.get("help")
        if not names:
            return
        name = str(dest.value) if isinstance(dest, ast.Constant) else str(names[0].value)[2:].replace("-", "_")
        made = Binding(name, "option", names[0], self._scope, self.module, self._effect, False, self._statement)
        made.doc = str(said.value).strip().partition("\n")[0] if isinstance(said, ast.Constant) else ""
        self.module.options.setdefault(name, []).append(made)

    def _annotation(self, expr: ast.expr | None) -> ast.expr | None:
        if expr is not None:
            expr = parse_annotations(expr, lines=self._lines)
            self.visit(expr)
        return expr

    def _visit_all(self, nodes: Iterable[ast.AST | None]) -> None:
        for node in nodes:
            if node is not None:
                self.visit(node)
