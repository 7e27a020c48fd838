"""Builds the tiny repository and the tiny wheel."""

from __future__ import annotations

import base64
import hashlib
import os
import subprocess
import zipfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from sourcepanel.snapshot.base import git_blob_id
from tests.support import tree

BRANCH = "feature/deep/name"
"""A branch name with slashes; it stands at the pin."""
URL = "https://github.com/example/tiny"


@dataclass(frozen=True)
class TinyRepo:
    """A git repository with the versions v1.0, v2.0 (the pin) and v3.0 (checked out, branch main)."""

    path: Path
    commits: Mapping[str, str]
    """Tag → commit id; the same on every machine and in every run."""

    commit = property(lambda self: self.commits["v2.0"])
    files = property(lambda self: tree.V2)
    """Path → bytes of every regular file at the pin."""
    blobs = property(lambda self: {path: git_blob_id(data) for path, data in tree.V2.items()})

    def git(self, *args: str) -> str:
        """Run git in this repository; returns what it prints."""
        return git(self.path, *args)


def git(path: Path, *args: str) -> str:
    """Run git with no one's settings but ours, so that ids do not depend on the machine."""
    env = {name: value for name, value in os.environ.items() if not name.startswith("GIT_")}
    env |= {"GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_NOSYSTEM": "1"}
    for role in ("AUTHOR", "COMMITTER"):
        env |= {f"GIT_{role}_NAME": "Tiny", f"GIT_{role}_EMAIL": "tiny@example.org"}
        env |= {f"GIT_{role}_DATE": "2026-01-01T00:00:00+0000"}
    command = ["git", "-c", "core.autocrlf=false", "-c", "core.quotepath=false", *args]
    done = subprocess.run(command, cwd=path, env=env, capture_output=True, text=True)
    assert done.returncode == 0, f"{' '.join(command)}: {done.stderr}"
    return done.stdout.strip()


def build_repo(path: Path) -> TinyRepo:
    """Three commits, each tagged, and a branch with slashes at the second."""
    path.mkdir(parents=True)
    git(path, "init", "--quiet", "--initial-branch=main")
    commits: dict[str, str] = {}
    previous: Mapping[str, bytes] = {}
    for tag, files in (("v1.0", tree.V1), ("v2.0", tree.V2), ("v3.0", tree.V3)):
        for name in previous.keys() - files.keys():
            (path / name).unlink()
        write_files(path, files)
        (path / tree.EXECUTABLE).chmod(0o755)
        for name, target in tree.SYMLINKS.items():
            if not (path / name).is_symlink():
                (path / name).symlink_to(target)
        git(path, "add", "--all", "--force")
        submodule = commits.get("v1.0", "1" * 40)
        git(path, "update-index", "--add", "--cacheinfo", f"160000,{submodule},{tree.SUBMODULE}")
        git(path, "commit", "--quiet", "--message", f"Version {tag}")
        git(path, "tag", tag)
        commits[tag] = git(path, "rev-parse", "HEAD")
        previous = files
    git(path, "branch", BRANCH, "v2.0")
    return TinyRepo(path, commits)


def write_files(root: Path, files: Mapping[str, bytes]) -> None:
    """Write each file below `root`, folders too."""
    for name, data in files.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_bytes(data)


def wheel_files(files: Mapping[str, bytes] | None = None) -> dict[str, bytes]:
    """The part of the pin that the wheel carries: the package, not the root scripts."""
    return {path: data for path, data in (files or tree.V2).items() if path.startswith("tiny/")}


def build_wheel(
    folder: Path, files: Mapping[str, bytes] | None = None, *, record: bytes | None = None, version: str = "2.0"
) -> Path:
    """A wheel of package `tiny-engine`; `record` replaces the RECORD that belongs to the files."""
    files = wheel_files() if files is None else files
    info = f"tiny_engine-{version}.dist-info"
    members = {
        **files,
        f"{info}/METADATA": f"Metadata-Version: 2.1\nName: tiny-engine\nVersion: {version}\n".encode(),
        f"{info}/WHEEL": b"Wheel-Version: 1.0\nGenerator: tests\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
    }
    rows = [f"{name},{_record_hash(data)},{len(data)}" for name, data in members.items()]
    members[f"{info}/RECORD"] = record or "\n".join([*rows, f"{info}/RECORD,,", ""]).encode()
    folder.mkdir(parents=True, exist_ok=True)
    wheel = folder / f"tiny_engine-{version}-py3-none-any.whl"
    with zipfile.ZipFile(wheel, "w") as archive:
        for name, data in members.items():
            archive.writestr(zipfile.ZipInfo(name, (2026, 1, 1, 0, 0, 0)), data)
    return wheel


def _record_hash(data: bytes) -> str:
    digest = base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=")
    return f"sha256={digest.decode()}"


def write_config(root: Path, repo: TinyRepo, *, extra: str = "") -> Path:
    """A project folder: `sourcepanel.toml`, `mkdocs.yml`, an empty `docs/`; returns the toml's path.

    `extra` goes in front of the tables, e.g. `exclude = ["drafts/*"]`.
    """
    (root / "docs").mkdir(parents=True, exist_ok=True)
    (root / "mkdocs.yml").write_text("site_name: tiny\nmarkdown_extensions: [tables, footnotes, admonition, toc]\n")
    path = root / "sourcepanel.toml"
    path.write_text(f"""{extra}
[[repositories]]
name = "tiny"
url = "{URL}"
ref = "v2.0"
commit = "{repo.commit}"
checkout = "{repo.path.as_posix()}"

[[repositories.aliases]]
url = "https://github.com/someone/tiny-study"
refs = ["main"]

[repositories.wheel]
package = "tiny-engine"
version = "2.0"

[repositories.license]
holder = "Tiny Authors"
name = "Tiny licence"
path = "LICENSE"
""")
    return path
