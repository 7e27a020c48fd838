"""The two sites that `bench/panel.py` opens: ours under Material, and Sphinx's viewcode of the same files."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from sphinx.application import Sphinx
from sphinx.pycode import ModuleAnalyzer

from sourcepanel.config import CONFIG_NAME, load_config
from sourcepanel.source import Source
from sourcepanel.symbols import Symbol

ROOT = Path(__file__).resolve().parent.parent
SMALL, LAYERS = "megatron/core/num_microbatches_calculator.py", "megatron/core/tensor_parallel/layers.py"


@dataclass(frozen=True)
class File:
    """A file to open, and the definition nearest to its middle."""

    path: str
    lines: int
    symbol: str
    line: int

    @property
    def module(self) -> str:
        """Dotted name."""
        return self.path.removesuffix(".py").replace("/", ".")


def choose(source: Source) -> list[File]:
    """The small file, `layers.py`, and the longest Python file of the snapshot."""
    python = [path for path in source.snapshot.list() if path.endswith(".py") and path.startswith("megatron/")]
    longest = max(python, key=lambda path: source.snapshot.read(path).count(b"\n"))
    return [_file(source, path) for path in (SMALL, LAYERS, longest)]


def _file(source: Source, path: str) -> File:
    file = source.file(path)
    lines = len(file.lines)

    def off(symbol: Symbol) -> int:
        return abs(symbol.start - lines // 2)

    known = [one for one in file.symbols.symbols if one.kind != "variable" and len(file.symbols.get(one.name)) == 1]
    # Nested functions have no place of their own on a page of viewcode.
    middle = min((one for one in known if one.kind == "method" or "." not in one.name), key=off)
    return File(path, lines, middle.name, middle.start)


def build_ours(folder: Path, files: Sequence[File]) -> Path:
    """A page with a link to each definition, under Material with the engine's hook; returns the site."""
    own = tomllib.loads((ROOT / CONFIG_NAME).read_text(encoding="utf-8"))["repositories"][0]
    (folder / CONFIG_NAME).write_text(
        f'extent = "linked"\n[[repositories]]\nname = "{own["name"]}"\nurl = "{own["url"]}"\nref = "{own["ref"]}"\n'
        f'commit = "{own["commit"]}"\n[repositories.wheel]\npackage = "{own["wheel"]["package"]}"\n'
        f'version = "{own["wheel"]["version"]}"\n[repositories.license]\nholder = "{own["license"]["holder"]}"\n'
        f'name = "{own["license"]["name"]}"\npath = "{own["license"]["path"]}"\n',
        encoding="utf-8",
    )
    (folder / "mkdocs.yml").write_text(
        "site_name: Bench\nuse_directory_urls: false\ntheme: {name: material, font: false}\n"
        f"hooks: [{json.dumps(str(ROOT / 'hooks/source_panel.py'))}]\n",
        encoding="utf-8",
    )
    prose = "A paragraph that the panel moves to the side when it opens, as it does in a note. " * 6
    links = "\n".join(f"`{file.path}::{file.symbol}`\n\n{prose}\n" for file in files)
    (folder / "docs").mkdir()
    (folder / "docs/index.md").write_text(f"# Bench\n\n{links}\n{(prose + chr(10) * 2) * 40}", encoding="utf-8")
    environment = {**os.environ, "NO_MKDOCS_2_WARNING": "1", "SOURCEPANEL_CACHE": str(load_config(ROOT).cache_dir)}
    for command in (["sourcepanel", "lock"], ["mkdocs", "build", "--strict"]):
        program = [str(Path(sys.executable).with_name(command[0])), *command[1:]]
        done = subprocess.run(program, cwd=folder, env=environment, capture_output=True, text=True, check=False)
        if done.returncode:
            sys.exit(f"{' '.join(command)} failed in the measured site\n{done.stdout}{done.stderr}")
    shutil.copy(ROOT / "bench/naive_panel.js", folder / "site/naive_panel.js")
    return folder / "site"


def build_viewcode(folder: Path, source: Source, files: Sequence[File]) -> Path:
    """Sphinx pages with a `[source]` link to each definition and one page a module; nothing is imported."""
    texts = {file.module: source.file(file.path).text for file in files}
    names = "\n".join(
        f".. py:module:: {file.module}\n\n.. py:{'method' if '.' in file.symbol else 'function'}:: {file.symbol}\n"
        for file in files
    )
    (folder / "index.rst").write_text(f"Bench\n=====\n\n{names}", encoding="utf-8")
    app = Sphinx(
        folder, None, folder / "_site", folder / "_trees", "html", status=None, warning=None,
        confoverrides={"extensions": ["sphinx.ext.viewcode"], "viewcode_follow_imported_members": False},
    )  # fmt: skip

    def find(_app: Sphinx, module: str) -> tuple[str, Mapping[str, Any]]:
        analyzer = ModuleAnalyzer.for_string(texts[module], module)
        return texts[module], analyzer.find_tags()

    app.connect("viewcode-find-source", find)
    app.build()
    for file in files:
        page = folder / "_site/_modules" / f"{file.module.replace('.', '/')}.html"
        if f'id="{file.symbol}"' not in page.read_text(encoding="utf-8"):
            sys.exit(f"Sphinx's page of {file.module} has no place for {file.symbol}")
    return folder / "_site"
