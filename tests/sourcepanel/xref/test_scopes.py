"""The scopes are Python's own: compared with the standard library's `symtable`."""

from __future__ import annotations

import ast
import symtable
import sys
import sysconfig
import textwrap
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

from sourcepanel.xref.builder import read_scopes
from sourcepanel.xref.scopes import Scope
from tests.sourcepanel.xref.cases import CASES
from tests.sourcepanel.xref.says import wrong

ROOT = Path(__file__).resolve().parents[3]
STANDARD = Path(sysconfig.get_path("stdlib"))
FILES = [
    *sorted((ROOT / "sourcepanel").rglob("*.py")),
    *(STANDARD / name for name in ("dataclasses.py", "typing.py", "argparse.py", "asyncio/tasks.py", "inspect.py")),
]
COMPREHENSIONS = ast.ListComp | ast.SetComp | ast.GeneratorExp | ast.DictComp


def python_says(text: str) -> Counter[tuple[int, str, str]]:
    """(line of the scope, name, local or not) for each name that a function or class uses."""
    found: Counter[tuple[int, str, str]] = Counter()
    queue = list(symtable.symtable(text, "x", "exec").get_children())
    while queue:
        table = queue.pop()
        queue += table.get_children()
        if table.get_type() not in ("function", "class"):
            continue
        for symbol in table.get_symbols():
            name = symbol.get_name()
            # Hidden helpers of comprehensions, and names that are changed in classes.
            if name.startswith(("__", ".", "_")) or not (symbol.is_referenced() or symbol.is_assigned()):
                continue
            fate = "local" if symbol.is_local() else "free" if symbol.is_free() else "global"
            found[table.get_lineno(), name, fate] += 1
    return found


def we_say(text: str) -> Counter[tuple[int, str, str]]:
    scopes = read_scopes("x.py", ast.parse(text), lines=text.split("\n"))
    used: dict[Scope, set[str]] = {}
    for reference in scopes.references:
        if isinstance(reference.node, ast.Name) and reference.line:
            used.setdefault(reference.scope, set()).add(reference.name)
    found: Counter[tuple[int, str, str]] = Counter()
    for scope, names in used.items():
        # From 3.12 on Python reports a comprehension as part of the function around it.
        if scope.parent is None or (isinstance(scope.node, COMPREHENSIONS) and sys.version_info >= (3, 12)):
            continue
        for name in names:
            if not name.startswith("_"):
                found[scope.node.lineno, name, fate(scope, name)] += 1
    return found


def fate(scope: Scope, name: str) -> str:
    if name in scope.globals:
        return "global"
    if name in scope.bindings and name not in scope.nonlocals:
        return "local"
    return "free" if any(name in s.bindings and name not in s.globals for s in functions_around(scope)) else "global"


def functions_around(scope: Scope) -> Iterator[Scope]:
    above = scope.parent
    while above and above.parent:
        if above.kind == "function":
            yield above
        above = above.parent


def differences(text: str) -> list[str]:
    """Names whose fate differs; names only one side has are left out, as annotations and f-strings differ there."""
    ours, theirs = we_say(text), python_says(text)
    fates: dict[tuple[int, str], set[str]] = {}
    for line, name, what in theirs:
        fates.setdefault((line, name), set()).add(what)
    return [
        f"{line}: {name} is {what}, for Python {fates[line, name]}"
        for line, name, what in ours
        if (line, name) in fates and what not in fates[line, name]
    ]


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.name)
def test_every_name_has_the_scope_python_gives_it(path):
    text = path.read_text(encoding="utf-8")
    assert differences(text) == []


def test_the_comparison_covers_names_and_finds_differences(monkeypatch):
    text = (STANDARD / "dataclasses.py").read_text(encoding="utf-8")
    theirs = {(line, name) for line, name, _ in python_says(text)}
    assert sum((line, name) in theirs for line, name, _ in we_say(text)) > 300
    monkeypatch.setattr("sourcepanel.xref.scopes.Scope.owner", lambda self, name: self.module)
    assert differences(text)


@pytest.mark.parametrize("name", CASES)
def test_the_cases_agree_with_python(name):
    for path, text in CASES[name].items():
        if path.endswith(".py") and "(:" not in text:
            assert differences(textwrap.dedent(text).lstrip("\n")) == []


@pytest.mark.skipif("not hasattr(__import__('ast'), 'TypeVar')", reason="type parameters came with Python 3.12")
def test_type_parameters_hide_what_has_their_name():
    function = "def f[T](x: T) -> T: return T  #> T=local\n"
    method = "    def g[U](self: T, y: U): self.f()  #> f=a.py:A.f T=local U=local\n"
    body = f"    x: T  #> T=local\n    def f(self): ...\n{method}"
    text = f"class T: ...\n{function}class A[T](B[T]):  #> T=local\n{body}T()  #> T=a.py:T\n"
    assert wrong({"a.py": text}) == []
