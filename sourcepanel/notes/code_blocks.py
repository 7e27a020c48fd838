"""Code blocks of a note show call chains, data flow or tensor layout; the source itself is in the panel.

A fenced block is refused when three of its lines follow each other in one pinned file, or when most of its lines
(at least two) stand in one file. Text outside fences (an indented block, a `<pre>`) is held to the first rule.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence

from sourcepanel.diagnostics import Code
from sourcepanel.notes.finding import Finding
from sourcepanel.notes.outline import read_outline
from sourcepanel.notes.source_index import RUN, SourceIndex, significant

_FIX = "link to the lines instead; a block shows a call chain, data flow or tensor layout"


def check_code_blocks(text: str, *, index: SourceIndex) -> Iterator[Finding]:
    """At most one finding for each fenced block that repeats the pinned source, and one for the rest of the page."""
    outline = read_outline(text)
    fenced: set[int] = set()
    for fence in outline.fences:
        fenced.update(range(fence.line, fence.end + 1))
        block = [(fence.line + 1 + at, line) for at, line in significant(fence.body)]
        yield from _repeated_run(block, index) or _repeated_lines(block, index)
    lines = text.split("\n")
    outside = [number for number in outline.content if number not in fenced]
    rest = [(outside[at], line) for at, line in significant(lines[number - 1] for number in outside)]
    yield from _repeated_run(rest, index)


def _repeated_run(block: Sequence[tuple[int, str]], index: SourceIndex) -> list[Finding]:
    for at in range(len(block) - RUN + 1):
        run = block[at : at + RUN]
        if path := index.run([text for _, text in run]):
            return [_finding(run[0], f"the code block repeats lines of {path}")]
    return []


def _repeated_lines(block: Sequence[tuple[int, str]], index: SourceIndex) -> list[Finding]:
    holders: Counter[str] = Counter(path for _, text in block for path in index.files(text))
    if not holders:
        return []
    path, count = min(holders.items(), key=lambda item: (-item[1], item[0]))
    if count < 2 or count * 2 <= len(block):
        return []
    first = next(entry for entry in block if path in index.files(entry[1]))
    return [_finding(first, f"{count} of the {len(block)} lines of the code block stand in {path}")]


def _finding(entry: tuple[int, str], message: str) -> Finding:
    line, text = entry
    return Finding(code=Code.PASTED_SOURCE, line=line, subject=text[:80], message=message, fix=_FIX)
