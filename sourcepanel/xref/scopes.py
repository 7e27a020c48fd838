"""The scopes of one Python file: which names each binds, and every identifier that could be a link.

The rules are those of the language reference ("Naming and binding"); the standard library's `symtable` follows
them too, and a test compares the two. It is not used here because it keeps no positions.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Literal

from sourcepanel.xref.model import UseKind

Step = Literal["iter", "enter", "star"] | int
"""How a target takes its part of a value: an element, what `with` gives, the rest, or the item of this number."""

Function = ast.FunctionDef | ast.AsyncFunctionDef
_Comprehension = ast.ListComp | ast.SetComp | ast.GeneratorExp | ast.DictComp


@dataclass(eq=False, slots=True)
class Scope:
    """A module, class or function (lambdas and comprehensions too) and the names that it binds."""

    kind: Literal["module", "class", "function"]
    node: ast.AST
    path: str
    parent: Scope | None = None
    name: str = ""
    """Qualified within the file; lambdas and comprehensions add nothing."""
    bindings: dict[str, list[Binding]] = field(default_factory=dict)
    stars: list[Binding] = field(default_factory=list)
    """`from … import *`."""
    attributes: dict[str, list[Binding]] = field(default_factory=dict)
    """Of a class: `self.name = …` in its methods."""
    options: dict[str, list[Binding]] = field(default_factory=dict)
    """Of a module: `add_argument("--some-name")`, by the name under which a program then finds it."""
    globals: set[str] = field(default_factory=set)
    nonlocals: set[str] = field(default_factory=set)
    returns: list[ast.expr | None] = field(default_factory=list)
    yields: bool = False
    grown: dict[str, list[tuple[ast.expr, Scope]]] = field(default_factory=dict)
    """What `name.append(…)` and `name[…] = …` put into a variable; of a class, into an attribute of `self`."""
    comprehensions: dict[ast.AST, Scope] = field(default_factory=dict)
    """Of a module: the scopes of all comprehensions in it."""
    narrowed: dict[ast.AST, tuple[ast.expr, Scope]] = field(default_factory=dict)
    """Of a module: names and attributes of which `isinstance` has told the class, and where that stood."""
    exports: list[ast.expr] = field(default_factory=list)
    """Of a module: what `__all__` is set to and grows by."""

    @property
    def module(self) -> Scope:
        """The scope of the whole file."""
        scope = self
        while scope.parent:
            scope = scope.parent
        return scope

    @property
    def method_of(self) -> Scope | None:
        """The class whose body defines this function."""
        direct = self.parent if isinstance(self.node, Function) else None
        if direct is not None and direct.node is self.node:
            direct = direct.parent
        return direct if direct is not None and direct.kind == "class" else None

    def owner(self, name: str) -> Scope:
        """The scope in which an assignment here binds the name."""
        if name in self.globals:
            return self.module
        scope = self
        while name in scope.nonlocals and scope.parent:
            scope = scope.parent
            while scope.kind == "class" and scope.parent:
                scope = scope.parent
            if name in scope.bindings:
                break
        return scope


@dataclass(eq=False, slots=True)
class Binding:
    """One way a name gets its meaning."""

    name: str
    kind: Literal["def", "class", "import", "value", "param", "attribute", "option", "grown"]
    node: ast.AST
    """The definition, import alias, name or argument itself."""
    scope: Scope
    """Where its expressions are evaluated."""
    owner: Scope
    """Where the name lives; for an attribute the class."""
    effect: int
    """Last line of the statement: what follows sees it."""
    conditional: bool
    """Whether it may not happen: below `if`, `try` or a loop, or in a function for a name of the module."""
    statement: ast.stmt | None = None
    expr: ast.expr | None = None
    steps: tuple[Step, ...] = ()
    annotation: ast.expr | None = None
    inner: Scope | None = None
    """The scope of a function or class."""
    module: tuple[int, str] = (0, "")
    """Of an import: level (dots) and module."""
    member: str = ""
    """Of `from … import member`."""
    shared: bool = False
    """Of an attribute: set on the class, by a class method."""
    doc: str = ""
    """The string that stands below an assignment."""

    @property
    def line(self) -> int:
        """Where the name stands."""
        return int(getattr(self.node, "lineno", 0))


@dataclass(frozen=True, slots=True)
class ImportPart:
    """The part of an import statement that names a module, or something in one."""

    level: int
    module: str
    member: str = ""


@dataclass(frozen=True, slots=True)
class Reference:
    """One identifier that is read, called, imported, or set."""

    name: str
    line: int
    offset: int
    """Bytes of UTF-8 from the start of the line."""
    node: ast.Name | ast.Attribute | ast.keyword | ImportPart
    scope: Scope
    kind: UseKind
    call: ast.Call | None = None
    """Of a keyword: the call it stands in."""


@dataclass(frozen=True)
class FileScopes:
    """One parsed file."""

    module: Scope
    references: tuple[Reference, ...]


def parameters(arguments: ast.arguments) -> Iterator[tuple[ast.arg, Literal["", "*", "**"]]]:
    """Every parameter, in order, with the stars before it."""
    for argument in [*arguments.posonlyargs, *arguments.args]:
        yield argument, ""
    if arguments.vararg:
        yield arguments.vararg, "*"
    for argument in arguments.kwonlyargs:
        yield argument, ""
    if arguments.kwarg:
        yield arguments.kwarg, "**"


def decorators(node: ast.AST) -> set[str]:
    """Last parts of the names of its decorators: `abstractmethod` for `@abc.abstractmethod`."""
    found = set()
    for expr in getattr(node, "decorator_list", ()):
        expr = expr.func if isinstance(expr, ast.Call) else expr
        found.add(last_name(expr))
    return found


def last_name(expr: ast.AST) -> str:
    """`c` of `a.b.c`, also of `a.b.c[x]`; empty for anything else."""
    if isinstance(expr, ast.Subscript):
        expr = expr.value
    if isinstance(expr, ast.Attribute):
        return expr.attr
    return expr.id if isinstance(expr, ast.Name) else ""
