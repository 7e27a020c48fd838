"""The headings that every note has: all of them, in order, each with something below it."""

from __future__ import annotations

import difflib
from collections.abc import Iterator, Sequence

from sourcepanel.diagnostics import Code
from sourcepanel.notes.finding import Finding
from sourcepanel.notes.outline import Heading, read_outline, sections


def check_template(text: str, *, headings: Sequence[str]) -> Iterator[Finding]:
    """Compare the second-level headings of a page with `headings`: exact spelling, same order, none empty.

    Sub-headings are free; a section that holds only sub-headings, comments or blank lines is empty.
    """
    outline = read_outline(text)
    last = text.count("\n") + 1
    found = list(sections(outline, level=2, last=last))
    first: dict[str, Heading] = {}
    for heading, content in found:
        if heading.text not in headings:
            yield _unknown(heading, [h for h in headings if h not in {f.text for f, _ in found}])
        elif heading.text in first:
            again = f'heading "{heading.text}" stands twice, first on line {first[heading.text].line}'
            yield _finding(heading, again, "keep one of them")
        else:
            first[heading.text] = heading
        if not content:
            yield _finding(heading, f'section "{heading.text}" is empty', "write it, or say why there is nothing")
    present = [h for h in first.values() if h.text in headings]
    yield from _misplaced(present, headings)
    for name in headings:
        if name not in first:
            yield _missing(name, headings=headings, first=first, last=last)


def _finding(heading: Heading, message: str, fix: str) -> Finding:
    return Finding(code=Code.TEMPLATE, line=heading.line, subject=heading.text, message=message, fix=fix)


def _unknown(heading: Heading, free: Sequence[str]) -> Finding:
    near = difflib.get_close_matches(heading.text, free, n=1, cutoff=0.5)
    fix = f"did you mean {near[0]}?" if near else "use ### below one of the template's headings"
    return _finding(heading, f'heading "{heading.text}" is not in the template', fix)


def _misplaced(present: Sequence[Heading], headings: Sequence[str]) -> Iterator[Finding]:
    """The fewest headings that must move: those outside a longest run that is in order."""
    order = [headings.index(h.text) for h in present]
    runs: list[list[int]] = []
    for i, rank in enumerate(order):
        runs.append([*_longest([runs[j] for j in range(i) if order[j] < rank]), i])
    keep = set(_longest(runs))
    for i, heading in enumerate(present):
        if i not in keep:
            after = headings[order[i] - 1] if order[i] else ""
            fix = f"put it after {after}" if after else "put it first"
            yield _finding(heading, f'heading "{heading.text}" is out of order', fix)


def _longest(runs: list[list[int]]) -> list[int]:
    return max(runs, key=len) if runs else []


def _missing(name: str, *, headings: Sequence[str], first: dict[str, Heading], last: int) -> Finding:
    """Reported on the line before which it belongs."""
    rank = headings.index(name)
    following = next((first[h] for h in headings[rank + 1 :] if h in first), None)
    after = headings[rank - 1] if rank else ""
    return Finding(
        code=Code.TEMPLATE,
        line=following.line if following else last,
        subject=name,
        message=f'heading "{name}" is missing',
        fix=f"add `## {name}` after {after}" if after else f"add `## {name}` first",
    )
