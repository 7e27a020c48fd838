"""A page's references against the lock's account of that page.

Range checks cannot tell L1777 from L1778: both are lines of the file. The lock can, because it says
what each page referred to when its links were last verified.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher

from sourcepanel.lock import page_entry
from sourcepanel.reference import Reference

LOCK = "`sourcepanel lock`"


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


def looks_like(entry: str, text: str) -> int:
    """The line of a page that holds what this entry may have been, 1 where nothing is near."""
    key = re.sub(r" \(.*\)$", "", entry.partition(":")[2])
    best, line = 0.8, 1
    for number, content in enumerate(text.split("\n"), 1):
        for word in re.findall(r"[^\s`()<>\[\]\"']+", content):
            # An address ends in the key; a little more room lets letters be too many.
            matcher = SequenceMatcher(None, key, word[-len(key) - 2 :], autojunk=False)
            if matcher.real_quick_ratio() > best and matcher.quick_ratio() > best and (ratio := matcher.ratio()) > best:
                best, line = ratio, number
    return line


def _nearest(entry: str, candidates: Sequence[str]) -> str | None:
    """The entry this one was most likely made from: the same file, or nearly the same spelling."""

    def likeness(other: str) -> float:
        return SequenceMatcher(None, entry, other, autojunk=False).ratio()

    close = [other for other in candidates if _file(other) == _file(entry) or likeness(other) > 0.9]
    return max(close, key=likeness, default=None)


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
