"""What a check has to say about one reference in one note."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class Level(StrEnum):
    """How much a finding weighs; set per code in `[levels]` of `sourcepanel.toml`."""

    ERROR = "error"
    """Ends the build at once, strict or not."""
    WARNING = "warning"
    """Logged; fails `--strict`, `sourcepanel check` and CI."""
    INFO = "info"
    """Told, never fails."""
    IGNORE = "ignore"
    """Not told."""


class Code(StrEnum):
    """Everything a check can find; the names are the keys of `[levels]`."""

    MALFORMED_LINK = "malformed-link"
    """Points at the pinned repository, but its path or fragment cannot be understood."""
    OTHER_REF = "other-ref"
    """Points at another branch, tag or commit than the pin."""
    MISSING_FILE = "missing-file"
    """No such file or folder at the pin."""
    LINE_PAST_END = "line-past-end"
    """A line past the end of the file."""
    REVERSED_RANGE = "reversed-range"
    """The range ends before it starts (`#L20-L10`)."""
    MISSING_SYMBOL = "missing-symbol"
    """The file defines no symbol of that name."""
    AMBIGUOUS_SYMBOL = "ambiguous-symbol"
    """The file defines that name more than once; link the lines instead."""
    TEXT_MISMATCH = "text-mismatch"
    """The link's text names a symbol that its range neither encloses nor mentions."""
    NOT_LOCKED = "not-locked"
    """The lock does not hold this reference for this page; `sourcepanel lock` adds it."""
    LOCK_MISMATCH = "lock-mismatch"
    """The lock's facts (blob, lines, symbol, hash) differ from the source at the pin."""
    STALE_LOCK = "stale-lock"
    """The lock holds a reference that no page has any more."""
    LEFT_BEHIND = "left-behind"
    """Right at an earlier pin; `sourcepanel repin` could not tell where it is now and left it for a person."""
    DRIFTED = "drifted"
    """Right at the pin, and elsewhere, another or gone at the version that `check --against` names."""
    TEMPLATE = "template"
    """A note lacks a heading of the template, holds it twice, out of order or empty."""
    PASTED_SOURCE = "pasted-source"
    """A code block repeats lines of the pinned source."""
    RECORD = "record"
    """A structured record in a note is not valid."""
    UNPROVED = "unproved"
    """A communication record says what the recorded run it names does not show."""
    NOTE_LINK = "note-link"
    """`[[name]]` names no page, several, or no heading of the page."""
    NO_OUTPUT = "no-output"
    """A note takes in no saved output, though its chapter has a program."""


DEFAULT_LEVELS: dict[Code, Level] = dict.fromkeys(Code, Level.WARNING) | {
    Code.LEFT_BEHIND: Level.INFO,
    Code.DRIFTED: Level.INFO,
    Code.NO_OUTPUT: Level.INFO,
}


@dataclass(frozen=True, kw_only=True)
class Diagnostic:
    """One finding, with all that a person or an editor needs to mend it."""

    code: Code
    level: Level
    page: str
    """Path of the Markdown file, relative to the docs folder, posix."""
    line: int
    """1-based line in that file; 1 where a finding is about the whole file."""
    link: str
    """The link, inline code or heading as written."""
    message: str
    """What is wrong, one sentence, no final stop."""
    fix: str = ""
    """The nearest right answer; empty where none is known."""

    def __str__(self) -> str:
        fix = f"; {self.fix}" if self.fix else ""
        return f"{self.page}:{self.line}: {self.message}{fix} [{self.code}] ({self.link})"
