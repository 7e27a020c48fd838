"""The engine is general: its wheel, installed in an empty environment, builds a site about another project."""

from __future__ import annotations

import ast
import json
import os
import re
import shutil
import subprocess
import sys
import tomllib
import venv
from pathlib import Path

import pytest

from sourcepanel.mkdocs_adapter import on_config

ROOT = Path(__file__).resolve().parent.parent
EXAMPLE = ROOT / "examples/toolz"


def run(*command: object, cwd: Path) -> subprocess.CompletedProcess[str]:
    """Run without anything of ours in the environment; what fails is shown."""
    ours = ("SOURCEPANEL_", "PYTHON", "VIRTUAL_ENV", "GIT_")
    env = {name: value for name, value in os.environ.items() if not name.startswith(ours)}
    env |= {"SOURCEPANEL_BACKEND": "wheel", "PIP_DISABLE_PIP_VERSION_CHECK": "1", "NO_MKDOCS_2_WARNING": "1"}
    done = subprocess.run([str(part) for part in command], cwd=cwd, env=env, capture_output=True, text=True)
    assert done.returncode == 0, f"{command}:\n{done.stdout}\n{done.stderr}"
    return done


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The wheel of this working tree, built in a copy so that nothing is left here."""
    copy = tmp_path_factory.mktemp("tree")
    for name in ("pyproject.toml", "README.en.md", "LICENSE"):
        shutil.copy(ROOT / name, copy / name)
    shutil.copytree(ROOT / "sourcepanel", copy / "sourcepanel", ignore=shutil.ignore_patterns("__pycache__"))
    out = tmp_path_factory.mktemp("dist")
    run(sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "--wheel-dir", out, copy, cwd=copy)
    (made,) = out.glob("*.whl")
    return made


@pytest.fixture(scope="module")
def installed(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The `bin` folder of an environment that holds the wheel, MkDocs and what they require."""
    folder = tmp_path_factory.mktemp("empty") / "venv"
    venv.create(folder, with_pip=True)
    programs = folder / ("Scripts" if os.name == "nt" else "bin")
    # mkdocs alone: no theme, and no Markdown extension but its own.
    pins = ["--constraint", ROOT / "constraints.txt"]
    run(programs / "python", "-m", "pip", "install", "--quiet", *pins, wheel, "mkdocs", cwd=folder)
    return programs


@pytest.fixture
def example(tmp_path: Path) -> Path:
    """Our own copy, with a cache that nothing else fills."""
    shutil.copytree(EXAMPLE, tmp_path / "toolz", ignore=shutil.ignore_patterns(".cache", "site", "__pycache__"))
    return tmp_path / "toolz"


def test_the_wheel_holds_the_engine_and_what_the_browser_needs(wheel: Path) -> None:
    names = subprocess.run(
        [sys.executable, "-m", "zipfile", "--list", wheel], capture_output=True, text=True, check=True
    ).stdout
    assets = {path.name for path in (ROOT / "sourcepanel/assets").glob("*.*s") if path.suffix in (".js", ".css")}
    assert assets
    for name in assets:
        assert f"sourcepanel/assets/{name}" in names
    assert not re.search(r"^(tests|docs|runnable|hooks|bench)/", names, re.M)


def test_an_empty_environment_builds_the_example(installed: Path, example: Path) -> None:
    """Extension, hook module and command all come with the wheel; the source comes from the package index."""
    checked = json.loads(run(installed / "sourcepanel", "check", "--json", cwd=example).stdout)
    assert checked["diagnostics"] == []
    assert checked["counts"]["references"] == checked["counts"]["from_source"] == 9
    run(installed / "mkdocs", "build", "--strict", "--quiet", cwd=example)
    page = (example / "site/index.html").read_text(encoding="utf-8")
    assert 'data-src="toolz/toolz/functoolz.py#L218-L221"' in page
    assert (example / "site/sourcepanel/src/toolz/toolz/functoolz.py.js").is_file()
    script = (
        "import markdown, pathlib, sourcepanel.mkdocs_adapter\n"
        "print(markdown.markdown(pathlib.Path('docs/index.md').read_text(), extensions=['tables', 'sourcepanel']))"
    )
    rendered = run(installed / "python", "-c", script, cwd=example).stdout
    assert rendered.count('class="sp-link"') == 9


def test_a_slip_in_the_example_is_caught(installed: Path, example: Path) -> None:
    page = example / "docs/index.md"
    page.write_text(page.read_text().replace("#L218-L221", "#L218-L222"))
    with pytest.raises(AssertionError, match=r"the lock does not hold toolz:toolz/functoolz\.py#L218-L222"):
        run(installed / "sourcepanel", "check", cwd=example)


def test_the_configuration_is_about_a_dozen_lines() -> None:
    text = (EXAMPLE / "sourcepanel.toml").read_text()
    assert len(text.splitlines()) <= 12
    assert [repository["name"] for repository in tomllib.loads(text)["repositories"]] == ["toolz"]


def test_the_hook_names_every_event_of_the_adapter() -> None:
    def listed(path: Path) -> set[str]:
        tree = ast.parse(path.read_text(encoding="utf-8"))
        return {alias.name for node in ast.walk(tree) if isinstance(node, ast.ImportFrom) for alias in node.names}

    adapter = sys.modules[on_config.__module__]
    events = {name for name in vars(adapter) if name.startswith("on_")}
    assert listed(EXAMPLE / "hook.py") == listed(ROOT / "hooks/source_panel.py") == events
