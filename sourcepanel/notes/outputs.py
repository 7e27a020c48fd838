"""Saved outputs that a note takes in (`--8<-- "ch01.txt"`): what it shows is what was recorded, and stays so."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

from sourcepanel.diagnostics import Code
from sourcepanel.notes.finding import Finding
from sourcepanel.notes.roadmap import Roadmap

_INCLUDE = re.compile(r"(?m)^[ \t>]*-+8<-+[ \t]+[\"']([^\"':\n]+)")


def included(text: str) -> tuple[str, ...]:
    """The files that a page takes in, as written, without what part of them."""
    return tuple(_INCLUDE.findall(text))


def check_outputs(page: str, text: str, *, roadmap: Roadmap, traces: Path | None, root: Path) -> Iterator[Finding]:
    """A note whose chapter has a program, and that shows nothing of what the program printed."""
    chapter = next((chapter for chapter in roadmap.chapters if chapter.note == page), None)
    if chapter is None or traces is None or not (root / chapter.script).is_file():
        return
    saved = {file.name for file in traces.glob("*.txt")}
    if not saved.intersection(included(text)):
        yield Finding(
            code=Code.NO_OUTPUT,
            line=1,
            subject=chapter.script,
            message="the note shows no saved output, though its chapter has a program",
            fix='record its run, and take in the text: --8<-- "NAME.txt"',
        )
