"""The definitions of one Python file, from the standard library's parser.

`ast` rather than griffe: griffe does not look into function bodies, and training code defines
`loss_func` and hooks inside functions.
"""

from __future__ import annotations

import ast
import difflib
import warnings
from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Literal

Kind = Literal["class", "function", "method", "variable"]


@dataclass(frozen=True)
class Symbol:
    """A definition and the lines it covers (1-based, inclusive)."""

    name: str
    """Qualified within the file, dots only: `DistributedOptimizer.step`, `forward_step.loss_func`."""
    kind: Kind
    start: int
    """First line, decorators included."""
    line: int
    """The `def`, `class` or assignment line itself."""
    end: int
    signature: str = ""
    """`(model, optimizer) -> int` for callables, `(Base)` for classes, empty for variables."""
    doc: str = ""
    """First line of the docstring."""

    def encloses(self, start: int, end: int) -> bool:
        """Whether the range lies inside this definition."""
        return self.start <= start and end <= self.end


class SymbolTable:
    """All definitions of a file in order of their lines; empty for a file Python cannot parse."""

    def __init__(self, symbols: tuple[Symbol, ...] = (), *, parsed: bool = True) -> None:
        self.symbols = symbols
        self.parsed = parsed
        """False when the text is not Python that this interpreter can parse."""
        self._by_name: dict[str, list[Symbol]] = defaultdict(list)
        for symbol in symbols:
            self._by_name[symbol.name].append(symbol)

    @classmethod
    def parse(cls, text: str) -> SymbolTable:
        """Parse Python source; a syntax error gives an empty table, never an exception."""
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", SyntaxWarning)
                found = tuple(sorted(_walk(ast.parse(text), ""), key=lambda s: (s.start, -s.end)))
        except (SyntaxError, ValueError, RecursionError, MemoryError):
            return cls(parsed=False)
        return cls(found)

    def get(self, name: str) -> tuple[Symbol, ...]:
        """The definitions of this qualified name; several when a file defines it more than once."""
        return tuple(self._by_name.get(name, ()))

    def enclosing(self, start: int, end: int) -> Symbol | None:
        """The innermost class or function that holds the whole range."""
        around = [s for s in self.symbols if s.kind != "variable" and s.encloses(start, end)]
        return min(around, key=lambda s: (s.end - s.start, -s.start), default=None)

    def named(self, name: str) -> tuple[Symbol, ...]:
        """Definitions whose qualified name is `name` or ends in `.name`."""
        return tuple(s for s in self.symbols if s.name == name or s.name.endswith(f".{name}"))

    def nearest(self, name: str, *, n: int = 3) -> tuple[str, ...]:
        """Names a person may have meant: the same last part first, then by spelling."""
        last = name.rpartition(".")[2]
        same = [s.name for s in self.named(last)]
        close = difflib.get_close_matches(name, list(self._by_name), n=n, cutoff=0.5)
        tails: dict[str, str] = {}
        for full in self._by_name:
            tails.setdefault(full.rpartition(".")[2], full)
        close += [tails[t] for t in difflib.get_close_matches(last, list(tails), n=n, cutoff=0.6)]
        return tuple(dict.fromkeys(same + close))[:n]


def _walk(node: ast.AST, prefix: str, *, in_class: bool = False) -> Iterator[Symbol]:
    """Definitions below `node`, through `if`, `try` and `with`, into classes and functions."""
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            name = prefix + child.name
            kind: Kind = "class" if isinstance(child, ast.ClassDef) else "method" if in_class else "function"
            start = min([child.lineno, *(d.lineno for d in child.decorator_list)])
            doc = (ast.get_docstring(child) or "").strip().partition("\n")[0]
            yield Symbol(name, kind, start, child.lineno, child.end_lineno or child.lineno, _signature(child), doc)
            yield from _walk(child, f"{name}.", in_class=kind == "class")
        elif isinstance(child, ast.Assign | ast.AnnAssign):
            # Only names of a module or a class: a function's locals are not part of its outline.
            if prefix and not in_class:
                continue
            targets = child.targets if isinstance(child, ast.Assign) else [child.target]
            end = child.end_lineno or child.lineno
            for name in _names(targets):
                yield Symbol(prefix + name, "variable", child.lineno, child.lineno, end)
        elif not isinstance(child, ast.expr):
            yield from _walk(child, prefix, in_class=in_class)


def _names(targets: Iterable[ast.expr]) -> Iterator[str]:
    """The plain names that an assignment binds, through tuples, lists and stars."""
    for target in targets:
        if isinstance(target, ast.Name):
            yield target.id
        elif isinstance(target, ast.Tuple | ast.List):
            yield from _names(target.elts)
        elif isinstance(target, ast.Starred):
            yield from _names([target.value])


def _signature(node: ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef) -> str:
    if isinstance(node, ast.ClassDef):
        return f"({', '.join(map(ast.unparse, node.bases))})" if node.bases else ""
    returns = f" -> {ast.unparse(node.returns)}" if node.returns else ""
    return f"({ast.unparse(node.args)}){returns}"
