"""References: what a note writes to point into the source, as values.

Two spellings: a GitHub link (`…/blob/<ref>/path#L10-L20`) and inline code `path::symbol`.
"""

from __future__ import annotations

from dataclasses import dataclass


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
        """Address inside the panel: `Megatron-LM/megatron/training/training.py#L10-L20`."""
        lines = "" if self.start is None else f"#L{self.start}" + (f"-L{self.end}" if self.end != self.start else "")
        return f"{self.repository}/{self.path}{lines}"
