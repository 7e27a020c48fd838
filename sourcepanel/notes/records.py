"""Every kind of record that a note may hold, and what is wrong with those of a page."""

from __future__ import annotations

from collections.abc import Iterator

from sourcepanel.notes.communications import COMMUNICATIONS
from sourcepanel.notes.evidence import Evidence
from sourcepanel.notes.fenced_yaml import found
from sourcepanel.notes.finding import Finding
from sourcepanel.notes.function_records import FUNCTIONS
from sourcepanel.notes.glossary import check_glossary
from sourcepanel.notes.outline import read_outline
from sourcepanel.notes.proof import check_communications

KINDS = (FUNCTIONS, COMMUNICATIONS)


def check_records(text: str, *, evidence: Evidence) -> Iterator[Finding]:
    """Records that are not well written, and those that say what the evidence does not show."""
    for fence in read_outline(text).fences:
        for kind in KINDS:
            if kind.is_in(fence):
                yield from kind.read(fence.body, line=fence.line).findings
            elif kind.fence.split()[1] in fence.info:
                yield found(fence.line, fence.info, f"unknown kind of block `{fence.info}`", f"write ```{kind.fence}")
    yield from check_communications(text, evidence=evidence)
    yield from check_glossary(text)
