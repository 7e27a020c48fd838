"""The readable tree at the pin, whatever it comes from."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Protocol

from sourcepanel.errors import PinMismatch


class Snapshot(Protocol):
    """The files of one repository at one commit; paths are posix, relative to its root.

    Only regular files count: symlinks and submodules are neither listed nor read.
    """

    @property
    def commit(self) -> str:
        """Full commit id of the pin."""
        ...

    @property
    def origin(self) -> str:
        """Where it comes from, for people: "local checkout ../Megatron-LM", "megatron-core 0.17.1 from PyPI"."""
        ...

    @property
    def complete(self) -> bool:
        """Whether it holds every file of the commit; the wheel does not."""
        ...

    def list(self) -> tuple[str, ...]:
        """All paths, sorted."""
        ...

    def read(self, path: str) -> bytes:
        """The file's bytes; may be called from several threads.

        Raises `PathNotFound`, also for a path that would leave the tree, and `PinMismatch` for a changed file.
        """
        ...

    def blob_id(self, path: str) -> str:
        """The git blob id the file has here, whether or not it is the lock's; raises `PathNotFound`."""
        ...


def git_blob_id(data: bytes) -> str:
    """Git's name for these bytes (git-hash-object(1)): SHA-1 over the header `blob <size>` NUL, then the bytes."""
    return hashlib.sha1(b"blob %d\0" % len(data) + data, usedforsecurity=False).hexdigest()


def check_blob(path: str, data: bytes, *, blob: str, fix: str) -> bytes:
    """The bytes themselves; raises `PinMismatch` unless git would name them `blob`."""
    found = git_blob_id(data)
    if found != blob:
        raise PinMismatch(path, expected=f"git blob {blob}", found=found, fix=fix)
    return data


@dataclass(frozen=True)
class PinnedSnapshot:
    """A snapshot held against the lock: a file that is not the locked one is refused when it is read."""

    inner: Snapshot
    blobs: Mapping[str, str]
    """Path → git blob id, from the lock; a file that no note links is not in it."""
    fix: str
    """What to do about a file that differs."""

    @property
    def commit(self) -> str:
        """Full commit id of the pin."""
        return self.inner.commit

    @property
    def origin(self) -> str:
        """Where it comes from."""
        return self.inner.origin

    @property
    def complete(self) -> bool:
        """Whether it holds every file of the commit."""
        return self.inner.complete

    def list(self) -> tuple[str, ...]:
        """All paths, sorted."""
        return self.inner.list()

    def read(self, path: str) -> bytes:
        """The file's bytes; raises `PinMismatch` when the lock knows other ones."""
        data = self.inner.read(path)
        return check_blob(path, data, blob=self.blobs[path], fix=self.fix) if path in self.blobs else data

    def blob_id(self, path: str) -> str:
        """The id found here, for whoever compares it with the lock."""
        return self.inner.blob_id(path)
