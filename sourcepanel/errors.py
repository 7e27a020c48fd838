"""The exception tree.

Every message names the file (and line, where there is one), what is wrong, and what to do.
Exception types are public API; their messages are not.
"""

from __future__ import annotations


class SourcePanelError(Exception):
    """Base of all errors a user can cause or repair; the command line prints it without a traceback."""


class ConfigError(SourcePanelError):
    """`sourcepanel.toml` cannot be read, or holds an unknown or wrong key."""


class PageError(SourcePanelError):
    """A Markdown page cannot be read, e.g. because it is not UTF-8."""


class DriftError(SourcePanelError):
    """What `drift` or `repin` is asked for cannot be done: a bad case, a dirty tree, a page of odd spelling."""


class LockError(SourcePanelError):
    """The lock cannot be read, or was written by a newer version."""


class SnapshotUnavailable(SourcePanelError):
    """A backend cannot give the tree at the pin (no checkout, no network, no wheel, disk full)."""

    def __init__(self, what: str, *, why: str = "", fix: str = "") -> None:
        self.what = what
        """The reason in a few words, fit for the line that tells of a fallback: "GitHub not reachable"."""
        super().__init__(what + (f" ({why})" if why else "") + (f"; {fix}" if fix else ""))


class PinMismatch(SourcePanelError):
    """A file of the snapshot is not the file of the pin: its git blob id differs from the lock's."""

    def __init__(self, path: str, *, expected: str, found: str, fix: str) -> None:
        self.path = path
        self.expected = expected
        self.found = found
        super().__init__(f"{path} is not the file of the pin: expected {expected}, found {found}; {fix}")


class PathNotFound(SourcePanelError):
    """The snapshot holds no regular file at this path."""

    def __init__(self, path: str, *, where: str = "at the pin", suggestions: tuple[str, ...] = ()) -> None:
        self.path = path
        self.suggestions = suggestions
        hint = f"; did you mean {', '.join(suggestions)}?" if suggestions else ""
        super().__init__(f"no file {path!r} {where}{hint}")


class SymbolNotFound(SourcePanelError):
    """Nothing at the pin is meant by a name that a person gave, or too much is."""
