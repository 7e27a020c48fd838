"""What is known of each file at the pin: from the snapshot, and where it lacks one, from the lock."""

from __future__ import annotations

import difflib
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path, PurePosixPath
from types import MappingProxyType
from typing import Literal

from sourcepanel.config import Repository
from sourcepanel.cpp_symbols import SUFFIXES as CPP
from sourcepanel.cpp_symbols import parse_cpp
from sourcepanel.likeness import is_slip
from sourcepanel.lock import LeftFacts, RepositoryLock, text_hash
from sourcepanel.snapshot.base import Snapshot, git_blob_id
from sourcepanel.symbol_cache import cached_symbols
from sourcepanel.symbols import SymbolTable

Encoding = Literal["utf-8", "latin-1", "binary", "absent"]


def decode(data: bytes) -> tuple[str, Encoding]:
    """Text of a source file: UTF-8, else Latin-1 (which never fails); a NUL byte means binary, without text."""
    if b"\0" in data:
        return "", "binary"
    try:
        return data.decode("utf-8"), "utf-8"
    except UnicodeDecodeError:
        return data.decode("latin-1"), "latin-1"


def split_lines(text: str) -> tuple[str, ...]:
    r"""Lines as editors and GitHub count them.

    Only `\n` ends a line (`\r\n` loses its `\r`), so a form feed or U+2028 does not; a final newline adds none.
    """
    lines = text.replace("\r\n", "\n").split("\n")
    if lines[-1] == "":
        lines.pop()
    return tuple(lines)


@dataclass(frozen=True)
class SourceFile:
    """One file at the pin; `lines` is empty for a binary file and for one that only the lock knows."""

    path: str
    blob: str
    count: int
    """How many lines it has."""
    encoding: Encoding
    """`latin-1` marks a guess; `absent` a file this build has no text of."""
    lines: tuple[str, ...] = ()
    cache: Path | None = field(default=None, compare=False, repr=False)
    """Where its symbol table is kept between builds."""

    @property
    def has_text(self) -> bool:
        """Whether its lines can be shown."""
        return self.encoding in ("utf-8", "latin-1")

    @cached_property
    def text(self) -> str:
        r"""The lines joined by `\n`."""
        return "\n".join(self.lines)

    @cached_property
    def symbols(self) -> SymbolTable:
        """Its definitions; empty for anything but Python, C++ and CUDA."""
        if self.has_text and self.path.endswith(CPP):
            return parse_cpp(self.text)
        if not self.has_text or not self.path.endswith((".py", ".pyi")):
            return SymbolTable(parsed=False)
        # Python also ends a line at a lone \r, and would count differently; a BOM it refuses in a str.
        text = self.text.replace("\r", " ").removeprefix("\ufeff") + "\n"
        return cached_symbols(text, blob=self.blob, cache=self.cache)

    @cached_property
    def words(self) -> frozenset[str]:
        """All identifiers that occur in it, comments and strings included."""
        return frozenset(re.findall(r"\w+", self.text))

    def span(self, start: int, end: int) -> tuple[str, ...]:
        """The lines of a range, 1-based and inclusive."""
        return self.lines[start - 1 : end]

    def hash(self, start: int, end: int) -> str:
        """What the lock keeps of a range."""
        return text_hash(self.span(start, end))


class Source:
    """One pinned repository: its snapshot joined with what the lock holds of it."""

    def __init__(
        self,
        repository: Repository,
        *,
        snapshot: Snapshot,
        locked: RepositoryLock | None,
        cache: Path | None = None,
        left: Mapping[str, LeftFacts] = MappingProxyType({}),
    ) -> None:
        self.repository = repository
        self._cache = cache
        self.snapshot = snapshot
        self.locked = locked
        """None where the lock was written for another commit, or not at all."""
        self.left = left
        """Links that stayed at an earlier pin when this one was set."""
        self._files: dict[str, SourceFile] = {}
        self._near: dict[str, tuple[str, ...]] = {}

    @cached_property
    def seen(self) -> frozenset[str]:
        """Paths the snapshot can read."""
        return frozenset(self.snapshot.list())

    @cached_property
    def paths(self) -> tuple[str, ...]:
        """All known paths, sorted: the snapshot's, and those that only the lock knows."""
        return tuple(sorted(self.seen | set(self.locked.files if self.locked else ())))

    @cached_property
    def folders(self) -> frozenset[str]:
        """All known folders, the root as the empty string."""
        found = {str(parent) for path in self.paths for parent in PurePosixPath(path).parents} - {"."} | {""}
        locked = self.locked.links.items() if self.locked else ()
        return frozenset(found | {key.rstrip("/") for key, facts in locked if facts.kind == "folder"})

    def file(self, path: str) -> SourceFile | None:
        """The file, read once; None where neither side knows it. Raises `PinMismatch` for a changed one."""
        if path not in self._files:
            if path in self.seen:
                self._files[path] = _read(path, self.snapshot.read(path), cache=self._cache)
            elif self.locked and path in self.locked.files:
                facts = self.locked.files[path]
                self._files[path] = SourceFile(path, facts.blob, facts.lines, "absent")
            else:
                return None
        return self._files[path]

    def has(self, path: str) -> bool:
        """Whether this file or folder is known; reads nothing."""
        return path in self.folders or path in self.seen or bool(self.locked and path in self.locked.files)

    def nearest(self, path: str) -> tuple[str, ...]:
        """Up to three paths a person may have meant: one letter off, else the same name elsewhere, else near."""
        if path not in self._near:
            self._near[path] = self._nearest(path)
        return self._near[path]

    def _nearest(self, path: str, *, n: int = 3) -> tuple[str, ...]:
        name = PurePosixPath(path).name
        known = [*self.paths, *(f"{folder}/" for folder in sorted(self.folders) if folder)]
        if slips := [other for other in known if is_slip(path, other)]:
            return tuple(slips[:n])
        same = [other for other in known if PurePosixPath(other).name == name]
        same.sort(key=lambda other: -difflib.SequenceMatcher(None, path, other).ratio())
        # This filter spares comparing with thousands of paths.
        close = [other for other in known if abs(len(other) - len(path)) <= max(4, len(path) // 4)]
        return tuple(dict.fromkeys([*same, *difflib.get_close_matches(path, close, n=n, cutoff=0.75)]))[:n]


def _read(path: str, data: bytes, *, cache: Path | None) -> SourceFile:
    text, encoding = decode(data)
    lines = split_lines(text)
    return SourceFile(path, git_blob_id(data), len(lines), encoding, lines, cache)
