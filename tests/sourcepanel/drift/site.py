"""A site whose pinned repository has a next version: what `drift` and `repin` work on."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from click.testing import CliRunner, Result

from sourcepanel.cli import main
from tests.support.tiny import git, write_files

URL = "https://github.com/example/engine"

LOOP = """\
import os

LIMIT = 3


def helper(a, b):
    total = a + b
    report(total)
    return total


def step(model, batch):
    losses = []
    for micro in batch.split(4):
        loss = model.forward(micro)
        loss.backward()
        losses.append(loss.item())
    clip_gradients(model, len(losses))
    return sum(losses)


class Engine:
    def start(self, speed):
        self.speed = speed
        warm_up(self.speed)
        return self

    def stop(self):
        self.speed = 0
        cool_down(self)


def old_way(model):
    model.legacy_forward()
    model.legacy_backward()
    return model.legacy_state()
"""
NEXT = (
    '"""A new docstring."""\n\n'
    + LOOP[: LOOP.index("def old_way")]
    .replace("LIMIT = 3", "LIMIT = 4")
    .replace("def start(self, speed):", "def start(self, speed, gear=1):")
    .replace("loss.item()", "float(loss.detach())")
    .rstrip()
    + "\n"
)
DATA = (
    "def read(path):\n    with open(path) as stream:\n        return stream.readlines()\n\n\nSIZE = 10\nNAMES = ['a']\n"
)
OLD_FILES = {
    "engine/loop.py": LOOP.encode(),
    "engine/data.py": DATA.encode(),
    "engine/stay.py": b"def stay():\n    first_line_of_it()\n    return 1\n",
    "LICENSE": b"Do what you like.\n",
    "README.md": b"# Engine\n",
}
NEW_FILES = {
    "engine/loop.py": NEXT.encode(),
    "engine/io/data.py": DATA.encode(),
    "engine/stay.py": OLD_FILES["engine/stay.py"],
    "LICENSE": b"Do what you like.\n",
    "README.md": b"# Engine\n\nMore.\n",
}


@dataclass(frozen=True)
class Site:
    """A project folder in git, and the clone that its configuration names."""

    root: Path
    clone: Path
    commits: Mapping[str, str]

    def run(self, *args: object) -> Result:
        return CliRunner().invoke(main, ["--config", str(self.root), *(str(arg) for arg in args)])

    def page(self, name: str = "note.md") -> bytes:
        return (self.root / "docs" / name).read_bytes()

    def files(self) -> dict[str, bytes]:
        """Everything in the project but git's own and the cache."""
        paths = (path for path in self.root.rglob("*") if path.is_file())
        names = {path.relative_to(self.root).as_posix(): path for path in paths}
        return {n: p.read_bytes() for n, p in names.items() if not n.startswith((".git/", ".cache/"))}

    def git(self, *args: str) -> str:
        return git(self.root, *args)

    def commit(self) -> None:
        self.git("add", "--all")
        self.git("commit", "--quiet", "--allow-empty", "--message", "state")


def build_site(
    folder: Path,
    pages: Mapping[str, bytes],
    *,
    old: Mapping[str, bytes] = OLD_FILES,
    new: Mapping[str, bytes] = NEW_FILES,
    toml: str = "",
) -> Site:
    """Both versions tagged (v1, v2), the pages locked at v1 and all committed."""
    clone = folder / "engine"
    clone.mkdir(parents=True)
    git(clone, "init", "--quiet", "--initial-branch=main")
    commits = {}
    for tag, files in (("v1", old), ("v2", new)):
        for path in [p for p in clone.rglob("*") if p.is_file() and ".git/" not in p.as_posix()]:
            path.unlink()
        write_files(clone, files)
        git(clone, "add", "--all")
        git(clone, "commit", "--quiet", "--message", tag)
        git(clone, "tag", tag)
        commits[tag] = git(clone, "rev-parse", "HEAD")
    root = folder / "site"
    write_files(root / "docs", pages)
    (root / "mkdocs.yml").write_text("site_name: s\nmarkdown_extensions: [tables, footnotes, pymdownx.superfences]\n")
    (root / ".gitignore").write_text(".cache/\n")
    (root / "sourcepanel.toml").write_bytes(
        f"""# The pin.
[[repositories]]
name = "engine"
url = "{URL}"   # where
ref = "v1"
commit = "{commits["v1"]}"
checkout = "{clone.as_posix()}"

[[repositories.aliases]]
url = "https://github.com/someone/engine-study"
refs = ["main"]

[repositories.license]
holder = "Engine"
name = "Free"
path = "LICENSE"
{toml}""".encode()
    )
    site = Site(root, clone, commits)
    git(root, "init", "--quiet")
    locked = site.run("lock")
    assert locked.exit_code == 0, locked.output
    site.commit()
    return site


def lines(block: str, *, text: str = LOOP) -> str:
    """The fragment of the lines where this block stands."""
    start = text[: text.index(block)].count("\n") + 1
    end = start + block.rstrip("\n").count("\n")
    return f"L{start}" if start == end else f"L{start}-L{end}"
