"""Every reference of every note at another version: where it is, what became of its text, who must look at it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, replace
from difflib import SequenceMatcher
from enum import StrEnum
from functools import cached_property

from sourcepanel.diagnostics import Diagnostic
from sourcepanel.drift.judge import Confidence, Placement, Status, compare
from sourcepanel.drift.relocate import Relocator
from sourcepanel.drift.tree import SourceFile
from sourcepanel.drift.versions import Move
from sourcepanel.pagecheck import BAD, PageReport
from sourcepanel.project import Project
from sourcepanel.reference import Reference, SourceRef
from sourcepanel.symbols import Symbol
from sourcepanel.verify import Place


class State(StrEnum):
    """What became of one reference."""

    SAME = "same"
    """The same place, the same text."""
    MOVED = "moved"
    """Other lines of the same file; the text is identical, layout aside."""
    CHANGED = "changed"
    """In the same file, but its text is another."""
    RENAMED = "renamed"
    """In another file, or under another name; `text` says whether it changed too."""
    GONE = "gone"
    """Nothing of it is left."""
    UNSEEN = "unseen"
    """Neither side's source holds the file here, so nothing can be said."""


class Freshness(StrEnum):
    """What became of one note."""

    FRESH = "fresh"
    """Every reference is where it was."""
    MOVED = "moved"
    """Some are elsewhere, and none says anything else."""
    STALE = "stale"
    """The text of some has changed or gone: a person must read the note again."""


@dataclass(frozen=True, kw_only=True)
class Outcome:
    """One place at the old version, and what it is at the new one."""

    ref: SourceRef
    """As written."""
    state: State
    text: Status
    """What became of the lines themselves; `same` for a file or folder that is still there."""
    to: SourceRef | None = None
    """The reference as it would be written at the new version; a proposal unless `sure`."""
    sure: bool = False
    """Whether `to` may be written without a person looking."""
    confidence: Confidence = "certain"
    method: str = "path"
    start: int | None = None
    end: int | None = None
    to_start: int | None = None
    to_end: int | None = None
    symbol: Symbol | None = None
    """The definition itself, or the innermost one around the range."""
    to_symbol: Symbol | None = None
    old: tuple[str, ...] = ()
    new: tuple[str, ...] = ()
    """The lines of the range on both sides."""

    @cached_property
    def likeness(self) -> float:
        """How much of the text is unchanged, in [0, 1]."""
        if self.text == "gone":
            return 0.0
        a, b = ([line.strip() for line in lines] for lines in (self.old, self.new))
        return SequenceMatcher(None, a, b, autojunk=False).ratio() if a or b else 1.0

    @cached_property
    def changed_lines(self) -> tuple[int, ...]:
        """The old lines, by their numbers, that do not stand in the new text."""
        a, b = ([line.strip() for line in lines] for lines in (self.old, self.new))
        blocks = SequenceMatcher(None, a, b, autojunk=False).get_matching_blocks()
        kept = {block.a + i for block in blocks for i in range(block.size)}
        return tuple((self.start or 1) + i for i in range(len(a)) if i not in kept)

    @property
    def needs_reading(self) -> bool:
        """Whether what a note says of it may no longer be true."""
        return self.state is not State.UNSEEN and (self.text in ("changed", "gone") or not self.sure)


@dataclass(frozen=True, kw_only=True)
class Drifted:
    """One reference of a page with its outcome."""

    reference: Reference
    outcome: Outcome


@dataclass(frozen=True, kw_only=True)
class NoteDrift:
    """One page."""

    page: str
    references: tuple[Drifted, ...]
    wrong: tuple[Diagnostic, ...]
    """What is wrong at the pin already: no move explains it."""

    @property
    def freshness(self) -> Freshness:
        """The worst of its references says it."""
        if any(each.outcome.needs_reading for each in self.references):
            return Freshness.STALE
        moved = any(each.outcome.state in (State.MOVED, State.RENAMED) for each in self.references)
        return Freshness.MOVED if moved else Freshness.FRESH

    @property
    def counts(self) -> dict[str, int]:
        """How many references are in each state, those that occur."""
        found = Counter(each.outcome.state for each in self.references)
        return {state.value: found[state] for state in State if found[state]}


@dataclass(frozen=True, kw_only=True)
class Survey:
    """All pages that refer to the repository."""

    move: Move
    notes: tuple[NoteDrift, ...]
    history: bool
    """Whether the commits between the two versions were followed."""

    @property
    def references(self) -> tuple[Drifted, ...]:
        """The references of all pages in order."""
        return tuple(each for note in self.notes for each in note.references)


def survey(project: Project, pages: Iterable[PageReport], *, move: Move, relocator: Relocator) -> Survey:
    """Place every reference of these pages that is right at the pin; what is wrong there already is told apart."""
    tracer = Tracer(relocator)
    notes = []
    for page in pages:
        found = []
        for reference in page.references:
            place = project.verifier.place(reference.source)
            if reference.source.repository == move.repository.name and place.target:
                found.append(Drifted(reference=reference, outcome=tracer.trace(reference.source, place)))
        wrong = tuple(d for d in page.diagnostics if d.level in BAD)
        if found or wrong:
            notes.append(NoteDrift(page=page.page, references=tuple(found), wrong=wrong))
    return Survey(move=move, notes=tuple(notes), history=relocator.history is not None)


class Tracer:
    """Traces references of all kinds; each place once."""

    def __init__(self, relocator: Relocator) -> None:
        self._relocator = relocator
        self._known: dict[SourceRef, Outcome] = {}

    def trace(self, ref: SourceRef, place: Place) -> Outcome:
        """What became of a reference; `place` is what it is at the old version, with a target."""
        if ref not in self._known:
            self._known[ref] = self._trace(ref, place)
        return self._known[ref]

    def _trace(self, ref: SourceRef, place: Place) -> Outcome:
        assert place.target is not None
        path, start, end = place.target.path, place.target.start, place.target.end
        if place.target.kind == "folder":
            return self._folder(ref, path)
        file = self._relocator.old.file(path)
        if file is None:
            return Outcome(ref=ref, state=State.UNSEEN, text="gone", confidence="unsure", method="none")
        if start is None or end is None:
            return self._file(ref, path)
        placement = self._variable(ref, file, start, end) or self._relocator.relocate(path, start, end)
        return self._range(ref, file, start, end, placement)

    def _folder(self, ref: SourceRef, path: str) -> Outcome:
        inside = f"{path}/" if path else ""
        if any(p.startswith(inside) for p in self._relocator.new.snapshot.list()):
            return Outcome(ref=ref, state=State.SAME, text="same", to=ref, sure=True)
        if not any(p.startswith(inside) for p in self._relocator.old.snapshot.list()):
            return Outcome(ref=ref, state=State.UNSEEN, text="gone", confidence="unsure", method="none")
        return Outcome(ref=ref, state=State.GONE, text="gone", confidence="likely")

    def _file(self, ref: SourceRef, path: str) -> Outcome:
        new_path = self._relocator.new_path(path)
        if new_path is None:
            return Outcome(ref=ref, state=State.GONE, text="gone", confidence="likely")
        to = replace(ref, path=new_path)
        if new_path == path:
            return Outcome(ref=ref, state=State.SAME, text="same", to=to, sure=True)
        old, new = self._relocator.old.snapshot, self._relocator.new.snapshot
        equal = old.blob_id(path) == new.blob_id(new_path)
        confidence: Confidence = "certain" if equal else "likely"
        text: Status = "same" if equal else "changed"
        return Outcome(ref=ref, state=State.RENAMED, text=text, to=to, sure=equal, confidence=confidence)

    def _variable(self, ref: SourceRef, file: SourceFile, start: int, end: int) -> Placement | None:
        """A variable that is named follows its name; `relocate` does so for classes and functions."""
        new = self._relocator.new.file(self._relocator.new_path(file.path))
        if ref.symbol is None or new is None or all(s.kind != "variable" for s in file.table.get(ref.symbol)):
            return None
        there = new.table.get(ref.symbol)
        if len(there) != 1:
            return None
        low, high = there[0].start, there[0].end
        status = compare(file, start, end, new, low, high)
        confidence: Confidence = "certain" if status in ("same", "cosmetic") else "likely"
        return Placement(
            status=status, path=new.path, start=low, end=high, confidence=confidence, method="symbol",
            overlap=1.0 if status == "same" else 0.5,
        )  # fmt: skip

    def _range(self, ref: SourceRef, file: SourceFile, start: int, end: int, placement: Placement) -> Outcome:
        outcome = Outcome(
            ref=ref, state=State.GONE, text=placement.status, confidence=placement.confidence, method=placement.method,
            start=start, end=end, symbol=_symbol(file, ref.symbol, start, end), old=file.lines[start - 1 : end],
        )  # fmt: skip
        if placement.path is None or placement.start is None or placement.end is None:
            return outcome
        new = self._relocator.new.at(placement.path)
        low, high = placement.start, placement.end
        there = _symbol(new, ref.symbol, low, high)
        outcome = replace(
            outcome, to_start=low, to_end=high, to_symbol=there, new=new.lines[low - 1 : high],
            to=_rewritten(ref, placement.path, there, low, high, forward=(ref.start or 0) <= (ref.end or 0)),
        )  # fmt: skip
        stays = placement.path == file.path and (ref.symbol is None or (there is not None and there.name == ref.symbol))
        if not stays:
            state = State.RENAMED
        elif placement.status == "changed":
            state = State.CHANGED
        else:
            state = State.SAME if (low, high) == (start, end) else State.MOVED
        named = _follows_name(outcome.symbol, there, file, new, placement) and stays
        certain = placement.confidence == "certain" and placement.status in ("same", "cosmetic")
        if ref.symbol is not None and (there is None or len(new.table.get(there.name)) != 1):
            certain = named = False
        return replace(outcome, state=state, sure=certain or named)


def _symbol(file: SourceFile, name: str | None, start: int, end: int) -> Symbol | None:
    """The definition at this place: the one of this name, else one that is just this range, else the one around it."""
    exact = [s for s in file.table.symbols if (start, end) == (s.start, s.end) or start == end == s.line]
    named = [s for s in exact if s.name == name]
    around = file.table.enclosing(start, end)
    return next(iter([*named, *exact]), around)


def _follows_name(
    old: Symbol | None, new: Symbol | None, file: SourceFile, new_file: SourceFile, placement: Placement
) -> bool:
    """Whether this is one definition under one name, which is where it is however much of it changed."""
    if placement.method != "symbol" or old is None or new is None or old.name != new.name or placement.overlap < 0.3:
        return False
    return len(file.table.get(old.name)) == len(new_file.table.get(new.name)) == 1


def _rewritten(ref: SourceRef, path: str, symbol: Symbol | None, start: int, end: int, *, forward: bool) -> SourceRef:
    """The same kind of reference at the new place."""
    if ref.symbol is not None:
        return replace(ref, path=path, symbol=symbol.name if symbol else ref.symbol)
    return replace(ref, path=path, start=start if forward else end, end=end if forward else start)
