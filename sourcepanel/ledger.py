"""A page's references against the lock's account of that page.

Range checks cannot tell L1777 from L1778: both are lines of the file. The lock can, because it says
what each page referred to when its links were last verified.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Container, Mapping, Sequence
from dataclasses import dataclass

from sourcepanel.likeness import likeness
from sourcepanel.lock import entry_place, page_entry
from sourcepanel.reference import Reference

LOCK = "`sourcepanel lock`"
_WORD = re.compile(r"[^\s`()<>\[\]\"']*(?:::|/)[^\s`()<>\[\]\"']*")


@dataclass(frozen=True)
class Unlocked:
    """A reference that the lock does not hold for its page; `instead` is the entry it seems to have been."""

    reference: Reference
    entry: str
    instead: str | None = None

    def explain(self) -> tuple[str, str]:
        """Message and fix."""
        message = f"the lock does not hold {self.entry} for this page"
        if self.instead is None:
            return message, f"if it is right, {LOCK} adds it"
        slip = _slip(self.instead, self.entry)
        return f"{message}; it has {self.instead} here{slip}", f"mend the link, or run {LOCK} if it is right"


@dataclass(frozen=True)
class Audit:
    """How a page and its account in the lock differ."""

    unlocked: tuple[Unlocked, ...]
    stale: tuple[tuple[str, int], ...]
    """Entries that stand in the lock more often than in the page, and how much more often."""


def audit(references: Sequence[Reference], *, locked: Mapping[str, int]) -> Audit:
    """Compare two multisets: what the page holds and what the lock says it holds."""
    left = Counter(locked)
    missing: list[tuple[Reference, str]] = []
    for reference in references:
        entry = page_entry(reference)
        if left[entry] > 0:
            left[entry] -= 1
        else:
            missing.append((reference, entry))
    unlocked = []
    for reference, entry in missing:
        instead = _nearest(entry, [other for other, count in left.items() if count > 0])
        if instead:
            left[instead] -= 1
        unlocked.append(Unlocked(reference, entry, instead))
    return Audit(tuple(unlocked), tuple(sorted((entry, count) for entry, count in left.items() if count > 0)))


def looks_like(entry: str, text: str, *, known: Container[str] = ()) -> int:
    """The line of a page that holds what this entry may have been, 1 where nothing is near.

    `known` are the page's references as written: what is still one cannot be what this has become.
    """
    key = entry_place(entry).partition(":")[2]
    best, line = 0.8, 1
    for number, content in enumerate(text.split("\n"), 1):
        for word in _WORD.findall(content):
            if word in known:
                continue
            # An address ends in the key; a letter may be missing or too many.
            ratio = max(likeness(key, word[-length:]) for length in (len(key), len(key) + 1, len(key) - 1))
            if ratio > best:
                best, line = ratio, number
    return line


def _nearest(entry: str, candidates: Sequence[str]) -> str | None:
    """The entry this one was most likely made from: the same file, or nearly the same spelling."""
    scored = [(likeness(entry, other), other) for other in candidates]
    close = [(score, other) for score, other in scored if score > 0.9 or _file(other) == _file(entry)]
    return max(close)[1] if close else None


def _file(entry: str) -> str:
    return re.split(r"#L|::| \(", entry, maxsplit=1)[0]


def _slip(before: str, now: str) -> str:
    """`: a slip of one digit?` where the two differ in one place only."""
    if len(before) == len(now):
        differing = [(a, b) for a, b in zip(before, now, strict=True) if a != b]
        if len(differing) == 1:
            kind = "digit" if all(c.isdigit() for c in differing[0]) else "letter"
            return f": a slip of one {kind}?"
    return ""
