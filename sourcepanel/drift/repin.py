"""The pin moved: every link rewritten that can be with certainty, all else left at the old pin, marked and listed.

Nothing is written here. A plan holds the new bytes of each file, and was checked as if it stood on disk: the pages
are read again, must hold exactly the references that were meant, and must pass `check` at the new pin.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Literal

from sourcepanel.collect import normal_text
from sourcepanel.config import CONFIG_NAME, Repository
from sourcepanel.drift.pin import move_pin
from sourcepanel.drift.rewrite import Edit, count_edits, edit_page, fix_to, is_link, rewrite
from sourcepanel.drift.survey import Outcome, State, Tracer
from sourcepanel.drift.versions import Move
from sourcepanel.errors import DriftError
from sourcepanel.lock import LeftFacts, Lock, RepositoryLock, format_lock
from sourcepanel.pagecheck import BAD, PageReport
from sourcepanel.project import Project
from sourcepanel.reference import Finding, OtherRef, Reference, SourceRef, Target, parse_code, parse_link
from sourcepanel.relock import relock
from sourcepanel.verify import Place, source_of

Choice = Literal["take", "keep", "leave"]
"""For an uncertain reference: write the proposal, keep it as written for the new pin, or leave it at the old one."""

Found = Reference | Finding


@dataclass(frozen=True, kw_only=True)
class Step:
    """What happens to one reference."""

    found: Found
    outcome: Outcome | None
    """None for one that an earlier pin still holds and that cannot be traced, or that comes home."""
    raw: str
    """How it will be written."""
    left: LeftFacts | None = None
    """What the lock will say of it, where it is left."""
    why: str = ""
    """Why it is left, where the outcome does not say."""


@dataclass(frozen=True, kw_only=True)
class Plan:
    """A whole move, ready to be written."""

    move: Move
    steps: tuple[Step, ...]
    contents: Mapping[Path, bytes]
    """The new bytes of each file that changes."""
    mentions: tuple[tuple[str, int, str], ...]
    """Page, line and text of prose that names the old pin, or lines that moved: a person must look."""

    @property
    def left(self) -> tuple[Step, ...]:
        """References that stay at an earlier pin."""
        return tuple(step for step in self.steps if step.left)

    @property
    def moved(self) -> tuple[Step, ...]:
        """References that are written anew."""
        return tuple(step for step in self.steps if not step.left and step.raw != step.found.raw)

    @property
    def read_again(self) -> tuple[Step, ...]:
        """References that are where they should be, and say something else."""
        return tuple(step for step in self.steps if not step.left and step.outcome and step.outcome.text == "changed")


@dataclass(kw_only=True)
class Planner:
    """Makes the plan of one move."""

    project: Project
    move: Move
    tracer: Tracer
    choose: Callable[[Found, Outcome], Choice] = lambda found, outcome: "leave"
    """Asked about each uncertain reference; once about each place."""
    since: Callable[[LeftFacts], Tracer | None] = lambda facts: None
    """What traces references that an earlier pin still holds."""
    _chosen: dict[SourceRef, Choice] = field(default_factory=dict)
    _refused: dict[tuple[str, str], str] = field(default_factory=dict)
    """Page and spelling of what turned out wrong at the new pin, and why."""

    def plan(self) -> Plan:
        """Raises `DriftError` where the pages are not right to begin with, or cannot be rewritten exactly."""
        report = self.project.check(notes=False)
        wrong = [finding for finding in report.diagnostics if finding.level in BAD]
        if wrong:
            listed = "".join(f"\n  - {finding}" for finding in wrong[:10])
            raise DriftError(f"the pages must be right at the pin before it moves; `sourcepanel check` says:{listed}")
        for _ in range(10):
            made = self._attempt(report.pages)
            if made is not None:
                return made
        raise DriftError("the pages do not settle at the new pin; run `sourcepanel drift` and mend the links by hand")

    def _attempt(self, pages: tuple[PageReport, ...]) -> Plan | None:
        """The plan, or None when some reference turned out wrong at the new pin and is now to be left."""
        config, target = self.project.config, self.move.target
        steps: dict[str, list[Step]] = {}
        contents: dict[Path, bytes] = {}
        texts: dict[str, str] = {}
        for page in pages:
            path = config.path(config.docs) / page.page
            data = path.read_bytes()
            made = steps[page.page] = [self._step(page.page, found) for found in page.found]
            new, misplaced = edit_page(data, count_edits((s.found.line, s.found.raw, s.raw) for s in made))
            if misplaced:
                self._refuse(page.page, misplaced)
                return None
            texts[page.page] = normal_text(new.decode("utf-8"))
            if new != data:
                contents[path] = new
        lock = self._lock([step for made in steps.values() for step in made], texts)
        if lock is None:
            return None
        self._compare(steps, texts, lock)
        toml, locked = config.root / CONFIG_NAME, config.path(config.lock)
        for path, data in (
            (locked, format_lock(lock).encode()),
            (toml, move_pin(toml.read_bytes(), old=self.move.repository, new=target, path=toml)),
        ):
            if not path.exists() or path.read_bytes() != data:
                contents[path] = data
        every = tuple(step for made in steps.values() for step in made)
        return Plan(move=self.move, steps=every, contents=contents, mentions=tuple(_mentions(steps, texts, self.move)))

    def _step(self, page: str, found: Found) -> Step:
        source, same = source_of(found), Step(found=found, outcome=None, raw=found.raw)
        if source is None or source.repository != self.move.repository.name:
            return same
        verifier = self.project.verifier
        facts = verifier.left(found)
        if facts is not None:
            pin = self._pin(facts)
            if facts.commit == self.move.version.commit:
                return same
            tracer, place = self.since(facts), _place(source, facts)
        else:
            pin, tracer, place = self.move.repository, self.tracer, verifier.place(source)
        if place.target is None or place.facts is None or tracer is None:
            return replace(same, left=facts)
        outcome = tracer.trace(source, place)
        left = facts or LeftFacts(**place.facts.model_dump(), ref=pin.ref, commit=pin.commit)
        to, why = self._decide(page, found, outcome)
        if to is not None:
            raw = rewrite(found.raw, was=source, to=to, old=pin, new=self.move.target)
            if raw is not None:
                return Step(found=found, outcome=outcome, raw=raw)
            why = "its spelling cannot be carried over"
        kept = fix_to(found.raw, was=source, pin=pin, new=self.move.target) if is_link(found.raw) else found.raw
        if kept is None:
            raise DriftError(f"{page}:{found.line}: {found.raw} cannot be left at {pin.ref}; link a tag or a commit")
        return Step(found=found, outcome=outcome, raw=kept, left=left, why=why)

    def _decide(self, page: str, found: Found, outcome: Outcome) -> tuple[SourceRef | None, str]:
        """What the reference becomes, None where it is left; and why, where the outcome does not say."""
        if why := self._refused.get((page, found.raw)):
            return None, why
        if outcome.sure:
            return outcome.to, ""
        if outcome.state is State.UNSEEN:
            return None, "this build's source lacks the file"
        if outcome.ref not in self._chosen:
            self._chosen[outcome.ref] = self.choose(found, outcome)
        choice = self._chosen[outcome.ref]
        return {"take": outcome.to, "keep": outcome.ref, "leave": None}[choice], ""

    def _pin(self, facts: LeftFacts) -> Repository:
        return self.move.repository.model_copy(update={"ref": facts.ref, "commit": facts.commit})

    def _refuse(self, page: str, misplaced: tuple[Edit, ...]) -> None:
        """Leave what cannot be found in the text; what would then mean another place ends the move."""
        for edit in misplaced:
            again = self._refused.get((page, edit.raw))
            if again is not None:
                fix = "write the link plainly, on one line of its own"
                raise DriftError(f"{page}:{edit.line}: cannot tell where {edit.raw} stands in the text; {fix}")
            self._refused[page, edit.raw] = "its place in the text is not clear"

    def _lock(self, steps: list[Step], texts: Mapping[str, str]) -> Lock | None:
        """The lock of the new pin; None when some reference is wrong there."""
        name, target = self.move.repository.name, self.move.target
        left = {source.key: s.left for s in steps if s.left and (source := source_of(s.found))}
        pin = RepositoryLock(url=target.url, ref=target.ref, commit=target.commit, left=left)
        start = Lock(repositories={**self.project.lock.repositories, name: pin}, pages=self._foreign())
        made = relock(self._there(start, texts))
        wrong = made.wrong
        if made.lock is not None:
            after = self._there(made.lock, texts).check(notes=False)
            wrong = tuple(finding for finding in after.diagnostics if finding.level in BAD)
        if not wrong:
            return made.lock
        by_spelling = {(step.found.page, step.raw): step for step in steps if not step.left}
        for finding in wrong:
            step = by_spelling.get((finding.page, finding.link))
            if step is None or (step.found.page, step.found.raw) in self._refused:
                raise DriftError(f"the pages would not be right at {target.ref}: {finding}")
            self._refused[step.found.page, step.found.raw] = finding.message
        return None

    def _foreign(self) -> dict[str, dict[str, int]]:
        """What the lock holds of other repositories' links: a source that lacks files vouches for those only."""
        prefix = f"{self.move.repository.name}:"
        pages = self.project.lock.pages.items()
        return {page: {e: n for e, n in entries.items() if not e.startswith(prefix)} for page, entries in pages}

    def _there(self, lock: Lock, texts: Mapping[str, str]) -> Project:
        """The project as it will be."""
        config, name = self.project.config, self.move.repository.name
        repositories = tuple(self.move.target if r.name == name else r for r in config.repositories)
        config = config.model_copy(update={"repositories": repositories})
        return Project(config, lock, self.project.notify, given={name: self.move.new}, texts=texts)

    def _compare(self, steps: Mapping[str, list[Step]], texts: Mapping[str, str], lock: Lock) -> None:
        """Each page must hold exactly what was meant, in the same order: else an edit hit the wrong place."""
        repositories = self._there(lock, texts).config.repositories
        for page in self._there(lock, texts).check(notes=False).pages:
            expected = [_meaning(step.raw, repositories) for step in steps[page.page]]
            found = [_meaning(found.raw, repositories) for found in page.found]
            if expected != found:
                raise DriftError(f"{page.page}: rewriting its links would change others; nothing was written")


def _place(source: SourceRef, facts: LeftFacts) -> Place:
    """What the lock tells of a reference at its own pin."""
    target = Target(
        repository=source.repository, path=source.path.strip("/"), kind=facts.kind, start=facts.start, end=facts.end,
        symbol=facts.symbol, blob="", has_text=False, href="",
    )  # fmt: skip
    return Place(target, facts)


def _meaning(raw: str, repositories: tuple[Repository, ...]) -> object:
    parsed = parse_link(raw, repositories) if is_link(raw) else parse_code(raw, repositories)
    return (parsed.ref, parsed.source) if isinstance(parsed, OtherRef) else parsed


def _mentions(steps: Mapping[str, list[Step]], texts: Mapping[str, str], move: Move) -> list[tuple[str, int, str]]:
    """Lines of prose that name the old pin, and link texts that name lines which moved."""
    found = []
    old = move.repository
    names = (old.ref, old.commit[:7]) if move.version.commit != old.commit else ()
    for page, made in steps.items():
        spellings = sorted({step.raw for step in made}, key=len, reverse=True)
        for number, line in enumerate(texts[page].split("\n"), 1):
            bare = line
            for raw in spellings if any(name in line for name in names) else ():
                bare = bare.replace(raw, "")
            if any(name in bare for name in names):
                found.append((page, number, line.strip()))
        for step in made:
            outcome = step.outcome
            moved = outcome and step.raw != step.found.raw and outcome.to_start != outcome.start
            if moved and outcome and str(outcome.start) in step.found.text and is_link(step.found.raw):
                found.append((page, step.found.line, f"[{step.found.text}]"))
    return list(dict.fromkeys(found))
