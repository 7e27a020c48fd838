"""All checks of a note, as diagnostics."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from fnmatch import fnmatchcase
from functools import cached_property

from sourcepanel.config import Config
from sourcepanel.diagnostics import Diagnostic, Level
from sourcepanel.notes.code_blocks import check_code_blocks
from sourcepanel.notes.evidence import Evidence
from sourcepanel.notes.finding import Finding
from sourcepanel.notes.outputs import check_outputs
from sourcepanel.notes.records import check_records
from sourcepanel.notes.roadmap import load_roadmap
from sourcepanel.notes.source_index import SourceIndex, open_index
from sourcepanel.notes.template import check_template
from sourcepanel.snapshot.base import Snapshot


class NoteChecks:
    """The checks of one site; the index of the source is made when the first page is checked."""

    def __init__(
        self,
        config: Config,
        *,
        snapshots: Callable[[], Iterable[Snapshot]],
        evidence: Evidence,
        notify: Callable[[str], None],
    ) -> None:
        self._config = config
        self._snapshots = snapshots
        self._evidence = evidence
        self._notify = notify

    @cached_property
    def _indexes(self) -> tuple[SourceIndex, ...]:
        cache = self._config.cache_dir
        return tuple(open_index(each, cache=cache, notify=self._notify) for each in self._snapshots())

    def check(self, page: str, text: str) -> tuple[Diagnostic, ...]:
        """What the checks say about a page, in order of its lines; `page` is relative to the docs folder.

        Records and code blocks are checked on every page, headings on those that `[notes]` names.
        """
        return self.told(page, sorted(self._findings(page, text), key=lambda finding: finding.line))

    def told(self, page: str, findings: Iterable[Finding]) -> tuple[Diagnostic, ...]:
        """Findings about a page with their levels; those that are not to be told are left out."""
        return tuple(d for finding in findings if (d := self._diagnostic(page, finding)).level is not Level.IGNORE)

    def is_note(self, page: str) -> bool:
        """Whether the template applies to this page."""
        return any(fnmatchcase(page, pattern) for pattern in self._config.notes.pages)

    def _findings(self, page: str, text: str) -> Iterator[Finding]:
        if self.is_note(page):
            yield from check_template(text, headings=self._config.notes.headings)
            yield from self._outputs(page, text)
        yield from check_records(text, evidence=self._evidence)
        for index in self._indexes:
            yield from check_code_blocks(text, index=index)

    def _outputs(self, page: str, text: str) -> Iterator[Finding]:
        config, folder = self._config, self._evidence.traces.folder
        if config.notes.roadmap is not None:
            roadmap = load_roadmap(config.path(config.notes.roadmap))
            yield from check_outputs(page, text, roadmap=roadmap, traces=folder, root=config.root)

    def _diagnostic(self, page: str, finding: Finding) -> Diagnostic:
        return Diagnostic(
            code=finding.code,
            level=self._config.level(finding.code),
            page=page,
            line=finding.line,
            link=finding.subject,
            message=finding.message,
            fix=finding.fix,
        )
