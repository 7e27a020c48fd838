"""Builds of the site for the browser: the real one, the real one with instant navigation, and a small one to search."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
_PARTS = ("docs", "hooks", "overrides", "mkdocs.yml", "sourcepanel.toml", "sourcepanel.lock", "sourcepanel.graph")


def copy_project(folder: Path) -> Path:
    """All that the site is built from, free to be changed; it shares the cache of pinned sources."""
    for name in _PARTS:
        source = ROOT / name
        if source.is_dir():
            shutil.copytree(source, folder / name, ignore=shutil.ignore_patterns("__pycache__"))
        else:
            folder.mkdir(parents=True, exist_ok=True)
            shutil.copy2(source, folder / name)
    return folder


def mkdocs(project: Path, out: Path, *options: str, site_url: str = "") -> subprocess.CompletedProcess[str]:
    """Build a project into `out`, with no one's settings but ours."""
    env = {name: value for name, value in os.environ.items() if not name.startswith("SOURCEPANEL_")}
    env |= {
        "NO_MKDOCS_2_WARNING": "1",
        "PYTHONPATH": str(ROOT),
        "SITE_URL": site_url,
        "SOURCEPANEL_CACHE": str(ROOT / ".cache/sourcepanel"),
    }
    command = [sys.executable, "-m", "mkdocs", "build", "--site-dir", str(out), *options]
    return subprocess.run(command, cwd=project, env=env, capture_output=True, text=True)


def build(project: Path, out: Path, *, strict: bool = True, site_url: str = "") -> Path:
    """Build and return `out`; a build that fails ends the test with all it said."""
    done = mkdocs(project, out, *(["--strict"] if strict else []), site_url=site_url)
    assert done.returncode == 0, done.stderr
    return out


def build_pages(folder: Path, pages: Mapping[str, str]) -> Path:
    """A site of these pages with the real site's configuration, look and search, but without the source panel."""
    docs = folder / "docs"
    docs.mkdir(parents=True)
    shutil.copytree(ROOT / "docs/assets", docs / "assets")
    for name, text in pages.items():
        (docs / name).write_text(text, encoding="utf-8")
    nav = "".join(f"  - {name}\n" for name in pages)
    config = folder / "mkdocs.yml"
    config.write_text(
        f"INHERIT: {ROOT}/mkdocs.yml\ndocs_dir: docs\nhooks: []\nnav:\n{nav}"
        f"theme:\n  custom_dir: {ROOT}/overrides\nextra:\n  sourcepanel:\n    pins: []\n    strings: {{}}\n",
        encoding="utf-8",
    )
    done = mkdocs(ROOT, folder / "site", "--strict", "--config-file", str(config))
    assert done.returncode == 0, done.stderr
    return folder / "site"
