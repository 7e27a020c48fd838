"""The next lock: made anew from the source and the pages, and told apart from the last one."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

from sourcepanel.diagnostics import Code, Diagnostic
from sourcepanel.errors import LockError, PinMismatch
from sourcepanel.lock import FileFacts, LinkFacts, Lock, RepositoryLock, page_entry
from sourcepanel.pagecheck import BAD, PageReport
from sourcepanel.project import Notify, Project
from sourcepanel.reference import Reference
from sourcepanel.source import Source
from sourcepanel.verify import Verifier

_OF_THE_LOCK = frozenset({Code.NOT_LOCKED, Code.STALE_LOCK, Code.LOCK_MISMATCH, Code.LEFT_BEHIND})


@dataclass(frozen=True)
class PageChange:
    """What a page refers to now and did not, and the other way round."""

    page: str
    added: tuple[str, ...] = ()
    removed: tuple[str, ...] = ()


@dataclass(frozen=True)
class Relocked:
    """The outcome of `relock`: `lock` is None where the pages must be mended first."""

    lock: Lock | None
    wrong: tuple[Diagnostic, ...] = ()
    """What keeps the pages from being locked: a lock vouches for verified links only."""
    pages: tuple[PageChange, ...] = ()
    facts: tuple[tuple[str, LinkFacts, LinkFacts], ...] = ()
    """Links that resolve to something else than they did: entry, before, now."""
    pins: tuple[str, ...] = ()
    """Repositories that moved, one clause each."""


def relock(project: Project, *, seen: Notify = lambda page: None) -> Relocked:
    """Read all pages and make the lock they need.

    From a snapshot of the whole commit every fact is made anew. One that lacks files (the wheel) leaves
    what the lock holds about those as it is, and raises `LockError` for a reference that neither can answer.
    """
    trusting = replace(project, trust=True)
    sources = trusting.sources
    for source in sources.values():
        _compare(source)
    report = trusting.check(notes=False, seen=seen)
    wrong = tuple(d for d in report.diagnostics if d.level in BAD and d.code not in _OF_THE_LOCK)
    if wrong:
        return Relocked(None, wrong)
    known = {entry for page in project.lock.pages.values() for entry in page}
    for page in report.pages:
        for reference in page.references:
            if trusting.verifier.left(reference):
                continue
            _refuse_unseen(reference, trusting.verifier, sources[reference.source.repository], known)
    lock = Lock(
        repositories={name: _repository(source, report.pages, trusting.verifier) for name, source in sources.items()},
        pages={page.page: counted for page in report.pages if (counted := _count(page.references))},
    )
    before = project.lock
    return Relocked(lock, (), tuple(_pages(before, lock)), tuple(_facts(before, lock)), tuple(_pins(before, lock)))


def _compare(source: Source) -> None:
    """A wheel can be anything: where the lock knows a file of it, it must be that file."""
    if source.locked is None:
        return
    for path, facts in source.locked.files.items():
        if path in source.seen and (found := source.snapshot.blob_id(path)) != facts.blob:
            fix = f"{source.snapshot.origin} is not the pin; give a full clone in SOURCEPANEL_CHECKOUT"
            raise PinMismatch(path, expected=f"git blob {facts.blob}", found=found, fix=fix)


def _refuse_unseen(reference: Reference, verifier: Verifier, source: Source, known: set[str]) -> None:
    """A file without text is vouched for by the last lock, or by nobody."""
    place = verifier.place(reference.source)
    if place.target and (place.file is None or place.file.encoding != "absent"):
        return
    if place.target is None or page_entry(reference) not in known:
        what = f"{source.snapshot.origin} does not hold {reference.source.path}, and the lock does not know"
        fix = "run `sourcepanel lock` with a full clone named in SOURCEPANEL_CHECKOUT"
        raise LockError(f"{reference.page}:{reference.line}: {what} {page_entry(reference)}; {fix}")


def _repository(source: Source, pages: Sequence[PageReport], verifier: Verifier) -> RepositoryLock:
    repository = source.repository
    files: dict[str, FileFacts] = {}
    links: dict[str, LinkFacts] = {}
    if licence := source.file(repository.license.path):
        files[licence.path] = FileFacts(blob=licence.blob, lines=licence.count)
    for reference in (reference for page in pages for reference in page.references):
        if reference.source.repository != repository.name:
            continue
        place = verifier.place(reference.source)
        if place.facts:
            links[reference.source.key] = place.facts
        if place.file:
            files[place.file.path] = FileFacts(blob=place.file.blob, lines=place.file.count)
    used = {key for page in pages for name, key in page.left if name == repository.name}
    left = {key: facts for key, facts in source.left.items() if key in used}
    pin = {"url": repository.url, "ref": repository.ref, "commit": repository.commit}
    return RepositoryLock(**pin, files=files, links=links, left=left)


def _count(references: Iterable[Reference]) -> dict[str, int]:
    return dict(Counter(page_entry(reference) for reference in references))


def _pages(before: Lock, after: Lock) -> Iterator[PageChange]:
    for page in sorted(before.pages.keys() | after.pages.keys()):
        was, now = Counter(before.pages.get(page, {})), Counter(after.pages.get(page, {}))
        added, removed = sorted((now - was).elements()), sorted((was - now).elements())
        if added or removed:
            yield PageChange(page, tuple(added), tuple(removed))


def _facts(before: Lock, after: Lock) -> Iterator[tuple[str, LinkFacts, LinkFacts]]:
    for name, repository in after.repositories.items():
        was = before.repositories[name].links if name in before.repositories else {}
        for key, now in sorted(repository.links.items()):
            if key in was and was[key] != now:
                yield f"{name}:{key}", was[key], now


def _pins(before: Lock, after: Lock) -> Iterator[str]:
    for name in sorted(before.repositories.keys() | after.repositories.keys()):
        was, now = before.repositories.get(name), after.repositories.get(name)
        if was is None or now is None:
            yield f"{name}: {'new' if was is None else 'gone'}"
        elif (was.url, was.ref, was.commit) != (now.url, now.ref, now.commit):
            yield f"{name}: {was.ref} ({was.commit[:8]}) → {now.ref} ({now.commit[:8]})"
