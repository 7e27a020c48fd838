"""References: what a note writes to point into the source, as values.

Two spellings: a GitHub link (`…/blob/<ref>/path#L10-L20`) and inline code `path::symbol`.
Both are parsed here, once; everything behind this module passes the values on.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from urllib.parse import quote, unquote, urlsplit

from sourcepanel.config import Repository

Exists = Callable[[str, str], bool]
"""`exists(repository, path)`: whether the pin holds this file or folder."""

_DEEPEST_REF = 8
"""Segments that a branch name may have."""
_VIEWS = frozenset({"blob", "tree", "raw", "blame"})
RAW_HOST = "raw.githubusercontent.com"
"""Where GitHub serves files as they are."""
_LINES = re.compile(r"L([0-9]{1,9})(?:C[0-9]+)?(?:-L?([0-9]{1,9})(?:C[0-9]+)?)?")
_RENDERED = (".md", ".markdown", ".mdx", ".rst", ".adoc", ".org", ".txt", ".ipynb")
"""Files that GitHub shows as a page, where a fragment may be a heading."""
_SUFFIX = re.compile(
    r"\.(?:pyi?|pyx|ipynb|c|cc|cpp|cu|cuh|h|hh|hpp|rs|go|java|js|mjs|ts|sh|md|rst|txt|toml|ya?ml|json|cfg|ini)$"
)
_DOTTED = re.compile(r"[A-Za-z_][A-Za-z0-9_]*(?:\.[A-Za-z_][A-Za-z0-9_]*)*")


@dataclass(frozen=True, kw_only=True)
class SourceRef:
    """A place in a pinned repository, as written; not yet checked against the source."""

    repository: str
    """`Repository.name`."""
    path: str
    """Posix path from the repository's root; empty for the root itself."""
    folder: bool = False
    """Written as a folder (`/tree/`, or a trailing slash)."""
    start: int | None = None
    end: int | None = None
    """1-based, inclusive, in the order written (so a reversed range stays visible); None when no line is named."""
    symbol: str | None = None
    """Qualified name, for `path::symbol`."""

    @property
    def key(self) -> str:
        """Canonical spelling, the lock's key: `path`, `path/`, `path#L10`, `path#L10-L20` or `path::symbol`."""
        if self.symbol:
            return f"{self.path}::{self.symbol}"
        if self.folder:
            return f"{self.path}/"
        if self.start is None:
            return self.path
        return f"{self.path}#L{self.start}" + (f"-L{self.end}" if self.end != self.start else "")


@dataclass(frozen=True, kw_only=True)
class Reference:
    """One reference as it stands in a page."""

    page: str
    """Markdown file, relative to the docs folder, posix."""
    line: int
    raw: str
    """The href or inline code as written."""
    text: str
    """Visible text of the link; for inline code the code itself."""
    names: tuple[str, ...]
    """Identifiers that the text names: inline code inside the link, or a text that is one identifier."""
    source: SourceRef


@dataclass(frozen=True)
class OtherRef:
    """A link into a pinned repository, but at another branch, tag or commit than the pin."""

    ref: str
    """As written."""
    source: SourceRef
    """The same path and lines, meant at the pin."""


@dataclass(frozen=True)
class MalformedLink:
    """A link or inline code that means a pinned repository, but whose path or fragment cannot be understood."""

    reason: str
    """One sentence for people, no final stop."""


@dataclass(frozen=True, kw_only=True)
class Finding:
    """What stands in a page like a `Reference`, but can never be one; fields as there."""

    page: str
    line: int
    raw: str
    text: str
    problem: OtherRef | MalformedLink


@dataclass(frozen=True, kw_only=True)
class Target:
    """A reference resolved at the pin: what the panel opens."""

    repository: str
    path: str
    kind: str
    """`definition` (the range is a symbol or its def line), `interior`, `file` or `folder`."""
    start: int | None
    end: int | None
    symbol: str | None
    """The symbol itself for a definition, the innermost enclosing one for an interior range."""
    blob: str
    """Git blob id; empty for a folder."""
    has_text: bool
    """False when this build's snapshot lacks the file and only the lock knows it."""
    href: str
    """The page on GitHub at the pin, for readers without JavaScript."""

    @property
    def key(self) -> str:
        """Address inside the panel: `Megatron-LM/megatron/training/training.py#L10-L20`, a folder's ends in `/`."""
        if self.kind == "folder":
            return f"{self.repository}/{self.path}/" if self.path else f"{self.repository}/"
        lines = "" if self.start is None else f"#L{self.start}" + (f"-L{self.end}" if self.end != self.start else "")
        return f"{self.repository}/{self.path}{lines}"


def parse_link(
    href: str, repositories: Sequence[Repository], *, exists: Exists | None = None
) -> SourceRef | OtherRef | MalformedLink | None:
    """What a link means; None for one that points at no source of a pinned repository.

    Never raises, whatever the text. A ref that is not the pin may hold slashes: it is split from the
    path where `exists` knows the rest, else after its first segment. The repository's front page and its
    issues, pull requests, commits … are no source: None.
    """
    try:
        parts = urlsplit(href.strip().replace("\\", "/"))
        host, port = (parts.hostname or "").removeprefix("www."), parts.port
    except ValueError:
        return None
    if parts.scheme not in ("", "http", "https") or port not in (None, 80, 443):
        return None
    segments = unquote(parts.path).split("/")[1:]
    # The second look is a browser's, which resolves `..` before it asks.
    found = _owner(host, segments, repositories) or _owner(host, list(_resolved(segments)), repositories)
    if found is None:
        return None
    repository, known = found
    view, names = ("raw", segments[2:]) if host == RAW_HOST else ((segments[2:] or [""])[0], segments[3:])
    if view not in _VIEWS and ".." not in segments:
        return None
    if reason := _unsafe(href, parts.path, segments):
        return MalformedLink(reason)
    folder = view == "tree" or names[-1:] == [""]
    while names[-1:] == [""]:
        names = names[:-1]
    if names[:1] == ["refs"] and names[1:2] in (["heads"], ["tags"]):
        names = names[2:]
    if not names:
        return MalformedLink(f"/{view}/ names no branch, tag or commit")
    count, pinned = _split(names, repository, known, exists)
    ref, path = "/".join(names[:count]), "/".join(names[count:])
    if not path and view != "tree":
        return MalformedLink(f"/{view}/{ref} names no file")
    if "" in names:
        return MalformedLink("the path holds an empty segment (`//`)")
    lines = _lines(unquote(parts.fragment), path, folder=folder)
    if isinstance(lines, MalformedLink):
        return lines
    source = SourceRef(repository=repository.name, path=path, folder=folder, start=lines[0], end=lines[1])
    return source if pinned else OtherRef(ref, source)


def format_link(source: SourceRef, repository: Repository) -> str:
    """The GitHub page of this place at the pin's commit; `parse_link` reads it back.

    A symbol has no address of its own there: the result is that of its file (and lines, where given).
    """
    address = f"{repository.url}/{'tree' if source.folder else 'blob'}/{repository.commit}"
    if source.path:
        address += f"/{quote(source.path)}"
    if source.start is None or source.folder:
        return address
    return f"{address}#L{source.start}" + (f"-L{source.end}" if source.end not in (None, source.start) else "")


def parse_code(text: str, repositories: Sequence[Repository]) -> SourceRef | MalformedLink | None:
    """What inline code `path::symbol`, `path::symbol()` or `Name:path::symbol` means; None for any other code.

    The left side must look like a path (a `/`, or the suffix of a source file), so that `std::vector` stays
    what it is. Without a name, the path is one of the first repository. `a.py::Class::method` reads as
    `Class.method`.
    """
    head, _, symbol = text.strip().partition("::")
    symbol = symbol.removesuffix("()").replace("::", ".")
    name, colon, path = head.rpartition(":")
    if not symbol or re.search(r"[\s`<>\"'(){}]", head + symbol) or "://" in head:
        return None
    if not _SUFFIX.search(path) and not ("/" in path and _DOTTED.fullmatch(symbol)):
        return None
    names = [repository.name for repository in repositories]
    if colon and name not in names:
        return MalformedLink(f"no repository is named {name}; sourcepanel.toml names {', '.join(names)}")
    segments = path.replace("\\", "/").split("/")
    if reason := _unsafe(path, path, segments):
        return MalformedLink(reason)
    if "" in segments:
        return MalformedLink("the path starts or ends with a slash, or holds an empty segment (`//`)")
    return SourceRef(repository=name or names[0], path=path, symbol=symbol)


def identifiers(text: str, *, code: bool) -> tuple[str, ...]:
    """The identifier that this text is, if it is one and not a file name.

    Outside inline code a word of a language is an identifier too; there only what is spelled like code
    counts: a dot, an underscore, a capital inside, or a pair of parentheses.
    """
    text = text.strip()
    name = text.removesuffix("()").rpartition("::")[2]
    if not _DOTTED.fullmatch(name) or (name == text and _SUFFIX.search(text)):
        return ()
    if code or name != text or re.search(r"[._]|[a-z0-9][A-Z]|[A-Z]{2}[a-z]{2}", name):
        return (name,)
    return ()


def _owner(
    host: str, segments: Sequence[str], repositories: Sequence[Repository]
) -> tuple[Repository, frozenset[str]] | None:
    """The repository (or an alias of it) at this address, and the refs that stand for the pin there."""
    if len(segments) < 2:
        return None
    asked = [segments[0].lower(), segments[1].lower().removesuffix(".git")]
    for repository in repositories:
        pin = (repository.ref, repository.commit)
        for url, refs in ((repository.url, ()), *((alias.url, alias.refs) for alias in repository.aliases)):
            here = urlsplit(url.lower())
            hosts = {here.netloc.removeprefix("www.")}
            if hosts == {"github.com"}:
                hosts.add(RAW_HOST)
            if host in hosts and here.path.removesuffix(".git").strip("/").split("/") == asked:
                return repository, frozenset((*pin, *refs))
    return None


def _resolved(segments: Sequence[str]) -> Iterator[str]:
    """The segments a browser asks for: `.` and empty ones dropped, `..` one up."""
    kept: list[str] = []
    for segment in segments:
        if segment == "..":
            del kept[-1:]
        elif segment not in ("", "."):
            kept.append(segment)
    yield from kept


def _unsafe(written: str, path: str, segments: Sequence[str]) -> str:
    """Why this path must not be followed; empty if it may."""
    text = "/".join(segments)
    if "\\" in written or "\\" in text:
        return "the path holds a backslash; write `/`"
    if ".." in segments or "." in segments:
        return "the path holds `.` or `..`; write the path from the root of the repository"
    if any(c < " " or c == "\x7f" or "\ud800" <= c <= "\udfff" for c in text):
        return "the path holds a control character"
    if "\ufffd" in text and "\ufffd" not in path:
        return "the path is not UTF-8 once its %-escapes are read"
    return ""


def _split(
    names: Sequence[str], repository: Repository, known: frozenset[str], exists: Exists | None
) -> tuple[int, bool]:
    """How many segments belong to the ref, and whether that ref is the pin."""
    for ref in sorted(known, key=len, reverse=True):
        count = ref.count("/") + 1
        if "/".join(names[:count]) == ref:
            return count, True
    if re.fullmatch(r"[0-9a-f]{7,40}", names[0].lower()):
        return 1, repository.commit.startswith(names[0].lower())
    for count in range(1, min(len(names), _DEEPEST_REF + 1)):
        if exists is not None and exists(repository.name, "/".join(names[count:])):
            return count, False
    return 1, False


def _lines(fragment: str, path: str, *, folder: bool) -> tuple[int | None, int | None] | MalformedLink:
    """First and last line of a fragment, in the order written; columns are dropped."""
    match = _LINES.fullmatch(fragment)
    if match is None:
        if not fragment or folder or path.lower().endswith(_RENDERED):
            return None, None
        return MalformedLink(f"#{fragment} names no lines; write #L10 or #L10-L20")
    if folder:
        return MalformedLink("a folder has no lines; link the file with /blob/ and no slash at its end")
    start, end = int(match[1]), int(match[2] or match[1])
    if start == 0 or end == 0:
        return MalformedLink("lines count from 1")
    return start, end
