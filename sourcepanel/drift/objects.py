"""A git repository that holds both trees, so that one line diff serves a clone and two wheels alike."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from git import Repo

from sourcepanel.drift.linemap import Git
from sourcepanel.errors import SnapshotUnavailable
from sourcepanel.snapshot import Snapshot
from sourcepanel.snapshot.git import GitSnapshot


@dataclass(frozen=True)
class Pair:
    """Two commits in one repository."""

    git: Git
    old: str
    new: str
    history: bool
    """Whether the commits between them are there too."""


@contextmanager
def paired(old: Snapshot, new: Snapshot) -> Iterator[Pair]:
    """The clone itself when both sides are commits of it; else a scratch repository that lasts as long as the block."""
    if isinstance(old, GitSnapshot) and isinstance(new, GitSnapshot) and old.folder == new.folder:
        yield Pair(old.git, old.commit, new.commit, history=_related(old, new))
        return
    with tempfile.TemporaryDirectory(prefix="sourcepanel-drift-") as folder:
        repo = Repo.init(folder, bare=True)
        try:
            for name, snapshot in (("old", old), ("new", new)):
                _import(repo, name, snapshot)

            def git(*args: str) -> str:
                command = ["git", "-c", "core.quotepath=off", *args]
                data = repo.git.execute(command, stdout_as_string=False, strip_newline_in_stdout=False)
                return bytes(data).decode("utf-8", errors="replace")

            yield Pair(git, "refs/heads/old", "refs/heads/new", history=False)
        finally:
            repo.close()


def _related(old: GitSnapshot, new: GitSnapshot) -> bool:
    """Whether a merge base is there: a shallow clone holds the commits without what lies between."""
    try:
        return bool(old.git("merge-base", old.commit, new.commit).strip())
    except SnapshotUnavailable:
        return False


def _import(repo: Repo, name: str, snapshot: Snapshot) -> None:
    """Write one tree by git-fast-import(1)."""
    with (Path(repo.git_dir) / f"{name}.import").open("wb+") as stream:
        stream.write(b"commit refs/heads/%s\ncommitter sourcepanel <> 0 +0000\ndata 0\n" % name.encode())
        for path in snapshot.list():
            data = snapshot.read(path)
            quoted = path.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
            stream.write(b'M 100644 inline "%s"\ndata %d\n%s\n' % (quoted.encode(), len(data), data))
        stream.write(b"done\n")
        stream.seek(0)
        repo.git.fast_import("--quiet", "--done", istream=stream)
