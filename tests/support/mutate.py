"""Every small slip a person can make in a reference, and which of them a check lets through.

A slip is one changed digit of a line number, or one changed, swapped-case or dropped letter of a path, of a
symbol, or of a name in the link's text.
"""

from __future__ import annotations

import string
from collections import defaultdict, deque
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from urllib.parse import quote

from sourcepanel.diagnostics import Diagnostic, Level
from sourcepanel.lock import page_entry
from sourcepanel.project import Project, Report
from sourcepanel.reference import Reference


@dataclass(frozen=True)
class Slip:
    """Replace the character at `offset` of the page by `new` (empty: drop it)."""

    reference: Reference
    part: str
    """`digit`, `path`, `symbol` or `name`."""
    offset: int
    new: str

    def raw(self, text: str) -> str:
        """The reference as it is written after the slip."""
        if self.part == "name":
            return self.reference.raw
        start = _place(text, self.reference)
        end = start + len(self.reference.raw)
        return text[start : self.offset] + self.new + text[self.offset + 1 : end]


def slips(text: str, references: Sequence[Reference], *, every: bool = True) -> list[Slip]:
    """All slips of all references of a page; without `every` one slip for each digit and letter."""
    made = [slip for reference in references for slip in _slips(text, reference)]
    if every:
        return made
    first: dict[tuple[int, int], Slip] = {}
    for slip in made:
        first.setdefault((id(slip.reference), slip.offset), slip)
    return list(first.values())


def apply(text: str, made: Sequence[Slip]) -> str:
    """The page with these slips in it."""
    for slip in sorted(made, key=lambda s: -s.offset):
        text = text[: slip.offset] + slip.new + text[slip.offset + 1 :]
    return text


def survivors(project: Project, page: str, *, work: Path, every: bool = True) -> tuple[list[Slip], int]:
    """The slips that no check notices on their own line, and how many were tried.

    Each round makes one slip in every reference at once; what a round does not notice is tried again alone, for
    two slips may hide each other. `work` is an empty folder for the changed pages.
    """
    config = project.config
    text = (config.path(config.docs) / page).read_text(encoding="utf-8")
    project = replace(project, config=config.model_copy(update={"docs": work}))
    before = _check(project, page, text, work)
    assert not before.fails(), f"the page must be right to begin with: {before.diagnostics[:3]}"
    tried = slips(text, before.pages[0].references, every=every)

    def unnoticed(made: list[Slip]) -> list[Slip]:
        return _unnoticed(text, made, _check(project, page, apply(text, made), work).diagnostics)

    missed = [slip for made in _rounds(tried) for slip in unnoticed(made)]
    return [slip for slip in missed if unnoticed([slip])], len(tried)


def _check(project: Project, page: str, text: str, work: Path) -> Report:
    (work / page).parent.mkdir(parents=True, exist_ok=True)
    (work / page).write_text(text, encoding="utf-8")
    return project.check([page], notes=False)


def _unnoticed(text: str, made: Sequence[Slip], found: Sequence[Diagnostic]) -> list[Slip]:
    told = {(d.line, d.link) for d in found if d.level in (Level.ERROR, Level.WARNING)}

    def noticed(slip: Slip) -> bool:
        line = slip.reference.line
        return (line, slip.raw(text)) in told or (line, page_entry(slip.reference)) in told

    return [slip for slip in made if not noticed(slip)]


def _rounds(every: Sequence[Slip]) -> Iterator[list[Slip]]:
    """Slips to make at once: never two in one reference, nor in two that look alike on one line."""
    waiting: dict[int, deque[Slip]] = defaultdict(deque)
    for slip in every:
        waiting[id(slip.reference)].append(slip)
    while any(waiting.values()):
        busy: set[tuple[int, str]] = set()
        chosen = []
        for queue in waiting.values():
            if queue and (key := (queue[0].reference.line, queue[0].reference.raw)) not in busy:
                busy.add(key)
                chosen.append(queue.popleft())
        yield chosen


def _slips(text: str, reference: Reference) -> Iterator[Slip]:
    start, raw, source = _place(text, reference), reference.raw, reference.source
    head, mark, fragment = raw.partition("#L")
    for index, char in enumerate(fragment):
        if char.isdigit() and not source.symbol:
            for digit in string.digits.replace(char, ""):
                yield Slip(reference, "digit", start + len(head) + len(mark) + index, digit)
    path = source.path if source.path in raw else quote(source.path)
    assert path in raw, (path, raw)
    yield from _letters(reference, "path", start + raw.rindex(path), path)
    if source.symbol:
        yield from _letters(reference, "symbol", start + raw.rindex("::") + 2, raw[raw.rindex("::") + 2 :])
        return
    for name in reference.names:
        place = text.rindex(name, 0, start)
        assert start - place < 300, f"{name} is not in the text of {raw}"
        yield from _letters(reference, "name", place, name)


def _letters(reference: Reference, part: str, offset: int, word: str) -> Iterator[Slip]:
    for index, char in enumerate(word):
        if char.isascii() and char.isalpha():
            other = chr(ord(char) + 1) if char not in "zZ" else chr(ord(char) - 1)
            for new in (other, char.swapcase(), ""):
                yield Slip(reference, part, offset + index, new)


def _place(text: str, reference: Reference) -> int:
    """Where the reference's own text begins: on its line, or for a reference-style link in the definition."""
    begin = sum(len(line) + 1 for line in text.split("\n")[: reference.line - 1])
    # The visible text of a link may be its address once more: the bracket tells them apart.
    places = (text.find(f"]({reference.raw}", begin), text.find(reference.raw, begin), text.find(reference.raw))
    end = text.find("\n", begin)
    if 0 <= places[0] < end:
        return places[0] + 2
    return places[1] if places[1] >= 0 else places[2]
