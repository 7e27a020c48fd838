"""What one page refers to, gathered while it is rendered, and whether all of it is right."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Literal

from sourcepanel.diagnostics import Code, Diagnostic, Level
from sourcepanel.ledger import LOCK, audit, looks_like
from sourcepanel.lock import entry_place
from sourcepanel.reference import Finding, Reference, Target
from sourcepanel.source import Source
from sourcepanel.verify import Problem, Verifier, source_of

BAD = frozenset({Level.ERROR, Level.WARNING})


@dataclass(frozen=True, kw_only=True)
class PageReport:
    """One page, checked."""

    page: str
    references: tuple[Reference, ...]
    targets: tuple[Target, ...]
    """One per reference that has one, in order; the same target may come several times."""
    diagnostics: tuple[Diagnostic, ...]
    """In order of their lines."""
    total: int
    """All that points into a pinned repository, understood or not."""
    from_source: int
    """How many of them the source at hand has answered, rightly or wrongly written."""
    from_lock: int
    """How many the lock alone has answered, because this build lacks the file."""
    found: tuple[Reference | Finding, ...] = ()
    """All of it in the order of the page."""
    left: frozenset[tuple[str, str]] = frozenset()
    """Repository and key of what an earlier pin still holds and this one does not."""

    @property
    def checked(self) -> int:
        """How many have been answered at all; the rest points where this build cannot look."""
        return self.from_source + self.from_lock


class PageCheck:
    """Resolves the references of one page as they come; `report` then compares the page with the lock.

    `locked` is the lock's account of the page, None where it has none.
    """

    def __init__(
        self, page: str, *, verifier: Verifier, sources: Mapping[str, Source], locked: Mapping[str, int] | None
    ) -> None:
        self.page = page
        self._verifier = verifier
        self._sources = sources
        self._locked = locked
        self._found: list[tuple[Reference | Finding, Target | None, tuple[Diagnostic, ...]]] = []

    def resolve(self, found: Reference | Finding) -> Target | None:
        """The target to link to, or None for a broken reference; the findings wait for `report`."""
        target, diagnostics = self._verifier.resolve(found)
        self._found.append((found, target, diagnostics))
        return target

    def report(self, *, text: str = "", also: Iterable[Diagnostic] = ()) -> PageReport:
        """All findings, those of the lock included, and `also` what other checks say of the page.

        With the `text` of the page, a reference that is gone is told on the line that looks most like it: a slip
        may have made it no reference at all.
        """
        diagnostics = [*also, *(d for _, _, found in self._found for d in found)]
        diagnostics += self._audit(text)
        answers = [self._answered_by(found) for found, _, _ in self._found]
        return PageReport(
            page=self.page,
            references=tuple(found for found, _, _ in self._found if isinstance(found, Reference)),
            targets=tuple(target for _, target, _ in self._found if target),
            diagnostics=tuple(sorted(diagnostics, key=lambda d: d.line)),
            total=len(self._found),
            from_source=answers.count("source"),
            from_lock=answers.count("lock"),
            found=tuple(found for found, _, _ in self._found),
            left=frozenset(
                (source.repository, source.key)
                for found, _, _ in self._found
                if self._verifier.left(found) and (source := source_of(found))
            ),
        )

    def _answered_by(self, found: Reference | Finding) -> Literal["source", "lock", "nothing"]:
        if self._verifier.left(found):
            return "lock"
        if isinstance(found, Finding):
            return "source"
        source, place = self._sources[found.source.repository], self._verifier.place(found.source)
        if place.file is None and place.target is None:
            return "source" if source.snapshot.complete else "nothing"
        if place.file is None or place.file.encoding != "absent":
            return "source"
        return "lock" if place.target or place.problems else "nothing"

    def _audit(self, text: str) -> list[Diagnostic]:
        """The findings of the lock; a reference that is wrong anyway is not told twice."""
        good = [(f, t) for f, t, told in self._found if isinstance(f, Reference) and not _is_bad(told)]
        everything = [f for f, _, _ in self._found if isinstance(f, Reference)]
        if self._locked is None:
            if not good:
                return []
            message = f"the lock does not know this page ({len(everything)} references)"
            return self._tell(Problem(Code.NOT_LOCKED, message, f"{LOCK} adds it"), at=good[0][0])
        told: list[Diagnostic] = []
        compared = audit(everything, locked=self._locked)
        right = {id(reference) for reference, _ in good}
        for unlocked in compared.unlocked:
            if id(unlocked.reference) in right:
                told += self._tell(Problem(Code.NOT_LOCKED, *unlocked.explain()), at=unlocked.reference)
        missing = {id(unlocked.reference) for unlocked in compared.unlocked}
        for reference, target in good:
            locked = self._sources[reference.source.repository].locked
            if id(reference) not in missing and target and locked and reference.source.key not in locked.links:
                message = f"the lock lists {reference.source.key} for this page, but has no facts about it"
                told += self._tell(Problem(Code.LOCK_MISMATCH, message, f"run {LOCK}"), at=reference)
        elsewhere = Counter(
            f"{source.repository}:{source.key}"
            for found, _, said in self._found
            if isinstance(found, Finding) and _is_bad(said) and (source := source_of(found))
        )
        for entry, count in compared.stale:
            if (rest := count - elsewhere[entry_place(entry)]) > 0:
                told += self._stale(entry, rest, text)
        return told

    def _stale(self, entry: str, count: int, text: str) -> list[Diagnostic]:
        times = "" if count == 1 else f" {count} times more"
        message = f"the lock holds {entry} for this page{times}, which the page does not"
        level = self._verifier.level(Code.STALE_LOCK)
        fix = f"mend the link that it was, or run {LOCK}"
        line = looks_like(entry, text, known={found.raw for found, _, _ in self._found})
        finding = Diagnostic(
            code=Code.STALE_LOCK, level=level, page=self.page, line=line, link=entry, message=message, fix=fix
        )
        return [] if level is Level.IGNORE else [finding]

    def _tell(self, problem: Problem, *, at: Reference) -> list[Diagnostic]:
        found = self._verifier.diagnostic(problem, at=at)
        return [found] if found else []


def _is_bad(diagnostics: tuple[Diagnostic, ...]) -> bool:
    return any(d.level in BAD for d in diagnostics)
