"""One site: its configuration, lock and pinned sources, and the checks over its pages."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from types import MappingProxyType

from sourcepanel.collect import PageReader, read_page
from sourcepanel.config import CONFIG_NAME, Config, Repository, load_config
from sourcepanel.diagnostics import Code, Diagnostic, Level
from sourcepanel.errors import PinMismatch
from sourcepanel.journal import recover
from sourcepanel.ledger import LOCK
from sourcepanel.lock import Lock, entry_place, read_lock
from sourcepanel.notes.checks import NoteChecks
from sourcepanel.notes.evidence import Evidence
from sourcepanel.notes.extension import NotesExtension
from sourcepanel.notes.stats import Names, PageStats, page_stats
from sourcepanel.pagecheck import PageCheck, PageReport
from sourcepanel.reference import Target
from sourcepanel.snapshot import Snapshot, open_snapshot
from sourcepanel.source import Source
from sourcepanel.verify import Verifier, source_of
from sourcepanel.xref.store import cached_index

Notify = Callable[[str], None]


class Sources(Mapping[str, Source]):
    """The pinned sources by repository name, in the order of the configuration; each is opened when first asked for.

    With `trust` the lock is not held against a snapshot that has the whole commit: that is how a new lock is made.
    """

    def __init__(
        self,
        config: Config,
        *,
        lock: Lock,
        notify: Notify,
        trust: bool = False,
        given: Mapping[str, Snapshot] = MappingProxyType({}),
    ) -> None:
        self._config = config
        self._lock = lock
        self._notify = notify
        self._trust = trust
        self._given = given
        self._repositories = {repository.name: repository for repository in config.repositories}
        self._open: dict[str, Source] = {}

    def __getitem__(self, name: str) -> Source:
        if name not in self._open:
            self._open[name] = self._make(self._repositories[name])
        return self._open[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._repositories)

    def __len__(self) -> int:
        return len(self._repositories)

    def _make(self, repository: Repository) -> Source:
        locked = self._lock.repository(repository.name, commit=repository.commit)
        blobs = {path: facts.blob for path, facts in locked.files.items()} if locked and not self._trust else {}
        snapshot = self._given.get(repository.name) or open_snapshot(
            repository, root=self._config.root, cache=self._config.cache_dir, blobs=blobs, notify=self._notify
        )
        left = locked.left if locked else {}
        locked = None if self._trust and snapshot.complete else locked
        return Source(repository, snapshot=snapshot, locked=locked, cache=self._config.cache_dir, left=left)


@dataclass(frozen=True)
class Report:
    """All pages that were asked for, checked."""

    pages: tuple[PageReport, ...]
    general: tuple[Diagnostic, ...] = ()
    """Findings about the lock as a whole; they stand at the lock's own name."""

    @property
    def diagnostics(self) -> tuple[Diagnostic, ...]:
        """Every finding: the general ones, then page by page."""
        return (*self.general, *(d for page in self.pages for d in page.diagnostics))

    @property
    def targets(self) -> tuple[Target, ...]:
        """Everything that the panel must be able to open, once each, in order of first use."""
        return tuple(dict.fromkeys(target for page in self.pages for target in page.targets))

    @property
    def total(self) -> int:
        """References on all pages, understood or not."""
        return sum(page.total for page in self.pages)

    @property
    def from_source(self) -> int:
        """How many of them the source at hand has answered."""
        return sum(page.from_source for page in self.pages)

    @property
    def from_lock(self) -> int:
        """How many the lock alone has answered."""
        return sum(page.from_lock for page in self.pages)

    def count(self, level: Level) -> int:
        """How many findings have this level."""
        return sum(d.level is level for d in self.diagnostics)

    def fails(self, *, strict: bool = True) -> bool:
        """Whether a build must fail: on errors always, on warnings where it is strict."""
        return bool(self.count(Level.ERROR) or (strict and self.count(Level.WARNING)))


@dataclass(frozen=True)
class Project:
    """A configuration and its lock; sources are opened when first needed, and never change."""

    config: Config
    lock: Lock
    notify: Notify
    trust: bool = False
    """Whether a snapshot of the whole commit outranks the lock: so while a new lock is made."""
    given: Mapping[str, Snapshot] = field(default_factory=dict)
    """Snapshots by repository name that stand in for those that would be opened."""
    texts: Mapping[str, str] = field(default_factory=dict)
    """Pages by name whose text is this and not the file's: how a rewrite is checked before it is written."""

    @classmethod
    def open(cls, config_path: Path = Path(CONFIG_NAME), *, notify: Notify) -> Project:
        """Read configuration and lock; raises `ConfigError` and `LockError`. `notify` gets progress, line by line."""
        config = load_config(config_path)
        if recover(config.root, notify=notify):
            config = load_config(config_path)
        return cls(config, read_lock(config.path(config.lock)), notify)

    @cached_property
    def sources(self) -> Sources:
        """The pinned sources by repository name; raises `SnapshotUnavailable` when one is first asked for."""
        return Sources(self.config, lock=self.lock, notify=self.notify, trust=self.trust, given=self.given)

    @cached_property
    def verifier(self) -> Verifier:
        """What resolves references; its answers hold for the whole life of the project."""
        return Verifier(self.sources, level=self.config.level)

    @cached_property
    def evidence(self) -> Evidence:
        """What the records of notes are held against: recorded runs, and the source at the pin."""
        return Evidence.of(self.config, find=lambda ref: self.verifier.place(ref).target)

    def note_checks(self) -> NoteChecks:
        """The checks of what a page says, beside those of its references."""
        return NoteChecks(
            self.config,
            snapshots=lambda: [source.snapshot for source in self.sources.values()],
            evidence=self.evidence,
            notify=self.notify,
        )

    @cached_property
    def names(self) -> Names:
        """What the sources at hand define."""
        cache = self.config.cache_dir
        indexes = (cached_index(source, cache=cache, notify=self.notify) for source in self.sources.values())
        return Names(definition for index in indexes for definition in index.definitions)

    def stats(self, report: PageReport) -> PageStats:
        """How much of a page that was checked is proved."""
        places = {f"{source.repository}:{source.key}" for found in report.found if (source := source_of(found))}
        return page_stats(
            self.text(report.page),
            keys=places,
            lines={found.line for found in report.found},
            defined=self.names,
            evidence=self.evidence,
        )

    def text(self, page: str) -> str:
        """A page's text; raises `PageError`."""
        if page in self.texts:
            return self.texts[page]
        return read_page(self.config.path(self.config.docs) / page)

    def exists(self, repository: str, path: str) -> bool:
        """Whether the pin is known to hold this file or folder."""
        return self.sources[repository].has(path)

    def page(self, name: str) -> PageCheck:
        """A new check of one page (its path relative to the docs folder); give its `resolve` to the renderer."""
        return PageCheck(name, verifier=self.verifier, sources=self.sources, locked=self.lock.pages.get(name))

    def check(
        self, pages: Iterable[str] | None = None, *, notes: bool = True, seen: Notify = lambda page: None
    ) -> Report:
        """Check these pages, or all: their references and, with `notes`, their form (headings, records, code blocks).

        `seen` is called with the name of each page when it is done.
        """
        names = self.config.page_names()
        asked = names if pages is None else list(pages)
        reader = _Reader(self, notes=notes)
        reports = tuple(reader.read(name, seen=seen) for name in asked)
        general = [*self.check_pin(), *(self.check_rest(names, reports) if pages is None else ())]
        return Report(reports, tuple(general))

    def check_pin(self) -> list[Diagnostic]:
        """Whether the lock is of the pin that the configuration names, and of the licence that the pin has."""
        found: list[Diagnostic] = []
        for repository in self.config.repositories:
            locked = self.lock.repositories.get(repository.name)
            for key in ("commit", "ref", "url") if locked else ():
                was, now = getattr(locked, key), getattr(repository, key)
                if was != now:
                    message = f"the lock was written for {key} {was} of {repository.name}, the configuration says {now}"
                    found += self._general(Code.LOCK_MISMATCH, repository.name, message)
            source, path = self.sources[repository.name], repository.license.path
            if source.snapshot.complete and path not in source.seen:
                message = f"the licence of {repository.name}, {path}, is no file at the pin"
                found += self._general(Code.MISSING_FILE, path, message, fix="set path in [repositories.license]")
            elif differs := _differs(source, path):
                found += self._general(Code.LOCK_MISMATCH, path, differs)
        return found

    def check_rest(self, names: list[str], reports: tuple[PageReport, ...]) -> Iterator[Diagnostic]:
        """What the lock holds and no page needs any more."""
        for page in sorted(self.lock.pages.keys() - set(names)):
            yield from self._general(Code.STALE_LOCK, page, f"the lock holds the page {page}, which is no more")
        used = {f"{r.source.repository}:{r.source.key}" for page in reports for r in page.references}
        # What a page's own account holds too much is told there.
        used |= {entry_place(entry) for page in names for entry in self.lock.pages.get(page, ())}
        for name, locked in self.lock.repositories.items():
            if name not in self.sources:
                yield from self._general(
                    Code.STALE_LOCK, name, f"the lock holds the repository {name}, which is no more"
                )
                continue
            left = {key for page in reports for repository, key in page.left if repository == name}
            for key in sorted(locked.left.keys() - left):
                yield from self._general(Code.STALE_LOCK, key, f"the lock holds {key} as left behind, which is no more")
            for key in sorted(locked.links):
                if f"{name}:{key}" not in used:
                    yield from self._general(Code.STALE_LOCK, key, f"the lock holds {key}, which no page refers to")

    def _general(self, code: Code, link: str, message: str, *, fix: str = f"run {LOCK}") -> list[Diagnostic]:
        level, page = self.config.level(code), self.config.lock.as_posix()
        finding = Diagnostic(code=code, level=level, page=page, line=1, link=link, message=message, fix=fix)
        return [] if level is Level.IGNORE else [finding]


def _differs(source: Source, path: str) -> str:
    """What is other in the lock than in the source at hand, of a file that no page need refer to; empty if nothing."""
    known = source.locked.files.get(path) if source.locked else None
    if known is None or path not in source.seen:
        return ""
    try:
        file = source.file(path)
    except PinMismatch as error:
        return str(error)
    if file is None or file.count == known.lines:
        return ""
    return f"the lock knows {path} with {known.lines} lines; at the pin it has {file.count}"


class _Reader:
    """Reads pages as the site does, records and all, and checks what they say."""

    def __init__(self, project: Project, *, notes: bool) -> None:
        self._project = project
        self._notes = notes
        self._name = ""
        config = project.config
        self._extension = NotesExtension.of(config, page=lambda: self._name, evidence=project.evidence)
        self._pages = PageReader(config, exists=project.exists, extensions=[self._extension])
        self._checks = project.note_checks()

    def read(self, name: str, *, seen: Notify) -> PageReport:
        self._name = name
        page = self._project.page(name)
        text = self._project.text(name)
        self._pages.read(name, page.resolve, text=text)
        also = self._checks.check(name, text) if self._notes else ()
        also += self._checks.told(name, self._extension.findings) if self._notes else ()
        seen(name)
        return page.report(text=text, also=also)
