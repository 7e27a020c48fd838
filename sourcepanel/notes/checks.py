"""All checks of one note, as diagnostics."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from fnmatch import fnmatchcase

from sourcepanel.config import Notes
from sourcepanel.diagnostics import Code, Diagnostic, Level
from sourcepanel.notes.code_blocks import check_code_blocks
from sourcepanel.notes.finding import Finding
from sourcepanel.notes.records import check_records
from sourcepanel.notes.source_index import SourceIndex
from sourcepanel.notes.template import check_template

Indexes = Callable[[], Iterable[SourceIndex]]


def check_page(
    page: str,
    text: str,
    *,
    notes: Notes,
    indexes: Indexes,
    level: Callable[[Code], Level],
) -> tuple[Diagnostic, ...]:
    """What the checks say about a page, in order of its lines.

    `page` is relative to the docs folder. Records and code blocks are checked on every page, headings on those that
    `notes.pages` names. `indexes` is called only when a page has something to compare.
    """
    found = sorted(_findings(page, text, notes=notes, indexes=indexes), key=lambda f: f.line)
    return tuple(_diagnostic(page, f, level(f.code)) for f in found if level(f.code) is not Level.IGNORE)


def is_note(page: str, notes: Notes) -> bool:
    """Whether the template applies to this page."""
    return any(fnmatchcase(page, pattern) for pattern in notes.pages)


def _findings(page: str, text: str, *, notes: Notes, indexes: Indexes) -> Iterator[Finding]:
    if is_note(page, notes):
        yield from check_template(text, headings=notes.headings)
    yield from check_records(text)
    for index in indexes():
        yield from check_code_blocks(text, index=index)


def _diagnostic(page: str, finding: Finding, level: Level) -> Diagnostic:
    return Diagnostic(
        code=finding.code,
        level=level,
        page=page,
        line=finding.line,
        link=finding.subject,
        message=finding.message,
        fix=finding.fix,
    )
