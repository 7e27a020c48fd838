"""References against the source at the pin: each becomes a target, or a finding that says what is right."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Literal

from sourcepanel.diagnostics import Code, Diagnostic, Level
from sourcepanel.errors import PinMismatch
from sourcepanel.lock import FileFacts, LeftFacts, LinkFacts, spell
from sourcepanel.names import listed, misfit
from sourcepanel.reference import Finding, MalformedLink, OtherRef, Reference, SourceRef, Target, format_link
from sourcepanel.source import Source, SourceFile

Kind = Literal["definition", "interior", "file", "folder"]


@dataclass(frozen=True)
class Problem:
    """A finding before it is known on which page it stands."""

    code: Code
    message: str
    fix: str = ""


@dataclass(frozen=True)
class Place:
    """What a `SourceRef` comes to; `facts` is None where only a source at hand could tell."""

    target: Target | None
    facts: LinkFacts | None = None
    file: SourceFile | None = None
    problems: tuple[Problem, ...] = ()


class Verifier:
    """Resolves references; every answer is computed once."""

    def __init__(self, sources: Mapping[str, Source], *, level: Callable[[Code], Level]) -> None:
        self._sources = sources
        self.level = level
        self._places: dict[SourceRef, Place] = {}

    def resolve(self, found: Reference | Finding) -> tuple[Target | None, tuple[Diagnostic, ...]]:
        """The target, or None where there is none or this build cannot see it; and all that is wrong."""
        if left := self.left(found):
            target = self.place(found.source).target if isinstance(found, Reference) else None
            return target, self._told([self._left_behind(left, found)], at=found)
        if isinstance(found, Finding):
            return None, self._told([self._unusable(found)], at=found)
        place = self.place(found.source)
        problems = list(place.problems)
        if place.target and place.file and place.file.has_text and not found.source.symbol:
            misfits = (misfit(name, target=place.target, file=place.file) for name in found.names)
            problems += [Problem(Code.TEXT_MISMATCH, *wrong) for wrong in misfits if wrong]
        return place.target, self._told(problems, at=found)

    def left(self, found: Reference | Finding) -> LeftFacts | None:
        """What the lock says of a reference that stayed at an earlier pin; None for any other."""
        source = source_of(found)
        facts = self._sources[source.repository].left.get(source.key) if source else None
        if facts is None or isinstance(found, Reference):
            return facts
        ref = found.problem.ref if isinstance(found.problem, OtherRef) else ""
        return facts if ref == facts.ref or (len(ref) >= 7 and facts.commit.startswith(ref.lower())) else None

    def _left_behind(self, facts: LeftFacts, found: Reference | Finding) -> Problem:
        source = source_of(found)
        assert source is not None
        message = f"still at {facts.ref}, an earlier pin: {source.key} could not be moved with certainty"
        return Problem(Code.LEFT_BEHIND, message, "mend the link by hand, or run `sourcepanel repin --interactive`")

    def diagnostic(self, problem: Problem, *, at: Reference | Finding) -> Diagnostic | None:
        """The problem with its place and level; None where the configuration ignores it."""
        level = self.level(problem.code)
        if level is Level.IGNORE:
            return None
        return Diagnostic(
            code=problem.code, level=level, page=at.page, line=at.line, link=at.raw,
            message=problem.message, fix=problem.fix,
        )  # fmt: skip

    def _told(self, problems: list[Problem], *, at: Reference | Finding) -> tuple[Diagnostic, ...]:
        return tuple(d for problem in problems if (d := self.diagnostic(problem, at=at)))

    def _unusable(self, finding: Finding) -> Problem:
        if isinstance(finding.problem, MalformedLink):
            return Problem(Code.MALFORMED_LINK, finding.problem.reason)
        source, ref = finding.problem.source, finding.problem.ref
        pin = self._sources[source.repository].repository
        message = f"points at {ref}, not at the pin {pin.ref} ({pin.commit[:8]})"
        return Problem(Code.OTHER_REF, message, self.at_pin(source))

    def place(self, ref: SourceRef) -> Place:
        """Where it points at the pin, without regard to the text of the link."""
        if ref not in self._places:
            source = self._sources[ref.repository]
            try:
                place = _find(ref, source)
            except PinMismatch as error:
                place = Place(None, problems=(Problem(Code.LOCK_MISMATCH, str(error)),))
            self._places[ref] = _compare(ref, place, source)
        return self._places[ref]

    def at_pin(self, ref: SourceRef) -> str:
        """What the pin has where this reference points, in one clause; for links to another ref."""
        place = self.place(ref)
        if place.target is None:
            return "; ".join(p.message + (f" ({p.fix})" if p.fix else "") for p in place.problems)
        target, file = place.target, place.file
        if target.kind == "folder":
            return f"the pin has the folder {target.path or '/'}"
        if target.start is None or target.end is None:
            return f"the pin has this file ({file.count if file else 0} lines)"
        where = f"{spell(target.start, target.end)} {'is' if target.start == target.end else 'are'}"
        if target.kind == "definition":
            return f"at the pin {where} {target.symbol}"
        return (
            f"at the pin {where} inside {target.symbol}" if target.symbol else f"at the pin {where} outside any symbol"
        )


def source_of(found: Reference | Finding) -> SourceRef | None:
    """The place in the source that is meant, at whatever version."""
    if isinstance(found, Reference):
        return found.source
    return found.problem.source if isinstance(found.problem, OtherRef) else None


def _find(ref: SourceRef, source: Source) -> Place:
    """The place itself; may raise `PinMismatch`."""
    path = ref.path.strip("/")
    if path in source.folders:
        return _folder(replace(ref, path=path), source)
    file = source.file(path)
    if file is None:
        return Place(None, problems=(_missing(path, source),))
    if ref.symbol:
        return _symbol(ref, ref.symbol, file, source)
    if ref.start is None:
        facts = LinkFacts(kind="file")
        return Place(_target(path, facts, file, source), facts, file)
    return _lines(ref, ref.start, ref.end or ref.start, file, source)


def _folder(ref: SourceRef, source: Source) -> Place:
    if ref.symbol:
        return Place(None, problems=(Problem(Code.MISSING_SYMBOL, f"{ref.path} is a folder and defines nothing"),))
    if ref.start is not None:
        return Place(None, problems=(Problem(Code.LINE_PAST_END, f"{ref.path} is a folder and has no lines"),))
    facts = LinkFacts(kind="folder")
    return Place(_target(ref.path, facts, None, source), facts)


def _symbol(ref: SourceRef, name: str, file: SourceFile, source: Source) -> Place:
    if file.encoding == "absent":
        return _from_lock(ref, file, source)
    found = file.symbols.get(name)
    if len(found) == 1:
        facts = _range_facts(found[0].start, found[0].end, file)
        # Two names may share one span (`A, B = 1, 2`): the one that was asked for counts.
        facts = facts.model_copy(update={"kind": "definition", "symbol": name})
        return Place(_target(file.path, facts, file, source), facts, file)
    if found:
        message = f"{file.path} defines {name} {len(found)} times"
        fix = "link one of them by its lines: " + ", ".join(f"#{spell(s.start, s.end)}" for s in found)
        return Place(None, file=file, problems=(Problem(Code.AMBIGUOUS_SYMBOL, message, fix),))
    if not file.symbols.parsed:
        message = f"{file.path} is not code that can be parsed here, so nothing is known of {name}"
        return Place(None, file=file, problems=(Problem(Code.MISSING_SYMBOL, message, "link the lines instead"),))
    near = tuple(s for other in file.symbols.nearest(name) for s in file.symbols.get(other)[:1])
    fix = f"did you mean {listed(near)}?" if near else ""
    return Place(None, file=file, problems=(Problem(Code.MISSING_SYMBOL, f"{file.path} defines no {name}", fix),))


def _lines(ref: SourceRef, start: int, end: int, file: SourceFile, source: Source) -> Place:
    problems: tuple[Problem, ...] = ()
    if start > end:
        start, end = end, start
        message = f"the range runs backwards: L{end}-L{start}"
        problems = (Problem(Code.REVERSED_RANGE, message, f"write #{spell(start, end)}"),)
    if end > file.count or start < 1:
        if start < 1:
            message = "lines are counted from 1"
        elif file.encoding == "binary":
            message = f"{file.path} is a binary file and has no lines"
        else:
            message = f"L{end} is past the end: {file.path} has {file.count} lines"
        return Place(None, file=file, problems=(*problems, Problem(Code.LINE_PAST_END, message)))
    if file.encoding == "absent":
        return _from_lock(ref, file, source, problems)
    facts = _range_facts(start, end, file)
    return Place(_target(file.path, facts, file, source), facts, file, problems)


def _from_lock(ref: SourceRef, file: SourceFile, source: Source, problems: tuple[Problem, ...] = ()) -> Place:
    """What the lock says of a link into a file that this build has no text of."""
    facts = source.locked.links.get(ref.key) if source.locked else None
    return Place(_target(file.path, facts, file, source) if facts else None, facts, file, problems)


def _range_facts(start: int, end: int, file: SourceFile) -> LinkFacts:
    exact = [
        symbol
        for symbol in file.symbols.symbols
        if (start, end) in ((symbol.start, symbol.end), (symbol.line, symbol.end), (symbol.line, symbol.line))
    ]
    symbol = exact[0] if exact else file.symbols.enclosing(start, end)
    kind: Kind = "definition" if exact else "interior"
    name = symbol.name if symbol else None
    return LinkFacts(kind=kind, start=start, end=end, symbol=name, hash=file.hash(start, end))


def _target(path: str, facts: LinkFacts, file: SourceFile | None, source: Source) -> Target:
    name = source.repository.name
    meant = SourceRef(repository=name, path=path, folder=file is None, start=facts.start, end=facts.end)
    return Target(
        repository=name,
        path=path,
        kind=facts.kind,
        start=facts.start,
        end=facts.end,
        symbol=facts.symbol,
        blob=file.blob if file else "",
        has_text=file.has_text if file else False,
        href=format_link(meant, source.repository),
    )


def _missing(path: str, source: Source) -> Problem:
    near = source.nearest(path)
    fix = f"did you mean {' or '.join(near)}?" if near else ""
    if source.snapshot.complete:
        return Problem(Code.MISSING_FILE, f"no file or folder {path} at the pin", fix)
    message = f"neither the lock nor this build's source ({source.snapshot.origin}) has {path}"
    new = "if it is new, run `sourcepanel lock` with a full clone named in SOURCEPANEL_CHECKOUT"
    return Problem(Code.MISSING_FILE, message, f"{fix} {new}".lstrip())


def _compare(ref: SourceRef, place: Place, source: Source) -> Place:
    """The place, and whether the lock says otherwise of it."""
    if source.locked is None or place.facts is None:
        return place
    problems = list(place.problems)
    fix = "run `sourcepanel lock` and read what changes"
    file = place.file
    if file and file.path in source.locked.files:
        known, found = source.locked.files[file.path], FileFacts(blob=file.blob, lines=file.count)
        if known != found:
            said = f"the lock knows {file.path} as {known.blob[:8]} with {known.lines} lines"
            message = f"{said}; at the pin it is {found.blob[:8]} with {found.lines}"
            problems.append(Problem(Code.LOCK_MISMATCH, message, fix))
    locked = source.locked.links.get(ref.key)
    if locked and locked != place.facts:
        message = f"the lock says {locked.tell()}; the source at the pin says {place.facts.tell()}"
        problems.append(Problem(Code.LOCK_MISMATCH, message, fix))
    return replace(place, problems=tuple(problems))
