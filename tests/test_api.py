"""The public API: everything in `sourcepanel.__all__` exists, is documented, and comes from one place."""

from __future__ import annotations

import ast
import importlib
import inspect
import pkgutil
import re
import subprocess
import sys
from pathlib import Path

import pytest

import sourcepanel
from sourcepanel.errors import SourcePanelError

ROOT = Path(__file__).resolve().parent.parent
PAGE = ROOT / "docs/about/architecture.md"
MARK = "<!-- api: policed by tests/test_api.py -->"
PUBLIC = sorted(sourcepanel.__all__)


def modules() -> list[str]:
    """Every module of the engine but the adapter, which needs MkDocs, and what starts when imported."""
    found = [info.name for info in pkgutil.walk_packages(sourcepanel.__path__, "sourcepanel.")]
    return [name for name in found if name.split(".")[-1] not in ("mkdocs_adapter", "__main__")]


def documented() -> list[str]:
    """Names in the table of the architecture page."""
    section = PAGE.read_text(encoding="utf-8").partition(MARK)[2]
    rows = re.findall(r"(?m)^\| (`.*?) \|", section)
    return [name for row in rows for name in re.findall(r"`(\w+)`", row)]


def home(name: str) -> str:
    """The module that defines a public name."""
    value = getattr(sourcepanel, name)
    return getattr(value, "__module__", "")


def test_all_is_sorted_and_names_nothing_twice():
    assert list(sourcepanel.__all__) == sorted(set(sourcepanel.__all__))


@pytest.mark.parametrize("name", PUBLIC)
def test_name_exists_and_is_documented_in_the_code(name):
    value = getattr(sourcepanel, name)
    # A dataclass and a Protocol get a generated docstring where none is written.
    assert inspect.getdoc(value)
    assert not (inspect.getdoc(value) or "").startswith(f"{name}(")


@pytest.mark.parametrize("name", PUBLIC)
def test_public_members_are_documented(name):
    value = getattr(sourcepanel, name)
    members = vars(value).items() if inspect.isclass(value) else ()
    bare = [
        member
        for member, thing in members
        if not member.startswith(("_", "model_"))
        and isinstance(thing, property | staticmethod | classmethod | type(home))
        and not inspect.getdoc(thing)
    ]
    assert bare == []


@pytest.mark.parametrize("name", PUBLIC)
def test_name_is_defined_in_one_public_module(name):
    module = home(name)
    assert module.startswith("sourcepanel.")
    assert not any(part.startswith("_") for part in module.split("."))
    assert getattr(importlib.import_module(module), name) is getattr(sourcepanel, name)


def test_no_two_modules_export_the_same_public_name():
    """A package below may list its parts for its neighbours, but what it lists is the same object."""
    for module_name in modules():
        module = importlib.import_module(module_name)
        for name in getattr(module, "__all__", ()):
            if name in sourcepanel.__all__:
                assert getattr(module, name) is getattr(sourcepanel, name), module_name


def test_nothing_private_leaks():
    tree = ast.parse(Path(sourcepanel.__file__).read_text(encoding="utf-8"))
    imported = {
        alias.asname or alias.name for n in ast.walk(tree) if isinstance(n, ast.ImportFrom) for alias in n.names
    }
    assert imported - {"annotations"} == set(sourcepanel.__all__)
    submodules = {info.name for info in pkgutil.iter_modules(sourcepanel.__path__)}
    visible = {name for name in vars(sourcepanel) if not name.startswith("_")}
    assert visible - submodules - {"annotations"} == set(sourcepanel.__all__) - submodules


def test_every_error_is_public():
    def below(error: type) -> set[type]:
        return {error}.union(*map(below, error.__subclasses__()))

    for name in modules():
        importlib.import_module(name)
    errors = {error for error in below(SourcePanelError) if error.__module__.startswith("sourcepanel.")}
    named = {error.__name__ for error in errors if not error.__name__.startswith("_")}
    assert named - set(sourcepanel.__all__) == set()


def test_the_architecture_page_lists_the_api():
    assert MARK in PAGE.read_text(encoding="utf-8")
    assert sorted(documented()) == PUBLIC


def test_public_signatures_speak_in_public_or_standard_types():
    """A type that a caller must name to use the API is part of the API."""
    inside = {
        name
        for module in modules()
        for name, value in vars(importlib.import_module(module)).items()
        if inspect.isclass(value) and value.__module__.startswith("sourcepanel.")
    }
    hidden = {}
    for name in PUBLIC:
        value = getattr(sourcepanel, name)
        if inspect.isfunction(value):
            words = set(re.findall(r"\w+", " ".join(map(str, inspect.get_annotations(value).values()))))
            if leak := (words & inside) - set(PUBLIC):
                hidden[name] = leak
    assert hidden == {}


def test_importing_the_package_brings_neither_mkdocs_nor_torch():
    script = "import sys, sourcepanel; print([m for m in ('mkdocs', 'material', 'torch') if m in sys.modules])"
    run = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert run.stdout.strip() == "[]"
