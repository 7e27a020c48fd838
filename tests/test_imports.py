"""The import rules of the design, read from the syntax trees: nothing is imported to find out.

Each rule is a function from a project folder to its violations, and each is shown to fail on a small project
that breaks it.
"""

from __future__ import annotations

import ast
import functools
import graphlib
import importlib.metadata
import re
import sys
import tomllib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent

LAYERS = (
    "errors",
    "files",
    "journal",
    "diagnostics",
    "config",
    "symbols",
    "cpp_symbols",
    "symbol_cache",
    "strings",
    "likeness",
    "reference",
    "snapshot",
    "lock",
    "source",
    "xref",
    "rawhtml",
    "locate",
    "markdown",
    "collect",
    "traces",
    "notes",
    "names",
    "verify",
    "ledger",
    "pagecheck",
    "project",
    "relock",
    "drift",
    "authoring",
    "standalone",
    "render",
    "events",
    "mentions",
    "backlinks",
    "sections",
    "marks",
    "panelindex",
    "versions_view",
    "panel_assets",
    "panel",
    "coverage",
    "graph",
    "static_pages",
    "mkdocs_adapter",
    "cli",
    "__main__",
)
"""Modules and packages of sourcepanel, lowest first: each may import those before it, never those after it.

The package's own `__init__` re-exports and stands above all but the command line and the adapter, which
import modules and not the package.
"""

ADAPTER = "sourcepanel.mkdocs_adapter"
RUNNABLE = {"megatron", "numpy", "pydantic", "rich", "runnable", "sourcepanel", "torch", "yaml"}
RUNNABLE_SOURCEPANEL = {"sourcepanel.snapshot", "sourcepanel.config", "sourcepanel.errors"}
MAX_LINES = 400
TABLES = {"sourcepanel/strings.py"}
"""Not modules that do something: they grow with the site."""
MAX_HOOK_LINES = 60


@dataclass(frozen=True)
class Import:
    """One imported module, where it is imported."""

    module: str
    """Importing module: `sourcepanel.snapshot.git`."""
    name: str
    """Imported module, or module and attribute: `sourcepanel.errors.PathNotFound` for a `from` import."""
    place: str
    typing: bool = False
    """Stands under `if TYPE_CHECKING:`, so it happens for a type checker only."""

    @property
    def top(self) -> str:
        return self.name.partition(".")[0]


@functools.cache
def dependencies() -> frozenset[str]:
    """Import names of what pyproject.toml lists under `dependencies`, and of the two that those hand through."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    listed = {_normal(re.split(r"[<>=!~\[; ]", requirement, maxsplit=1)[0]) for requirement in project["dependencies"]}
    names = importlib.metadata.packages_distributions().items()
    return frozenset(
        {name for name, packages in names if listed & set(map(_normal, packages))} | {"gitdb", "pydantic_core"}
    )


def _normal(name: str) -> str:
    return name.lower().replace("_", "-")


def python_files(root: Path, *folders: str) -> list[Path]:
    return sorted(path for folder in folders for path in (root / folder).rglob("*.py"))


def module_name(path: Path, root: Path) -> str:
    parts = path.relative_to(root).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def imports(path: Path, root: Path) -> Iterator[Import]:
    """Every import statement of a file, those inside functions and `if TYPE_CHECKING` too."""
    module = module_name(path, root)
    package = module if path.name == "__init__.py" else module.rpartition(".")[0]
    tree = ast.parse(path.read_text(encoding="utf-8"))
    guarded = {id(inner) for node in ast.walk(tree) if _is_typing_guard(node) for inner in ast.walk(node)}
    for node in ast.walk(tree):
        place, typing = f"{path.relative_to(root)}:{getattr(node, 'lineno', 0)}", id(node) in guarded
        if isinstance(node, ast.Import):
            yield from (Import(module, alias.name, place, typing) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            base = node.module or ""
            if node.level:
                above = package.split(".")[: len(package.split(".")) - node.level + 1]
                base = ".".join([*above, *filter(None, [base])])
            yield from (Import(module, f"{base}.{alias.name}", place, typing) for alias in node.names)


def _is_typing_guard(node: ast.AST) -> bool:
    return isinstance(node, ast.If) and ast.unparse(node.test) in ("TYPE_CHECKING", "typing.TYPE_CHECKING")


def all_imports(root: Path, *folders: str) -> list[Import]:
    return [found for path in python_files(root, *folders) for found in imports(path, root)]


def foreign_to_core(root: Path) -> list[str]:
    """The engine imports the standard library and its declared dependencies; one adapter knows MkDocs."""
    known = dependencies() | sys.stdlib_module_names | {"sourcepanel"}
    return [
        f"{i.place}: {i.module} imports {i.name}"
        for i in all_imports(root, "sourcepanel")
        if i.top not in known and not (i.module == ADAPTER and i.top in ("mkdocs", "jinja2"))
    ]


def layer(name: str) -> str:
    """`sourcepanel.snapshot.git` → `snapshot`; the package itself → empty."""
    return [*name.split("."), ""][1]


def upward(root: Path) -> list[str]:
    """No module of the engine looks back up; a new module needs its place in LAYERS."""
    rank = {name: position for position, name in enumerate(LAYERS)}
    found = []
    for path in python_files(root, "sourcepanel"):
        name = layer(module_name(path, root))
        if name and name not in rank:
            found.append(f"{path.relative_to(root)}: {name} has no place in LAYERS (tests/test_imports.py)")
    for i in all_imports(root, "sourcepanel"):
        own, other = layer(i.module), layer(i.name)
        if i.top != "sourcepanel" or not own:
            continue
        if other not in rank:
            found.append(f"{i.place}: {i.module} imports {i.name} from the package; import the module it lives in")
        elif rank.get(own, 0) < rank[other]:
            found.append(f"{i.place}: {own} is below {other} and may not import it")
    return found


def cycles(root: Path) -> list[str]:
    """No import cycle between modules, inside packages either; types alone may point both ways."""
    modules = {module_name(path, root) for path in python_files(root, "sourcepanel", "runnable")}
    graph: dict[str, set[str]] = {module: set() for module in modules}
    for i in all_imports(root, "sourcepanel", "runnable"):
        target = i.name if i.name in modules else i.name.rpartition(".")[0]
        if target in modules and target != i.module and not i.typing:
            graph[i.module].add(target)
    try:
        graphlib.TopologicalSorter(graph).prepare()
    except graphlib.CycleError as error:
        return [" → ".join(error.args[1])]
    return []


def lab_borrowing(root: Path) -> list[str]:
    """`runnable/` takes from the engine only where the snapshot lies, and nothing of the site imports the lab."""
    known = RUNNABLE | sys.stdlib_module_names
    found = []
    for i in all_imports(root, "runnable"):
        borrowed = i.top == "sourcepanel" and ".".join(i.name.split(".")[:2]) not in RUNNABLE_SOURCEPANEL
        if borrowed or i.top not in known:
            found.append(f"{i.place}: {i.module} imports {i.name}")
    site = all_imports(root, "sourcepanel", "hooks")
    return found + [f"{i.place}: {i.module} imports {i.name}" for i in site if i.top in ("runnable", "torch")]


def thick_hooks(root: Path) -> list[str]:
    """Hooks parse event arguments and call sourcepanel; their folder goes first on sys.path, so names matter."""
    found = []
    packages = {path.name for path in root.iterdir() if path.is_dir()} | sys.stdlib_module_names | dependencies()
    for path in python_files(root, "hooks"):
        lines = len(path.read_text(encoding="utf-8").splitlines())
        if lines >= MAX_HOOK_LINES:
            found.append(f"{path.relative_to(root)}: {lines} lines, a hook has fewer than {MAX_HOOK_LINES}")
        if path.stem in packages | {"mkdocs", "material", "pymdownx", "jieba"}:
            found.append(f"{path.relative_to(root)}: would hide the package {path.stem}")
        found += [f"{i.place}: a hook has no regular expressions" for i in imports(path, root) if i.top == "re"]
    return found


def long_modules(root: Path) -> list[str]:
    """A module does one thing; past 400 lines it does two."""
    counts = {
        path.relative_to(root).as_posix(): len(path.read_text(encoding="utf-8").splitlines())
        for path in python_files(root, "sourcepanel", "hooks", "runnable", "tools", "bench")
    }
    return [f"{name}: {count} lines" for name, count in counts.items() if count > MAX_LINES and name not in TABLES]


RULES = (foreign_to_core, upward, cycles, lab_borrowing, thick_hooks, long_modules)


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.__name__)
def test_the_project_keeps_the_rule(rule):
    assert python_files(ROOT, "sourcepanel"), "nothing was looked at"
    assert rule(ROOT) == []


@pytest.mark.parametrize(
    ("rule", "files", "told"),
    [
        (foreign_to_core, {"sourcepanel/verify.py": "import mkdocs.plugins"}, "verify imports mkdocs.plugins"),
        (foreign_to_core, {"sourcepanel/verify.py": "def f():\n    import torch"}, "verify.py:2"),
        (foreign_to_core, {"sourcepanel/mkdocs_adapter.py": "from material import x"}, "imports material.x"),
        (upward, {"sourcepanel/errors.py": "from sourcepanel.config import Config"}, "errors is below config"),
        (upward, {"sourcepanel/errors.py": "from sourcepanel import config"}, "errors is below config"),
        (upward, {"sourcepanel/lock.py": "from .cli import main"}, "lock is below cli"),
        (upward, {"sourcepanel/snapshot/git.py": "from ..verify import V"}, "snapshot is below verify"),
        (upward, {"sourcepanel/cli.py": "import sourcepanel"}, "import the module it lives in"),
        (upward, {"sourcepanel/cli.py": "from sourcepanel import Config"}, "import the module it lives in"),
        (upward, {"sourcepanel/gadget.py": ""}, "gadget has no place in LAYERS"),
        (
            cycles,
            {"sourcepanel/snapshot/a.py": "from .b import B", "sourcepanel/snapshot/b.py": "from .a import A"},
            "sourcepanel.snapshot.a",
        ),
        (
            cycles,
            {"runnable/a.py": "def f():\n    import runnable.b", "runnable/b.py": "if x:\n    import runnable.a"},
            "runnable.a",
        ),
        (lab_borrowing, {"runnable/ch01.py": "from sourcepanel.verify import V"}, "imports sourcepanel.verify.V"),
        (lab_borrowing, {"runnable/ch01.py": "import pandas"}, "imports pandas"),
        (lab_borrowing, {"hooks/site_x.py": "import runnable.lab"}, "imports runnable.lab"),
        (thick_hooks, {"hooks/sourcepanel.py": ""}, "would hide the package sourcepanel"),
        (thick_hooks, {"hooks/site_x.py": "x = 1\n" * 60}, "60 lines"),
        (thick_hooks, {"hooks/site_x.py": "import re"}, "no regular expressions"),
        (long_modules, {"runnable/ch01.py": "x = 1\n" * 401}, "401 lines"),
    ],
)
def test_the_rule_catches_what_breaks_it(tmp_path, rule, files, told):
    for folder in ("sourcepanel/snapshot", "hooks", "runnable"):
        (tmp_path / folder).mkdir(parents=True)
    (tmp_path / "sourcepanel/__init__.py").touch()
    (tmp_path / "sourcepanel/config.py").write_text("from sourcepanel.errors import E\nimport yaml\n")
    (tmp_path / "runnable/pin.py").write_text("from sourcepanel.snapshot import x\nimport torch\n")
    (tmp_path / "hooks/site_ok.py").write_text("from sourcepanel.mkdocs_adapter import x\n")
    (tmp_path / "sourcepanel/errors.py").touch()
    typed = "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    import runnable.d\n"
    (tmp_path / "runnable/c.py").write_text(typed)
    (tmp_path / "runnable/d.py").write_text("import runnable.c\n")
    assert rule(tmp_path) == []
    for name, text in files.items():
        (tmp_path / name).write_text(text)
    assert told in "\n".join(rule(tmp_path))
