"""A snapshot in memory, and a pinned source made from it: what needs no git and no wheel."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from sourcepanel.config import License, Repository
from sourcepanel.errors import PathNotFound
from sourcepanel.lock import RepositoryLock
from sourcepanel.snapshot.base import git_blob_id
from sourcepanel.source import Source
from tests.support import tree
from tests.support.tiny import URL, wheel_files

COMMIT = "af5c6bfebf420b0c3282d43b2b65836555ea2e64"
TINY = Repository(
    name="tiny", url=URL, ref="v2.0", commit=COMMIT, license=License(holder="Tiny", name="Tiny", path="LICENSE")
)


@dataclass
class MemorySnapshot:
    """Any files; `complete=False` stands for the wheel."""

    files: Mapping[str, bytes] = field(default_factory=lambda: tree.V2)
    complete: bool = True
    commit: str = COMMIT
    reads: list[str] = field(default_factory=list)
    """Every path read, in order."""

    origin = property(lambda self: "a whole tree" if self.complete else "tiny-engine 2.0")

    def list(self) -> tuple[str, ...]:
        return tuple(sorted(self.files))

    def read(self, path: str) -> bytes:
        self.reads.append(path)
        if path not in self.files:
            raise PathNotFound(path)
        return self.files[path]

    def blob_id(self, path: str) -> str:
        return git_blob_id(self.read(path))


def whole(*, locked: RepositoryLock | None = None, files: Mapping[str, bytes] | None = None) -> Source:
    """The tiny repository at its pin, all of it."""
    return Source(TINY, snapshot=MemorySnapshot(files or tree.V2), locked=locked)


def wheel(*, locked: RepositoryLock | None = None) -> Source:
    """What the wheel has of it: the root scripts and the folders beside the package are missing."""
    return Source(TINY, snapshot=MemorySnapshot(wheel_files(), complete=False), locked=locked)
