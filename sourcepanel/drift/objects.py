"""A git repository that holds both trees, so that one line diff serves a clone and two wheels alike."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from sourcepanel.drift.linemap import Git
from sourcepanel.errors import SnapshotUnavailable
from sourcepanel.snapshot import PinnedSnapshot, Snapshot
from sourcepanel.snapshot.git import GitSnapshot, aimed_at

if TYPE_CHECKING:
    from git.cmd import Git as Command


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
    before, after = _of_clone(old), _of_clone(new)
    if before and after and before.folder == after.folder:
        yield Pair(before.git, before.commit, after.commit, history=_related(before, after))
        return
    try:
        # Not at the top: the import fails where git is missing, and the other commands need no git.
        from git.cmd import Git as Command
    except ImportError:
        raise SnapshotUnavailable("git is not installed", fix="install git") from None
    with tempfile.TemporaryDirectory(prefix="sourcepanel-drift-") as name:
        folder = Path(name)
        command = Command(folder)
        # Inside a git hook, git's own variables name the repository that is being committed to.
        command.update_environment(**aimed_at(folder, folder))
        command.init("--quiet", "--bare", "--template=")
        for branch, snapshot in (("old", old), ("new", new)):
            _import(command, folder / branch, snapshot)

        def git(*args: str) -> str:
            words = ["git", "-c", "core.quotepath=off", *args]
            data = command.execute(words, stdout_as_string=False, strip_newline_in_stdout=False)
            return bytes(data).decode("utf-8", errors="replace")

        yield Pair(git, "refs/heads/old", "refs/heads/new", history=False)


def _of_clone(snapshot: Snapshot) -> GitSnapshot | None:
    """The clone behind a snapshot."""
    inner = snapshot.inner if isinstance(snapshot, PinnedSnapshot) else snapshot
    return inner if isinstance(inner, GitSnapshot) else None


def _related(old: GitSnapshot, new: GitSnapshot) -> bool:
    """Whether a merge base is there: a shallow clone holds the commits without what lies between."""
    try:
        return bool(old.git("merge-base", old.commit, new.commit).strip())
    except SnapshotUnavailable:
        return False


def _import(git: Command, file: Path, snapshot: Snapshot) -> None:
    """Write one tree as a branch of the file's name, by git-fast-import(1)."""
    with file.open("wb+") as stream:
        stream.write(b"commit refs/heads/%s\ncommitter sourcepanel <> 0 +0000\ndata 0\n" % file.name.encode())
        for path in snapshot.list():
            data = snapshot.read(path)
            quoted = path.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
            stream.write(b'M 100644 inline "%s"\ndata %d\n%s\n' % (quoted.encode(), len(data), data))
        stream.write(b"done\n")
        stream.seek(0)
        git.fast_import("--quiet", "--done", istream=stream)
