"""What a check of a note has to say, before it is given a page and a level."""

from __future__ import annotations

from dataclasses import dataclass

from sourcepanel.diagnostics import Code


@dataclass(frozen=True, kw_only=True)
class Finding:
    """One thing that is wrong in one note."""

    code: Code
    line: int
    """1-based line in the Markdown file."""
    subject: str
    """The heading, block or field it is about, as written."""
    message: str
    """What is wrong, one sentence, no final stop."""
    fix: str = ""
    """The nearest right answer; empty where none is known."""
