"""Walks a syntax tree once and notes scopes, bindings and identifiers, in the order of the text."""

from __future__ import annotations

import ast
from collections.abc import Sequence

from sourcepanel.xref.narrowing import Known, after, fails, holds, path
from sourcepanel.xref.recorder import Recorder
from sourcepanel.xref.scopes import Binding, FileScopes, ImportPart, Reference, Scope, parameters

_GROWS = frozenset({"append", "add", "appendleft"})


def read_scopes(file: str, tree: ast.Module, *, lines: Sequence[str]) -> FileScopes:
    """All scopes and identifiers of a file. Annotations that are strings are parsed in place, in the tree."""
    builder = _Builder(file, tree, lines=lines)
    return FileScopes(builder.module, tuple(builder.references))


class _Builder(Recorder, ast.NodeVisitor):
    def __init__(self, file: str, tree: ast.Module, *, lines: Sequence[str]) -> None:
        super().__init__(file, tree, lines=lines)
        self._block(tree.body)
        self._keep_attributes()

    # Statements

    def _block(self, statements: Sequence[ast.stmt], *, branch: bool = False, known: Known | None = None) -> None:
        """Statements in order; `known` holds at the first of them, what they tell only within the block."""
        outer, before_block = self._statement, self._known
        self._known = {**self._known, **(known or {})}
        self._depth += branch
        for i, statement in enumerate(statements):
            self._statement = statement
            before = len(self._own)
            self.visit(statement)
            if isinstance(statement, ast.Assign | ast.AnnAssign):
                self._document(statement, statements[i + 1 : i + 2], before=before)
            self._known |= after(statement)
        self._depth -= branch
        # A name that was assigned in the block may be anything behind it.
        self._known = {name: cls for name, cls in before_block.items() if self._known.get(name) is cls}
        self._statement = outer

    def _document(self, statement: ast.Assign | ast.AnnAssign, below: Sequence[ast.stmt], *, before: int) -> None:
        """The string below an assignment says what it is for."""
        following = below[0] if below else None
        if not isinstance(following, ast.Expr) or not isinstance(following.value, ast.Constant):
            return
        text = following.value.value
        if not isinstance(text, str) or not text.strip():
            return
        made = [binding for _, binding in self._own[before:]]
        if isinstance(statement.targets[0] if isinstance(statement, ast.Assign) else statement.target, ast.Name):
            made += [b for bound in self._scope.bindings.values() for b in bound[-1:] if b.statement is statement]
        for binding in made:
            binding.doc = text.strip().partition("\n")[0]

    def visit_FunctionDef(self, node: ast.FunctionDef | ast.AsyncFunctionDef) -> None:
        for expr in node.decorator_list:
            self._refer(expr, "call")
        inner = self._inner("function", node, name=node.name)
        self._add(Binding(node.name, "def", node, self._scope, self._scope, node.body[0].lineno, False, inner=inner))
        here, self._scope = self._scope, inner.parent or inner
        node.returns = self._annotation(node.returns)
        self._scope = here
        self._function(node.args, inner, body=node.body)

    visit_AsyncFunctionDef = visit_FunctionDef  # noqa: N815 - the names that ast.NodeVisitor looks for

    def visit_Lambda(self, node: ast.Lambda) -> None:
        self._function(node.args, self._inner("function", node), body=node.body)

    def _function(self, arguments: ast.arguments, inner: Scope, *, body: list[ast.stmt] | ast.expr) -> None:
        self._visit_all([*arguments.defaults, *filter(None, arguments.kw_defaults)])
        # Annotations and bases see type parameters, which live in a scope between this one and the inner one.
        here, self._scope = self._scope, inner.parent or inner
        for argument, _ in parameters(arguments):
            argument.annotation = self._annotation(argument.annotation)
            made = Binding(
                argument.arg, "param", argument, self._scope, inner, 0, False, annotation=argument.annotation
            )
            inner.bindings.setdefault(argument.arg, []).append(made)
        self._scope = here
        self._inside(inner, body)

    def visit_ClassDef(self, node: ast.ClassDef) -> None:
        for expr in node.decorator_list:
            self._refer(expr, "call")
        inner = self._inner("class", node, name=node.name)
        here, self._scope = self._scope, inner.parent or inner
        for base in node.bases:
            self._refer(base, "base")
        for keyword in node.keywords:
            self.visit(keyword.value)
        self._scope = here
        self._add(Binding(node.name, "class", node, self._scope, self._scope, node.body[0].lineno, False, inner=inner))
        self._inside(inner, node.body)

    def _inside(self, inner: Scope, body: list[ast.stmt] | ast.expr) -> None:
        outer, depth, known = self._scope, self._depth, self._known
        # A function runs later, when names may have other values; a lambda mostly at once.
        self._scope, self._depth, self._known = inner, 0, {} if isinstance(body, list) else known
        if isinstance(body, list):
            self._block(body)
        else:
            self.visit(body)
        self._scope, self._depth, self._known = outer, depth, known

    def visit_If(self, node: ast.If) -> None:
        self.visit(node.test)
        # What only a type checker imports is what the annotations mean.
        typing = isinstance(node.test, ast.Name | ast.Attribute) and ast.unparse(node.test).endswith("TYPE_CHECKING")
        self._block(node.body, branch=not typing, known=holds(node.test))
        self._block(node.orelse, branch=True, known=fails(node.test))

    def visit_While(self, node: ast.While) -> None:
        self._forget_assigned(node)
        self.visit(node.test)
        self._block(node.body, branch=True, known=holds(node.test))
        self._block(node.orelse, branch=True)

    def visit_BoolOp(self, node: ast.BoolOp) -> None:
        known = self._known
        for value in node.values:
            self.visit(value)
            told = holds(value) if isinstance(node.op, ast.And) else fails(value)
            self._known = {**self._known, **told}
        self._known = known

    def visit_IfExp(self, node: ast.IfExp) -> None:
        self.visit(node.test)
        known = self._known
        for branch, told in ((node.body, holds(node.test)), (node.orelse, fails(node.test))):
            self._known = {**known, **told}
            self.visit(branch)
        self._known = known

    def visit_For(self, node: ast.For | ast.AsyncFor) -> None:
        self.visit(node.iter)
        self._forget_assigned(node)
        self._bind(node.target, node.iter, ("iter",))
        self._block(node.body, branch=True)
        self._block(node.orelse, branch=True)

    visit_AsyncFor = visit_For  # noqa: N815

    def visit_Try(self, node: ast.Try) -> None:
        self._try(node)

    def _try(self, node: ast.Try | ast.TryStar) -> None:
        self._block(node.body, branch=True)
        for handler in node.handlers:
            self._visit_all([handler.type])
            if handler.name:
                made = Binding(handler.name, "value", handler, self._scope, self._scope, handler.lineno, True)
                made.annotation = handler.type if isinstance(handler.type, ast.Name | ast.Attribute) else None
                self._add(made)
            self._block(handler.body, branch=True)
        self._block(node.orelse, branch=True)
        self._block(node.finalbody)

    def visit_TryStar(self, node: ast.TryStar) -> None:
        self._try(node)

    def visit_With(self, node: ast.With | ast.AsyncWith) -> None:
        for item in node.items:
            self.visit(item.context_expr)
            if item.optional_vars:
                self._bind(item.optional_vars, item.context_expr, ("enter",))
        self._block(node.body)

    visit_AsyncWith = visit_With  # noqa: N815

    def visit_Match(self, node: ast.Match) -> None:
        self.visit(node.subject)
        for case in node.cases:
            for pattern in ast.walk(case.pattern):
                name = getattr(pattern, "name", None) or getattr(pattern, "rest", None)
                if isinstance(name, str):
                    self._add(Binding(name, "value", pattern, self._scope, self._scope, case.pattern.lineno, True))
            self.visit(case.pattern)
            self._visit_all([case.guard])
            self._block(case.body, branch=True)

    def visit_Assign(self, node: ast.Assign) -> None:
        self.visit(node.value)
        for target in node.targets:
            self._bind(target, node.value)

    def visit_AnnAssign(self, node: ast.AnnAssign) -> None:
        node.annotation = self._annotation(node.annotation) or node.annotation
        self._visit_all([node.value])
        self._bind(node.target, node.value, annotation=node.annotation)

    def visit_AugAssign(self, node: ast.AugAssign) -> None:
        self.visit(node.value)
        if isinstance(node.target, ast.Name) and node.target.id == "__all__" and self._scope is self.module:
            self.module.exports.append(node.value)
        # It changes what the name stands for, but defines it only where nothing else does.
        name = node.target.id if isinstance(node.target, ast.Name) else ""
        if name and name not in self._scope.owner(name).bindings:
            self._add(Binding(name, "value", node.target, self._scope, self._scope, node.lineno, True))
        self._refer(node.target, "set")
        self._forget(path(node.target))

    def visit_NamedExpr(self, node: ast.NamedExpr) -> None:
        self.visit(node.value)
        scope = self._scope
        while isinstance(scope.node, ast.ListComp | ast.SetComp | ast.GeneratorExp | ast.DictComp) and scope.parent:
            scope = scope.parent
        here, self._scope = self._scope, scope
        self._bind(node.target, node.value, evaluated=here)
        self._scope = here

    def visit_Global(self, node: ast.Global) -> None:
        self._scope.globals |= set(node.names)

    def visit_Nonlocal(self, node: ast.Nonlocal) -> None:
        self._scope.nonlocals |= set(node.names)

    def visit_Return(self, node: ast.Return) -> None:
        self._scope.returns.append(node.value)
        self._visit_all([node.value])

    def visit_Yield(self, node: ast.Yield | ast.YieldFrom) -> None:
        self._scope.yields = True
        self.generic_visit(node)

    visit_YieldFrom = visit_Yield  # noqa: N815

    def visit_Import(self, node: ast.Import) -> None:
        for alias in node.names:
            top = alias.name.partition(".")[0]
            self._import(alias, name=alias.asname or top, module=(0, alias.name if alias.asname else top))
            self._module_parts(alias.name, 0, line=alias.lineno, offset=alias.col_offset)

    def visit_ImportFrom(self, node: ast.ImportFrom) -> None:
        module = (node.level, node.module or "")
        if node.module:
            text = self._lines[node.lineno - 1].encode()[node.col_offset :].decode()
            # `from`, blanks, dots, blanks: where the statement breaks before the name it has no place we know.
            at = len(text) - len(text[4:].lstrip().lstrip(".").lstrip()) if text.startswith("from") else 0
            if at and text[at:].startswith(node.module):
                self._module_parts(node.module, node.level, line=node.lineno, offset=node.col_offset + at)
        for alias in node.names:
            if alias.name == "*":
                self._import(alias, name="*", module=module)
                continue
            self._import(alias, name=alias.asname or alias.name, module=module, member=alias.name)
            part = ImportPart(*module, alias.name)
            place = alias.lineno, alias.col_offset
            self.references.append(Reference(alias.name, *place, part, self._scope, "import"))

    # Expressions

    def visit_Name(self, node: ast.Name) -> None:
        self._refer(node, "other")

    def visit_Attribute(self, node: ast.Attribute) -> None:
        self._refer(node, "other")

    def visit_Call(self, node: ast.Call) -> None:
        self._refer(node.func, "call")
        if isinstance(node.func, ast.Attribute) and node.func.attr == "add_argument":
            self._option(node)
        if isinstance(node.func, ast.Attribute) and node.func.attr in _GROWS and len(node.args) == 1:
            self._grow(node.func.value, node.args[0])
        self._visit_all(node.args)
        for keyword in node.keywords:
            if keyword.arg:
                place = keyword.lineno, keyword.col_offset
                self.references.append(Reference(keyword.arg, *place, keyword, self._scope, "set", node))
            self.visit(keyword.value)

    def _comprehension(self, node: ast.ListComp | ast.SetComp | ast.GeneratorExp | ast.DictComp) -> None:
        outer, inner, known = self._scope, self._inner("function", node), self._known
        self.module.comprehensions[node] = inner
        for i, part in enumerate(node.generators):
            # The first iterable belongs to the scope around it.
            self._scope = inner if i else outer
            self.visit(part.iter)
            here, self._scope = self._scope, inner
            self._bind(part.target, part.iter, ("iter",), evaluated=here)
            for test in part.ifs:
                self.visit(test)
                self._known = {**self._known, **holds(test)}
        self._visit_all([node.key, node.value] if isinstance(node, ast.DictComp) else [node.elt])
        self._scope, self._known = outer, known

    visit_ListComp = visit_SetComp = visit_GeneratorExp = visit_DictComp = _comprehension  # noqa: N815
