"""The tiny repository with a version after v3.0 in which lines changed, and links to what became of them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from sourcepanel.config import Config, load_config
from sourcepanel.reference import Target
from sourcepanel.snapshot.base import git_blob_id
from tests.support import tree
from tests.support.tiny import URL, TinyRepo, write_config

TRAINING, PARALLEL = "tiny/training.py", "tiny/core/parallel.py"
TEXT = tree.TRAINING.decode().split("\n")
LAYERS = tree.PARALLEL.decode().split("\n")
NEXT = (
    tree.V3[TRAINING]
    .replace(b"loss = loss_func(model.forward(batch))", b"output = model.forward(batch)\n    loss = loss_func(output)")
    .replace(b"return self.model.weight\n", b"return self . model . weight\n")
    .replace(b"            return {**vars(self), **vars(other)}\n", b"            return None\n")
)


def at(text: str, lines: list[str] = TEXT) -> int:
    """The number of the line that holds this text."""
    return next(n for n, line in enumerate(lines, 1) if text in line)


STEP = (at("def train_step"), at("loss = loss_func") + 2)
WEIGHT = (at("return self.model.weight"), at("return self.model.weight"))
TOTAL = (at("total = 0.0"), at("return total"))
ROW = (at("class RowParallel", LAYERS), len(LAYERS) - 1)
ALL = (1, len(TEXT) - 1)
OLD_LINE, NEW_LINES = (
    "    loss = loss_func(model.forward(batch))",
    ["    output = model.forward(batch)", "    loss = loss_func(output)"],
)


def target(path: str, lines: tuple[int, int] | None = None, **facts: Any) -> Target:
    """A target at the pin."""
    start, end = lines or (None, None)
    known: dict[str, Any] = {"kind": "interior" if lines else "file", "symbol": None, "has_text": True}
    known |= {"blob": git_blob_id(tree.V2[path]), "href": f"{URL}/blob/v2.0/{path}", **facts}
    return Target(repository="tiny", path=path, start=start, end=end, **known)


TARGETS = [
    target(TRAINING, STEP), target(TRAINING, WEIGHT), target(TRAINING, TOTAL), target(PARALLEL, ROW),
    target(TRAINING), target("pretrain.py", (1, 2)), target(TRAINING, ALL),
]  # fmt: skip


def offer(repo: TinyRepo, root: Path) -> Config:
    """The pin v2.0; the panel offers a version after v3.0, where lines have also changed."""
    (repo.path / TRAINING).write_bytes(NEXT)
    (repo.path / "pretrain.py").unlink()
    repo.git("commit", "--quiet", "--all", "--message", "Next")
    repo.git("tag", "v4.0")
    path = write_config(root, repo)
    listed = [("v3.0", "3.0", "false"), ("v4.0", "4.0", "true")]
    for ref, wheel, shown in listed:
        commit = repo.git("rev-parse", f"{ref}^{{commit}}")
        table = f'ref = "{ref}"\ncommit = "{commit}"\nwheel = "{wheel}"\npanel = {shown}\n'
        path.write_text(f"{path.read_text()}\n[[repositories.versions]]\n{table}")
    return load_config(path)
