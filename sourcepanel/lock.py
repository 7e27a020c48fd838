"""`sourcepanel.lock`: the facts that let any machine verify links without the source.

Canonical JSON with one line per file, link and page entry, so that a review reads the diff and a
merge rarely conflicts. It holds no source text.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, StringConstraints, ValidationError

from sourcepanel.errors import LockError
from sourcepanel.files import write_atomically
from sourcepanel.reference import Reference

VERSION: Literal[1] = 1
_CONFLICT = re.compile(r"^(<{7}|={7}|>{7}|\|{7})(\s|$)")


class _Facts(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class FileFacts(_Facts):
    """One linked file."""

    blob: Annotated[str, StringConstraints(pattern=r"^[0-9a-f]{40}$")]
    """Git blob id."""
    lines: Annotated[int, Field(ge=0)]
    """Line count as editors show it; 0 for an empty or a binary file."""


class LinkFacts(_Facts):
    """What one link resolves to; what the words of `Target` say holds here too."""

    kind: Literal["definition", "interior", "file", "folder"]
    start: int | None = None
    end: int | None = None
    symbol: str | None = None
    hash: str = ""
    """`text_hash` of the lines of the range; empty for a file (its blob says it) and a folder."""

    def tell(self) -> str:
        """All of it in a few words, for a message."""
        lines = spell(self.start, self.end) if self.start and self.end else ""
        words = (self.kind, lines, f"in {self.symbol}" if self.symbol else "", f"({self.hash})" if self.hash else "")
        return " ".join(word for word in words if word)


class LeftFacts(LinkFacts):
    """A link that was right at an earlier pin and that nobody has moved yet."""

    ref: str
    """That pin's tag or branch."""
    commit: Annotated[str, StringConstraints(pattern=r"^[0-9a-f]{40}$")]


class RepositoryLock(_Facts):
    """The facts of one pin."""

    url: str
    ref: str
    commit: Annotated[str, StringConstraints(pattern=r"^[0-9a-f]{40}$")]
    files: dict[str, FileFacts] = Field(default_factory=dict)
    links: dict[str, LinkFacts] = Field(default_factory=dict)
    """By `SourceRef.key`."""
    left: dict[str, LeftFacts] = Field(default_factory=dict)
    """By `SourceRef.key` too: what `sourcepanel repin` left at an earlier pin."""


class Lock(_Facts):
    """The whole file."""

    version: Literal[1] = VERSION
    repositories: dict[str, RepositoryLock] = Field(default_factory=dict)
    pages: dict[str, dict[str, Annotated[int, Field(ge=1)]]] = Field(default_factory=dict)
    """Per page, how often each `page_entry` stands in it: any change of any reference shows."""

    def repository(self, name: str, *, commit: str) -> RepositoryLock | None:
        """The facts of this pin; None when the lock lacks it or was written for another commit."""
        found = self.repositories.get(name)
        return found if found and found.commit == commit else None


def page_entry(reference: Reference) -> str:
    """How a page's reference stands in the lock: the place, and what the link's text calls it.

    The names belong to it so that a slip in the text is caught even where the source is not at hand.
    """
    names = f" ({', '.join(reference.names)})" if reference.names and not reference.source.symbol else ""
    return f"{reference.source.repository}:{reference.source.key}{names}"


def entry_place(entry: str) -> str:
    """The `repository:key` of a page entry, without the names."""
    return re.sub(r" \([\w., ]*\)$", "", entry)


def spell(start: int, end: int) -> str:
    """A range as GitHub's fragment spells it: `L10`, `L10-L20`."""
    return f"L{start}" if start == end else f"L{start}-L{end}"


def text_hash(lines: Iterable[str]) -> str:
    """Sixteen hex digits that stand for these lines."""
    return hashlib.sha256("\n".join(lines).encode("utf-8", "surrogatepass")).hexdigest()[:16]


def read_lock(path: Path) -> Lock:
    """Read and validate; a file that does not exist is an empty lock. Raises `LockError`."""
    try:
        text = path.read_text(encoding="utf-8")
    except FileNotFoundError:
        return Lock()
    except (OSError, UnicodeDecodeError) as error:
        raise LockError(f"{path}: cannot be read: {error}; restore it from version control") from None
    return parse_lock(text, path=path)


def parse_lock(text: str, *, path: Path) -> Lock:
    """The lock in this text; `path` is for messages."""
    for number, content in enumerate(text.splitlines(), 1):
        if _CONFLICT.match(content):
            advice = "keep either side of the conflict whole, then run `sourcepanel lock`"
            raise LockError(f"{path}:{number}: unresolved merge conflict; {advice}")
    advice = "restore it from version control, then run `sourcepanel lock`"
    try:
        data = json.loads(text, object_pairs_hook=_unique)
    except _DuplicateKey as error:
        line = _line_of(text, error.key, error.key)
        raise LockError(f"{path}:{line}: {error.key!r} stands here twice; {advice}") from None
    except (ValueError, RecursionError) as error:
        # Not only JSONDecodeError: a number may have more digits than Python reads.
        line = error.lineno if isinstance(error, json.JSONDecodeError) else 1
        raise LockError(f"{path}:{line}: not valid JSON: {error}; {advice}") from None
    version = data.get("version") if isinstance(data, dict) else None
    if isinstance(version, int) and version > VERSION:
        newer = f"version {version}, this sourcepanel reads up to {VERSION}"
        raise LockError(f"{path}:1: written by a newer sourcepanel ({newer}); upgrade sourcepanel")
    try:
        return Lock.model_validate(data)
    except ValidationError as error:
        first = error.errors()[0]
        keys = [part for part in first["loc"] if isinstance(part, str) and part != "[key]"]
        line = max(_line_of(text, *keys), 1)
        where = " → ".join(map(str, first["loc"])) or "the file"
        raise LockError(f"{path}:{line}: {where}: {first['msg']}; {advice}") from None


def format_lock(lock: Lock) -> str:
    """The canonical text: equal locks give equal bytes."""
    repositories = [
        _block(
            4,
            name,
            [
                *(f"{_json(key)}: {_json(getattr(repository, key))}" for key in ("url", "ref", "commit")),
                _entries(6, "files", {k: v.model_dump() for k, v in repository.files.items()}),
                _entries(6, "links", _plain(repository.links)),
                *([_entries(6, "left", _plain(repository.left))] if repository.left else []),
            ],
        )
        for name, repository in sorted(lock.repositories.items())
    ]
    pages = [_entries(4, page, entries) for page, entries in sorted(lock.pages.items())]
    parts = [f'"version": {lock.version}', _block(2, "repositories", repositories), _block(2, "pages", pages)]
    return "{\n" + ",\n".join(f"  {part}" for part in parts) + "\n}\n"


def write_lock(lock: Lock, path: Path) -> bool:
    """Write it if it differs from what stands there, whole or not at all; returns whether it wrote."""
    text = format_lock(lock)
    try:
        if path.exists() and path.read_bytes() == text.encode():
            return False
        write_atomically(path, text)
    except OSError as error:
        reason = error.strerror or str(error)
        raise LockError(f"{path}: cannot be written: {reason}; the old lock is untouched") from None
    return True


def _plain(links: Mapping[str, LinkFacts]) -> dict[str, object]:
    return {key: facts.model_dump(exclude_defaults=True) for key, facts in links.items()}


def _json(value: object) -> str:
    return json.dumps(value, ensure_ascii=False)


def _block(indent: int, key: str, items: list[str]) -> str:
    if not items:
        return f"{_json(key)}: {{}}"
    pad = " " * (indent + 2)
    return f"{_json(key)}: {{\n" + ",\n".join(pad + item for item in items) + "\n" + " " * indent + "}"


def _entries(indent: int, key: str, entries: Mapping[str, object]) -> str:
    return _block(indent, key, [f"{_json(name)}: {_json(value)}" for name, value in sorted(entries.items())])


class _DuplicateKey(ValueError):
    def __init__(self, key: str) -> None:
        self.key = key


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for key, value in pairs:
        if key in found:
            raise _DuplicateKey(key)
        found[key] = value
    return found


def _line_of(text: str, *keys: str) -> int:
    """The line of the last of these keys, each looked for after the one before; 0 if the first is nowhere."""
    hit, position = -1, 0
    for key in keys:
        found = re.compile(re.escape(_json(key)) + r"\s*:").search(text, position)
        if found:
            hit, position = found.start(), found.end()
    return text.count("\n", 0, hit) + 1 if hit >= 0 else 0
