"""The readable tree at the pin, whatever it comes from."""

from __future__ import annotations

import hashlib
from typing import Protocol


class Snapshot(Protocol):
    """The files of one repository at one commit; paths are posix, relative to its root.

    Only regular files count: symlinks and submodules are neither listed nor read.
    """

    commit: str
    """Full commit id of the pin."""
    origin: str
    """Where it comes from, for people: "local checkout ../Megatron-LM", "megatron-core 0.17.1 from PyPI"."""
    complete: bool
    """Whether it holds every file of the commit; the wheel does not."""

    def list(self) -> tuple[str, ...]:
        """All paths, sorted."""
        ...

    def read(self, path: str) -> bytes:
        """The file's bytes; raises `PathNotFound`, also for a path that would leave the tree."""
        ...

    def blob_id(self, path: str) -> str:
        """The git blob id; raises `PathNotFound`."""
        ...


def git_blob_id(data: bytes) -> str:
    """Git's name for these bytes (git-hash-object(1)): SHA-1 over the header `blob <size>` NUL, then the bytes."""
    return hashlib.sha1(b"blob %d\0" % len(data) + data, usedforsecurity=False).hexdigest()
