"""Puts links into rendered lines: each identifier becomes an element, the text stays what it is."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from html import escape

from sourcepanel.xref.model import Occurrence

_PARTS = re.compile(r"<[^>]*>|&[^;]*;|[^<&]+")


def weave(sections: Sequence[str], links: Sequence[tuple[Occurrence, str]], *, size: int) -> tuple[str, ...]:
    """Sections of `size` lines as `render.py` makes them, with `<a …>` around each identifier.

    With each occurrence come the attributes of its element, as HTML, e.g. `class=sp-id data-m=7`. An identifier
    that does not lie within one run of text (none does, unless a lexer splits a name) stays as it is.
    """
    by_line: dict[int, list[tuple[Occurrence, str]]] = {}
    for link in links:
        by_line.setdefault(link[0].line, []).append(link)
    woven = []
    for i, section in enumerate(sections):
        lines = section.split("\n")
        for number in range(i * size + 1, i * size + len(lines) + 1):
            if number in by_line:
                at = number - i * size - 1
                lines[at] = weave_line(lines[at], by_line[number])
        woven.append("\n".join(lines))
    return tuple(woven)


def weave_line(html: str, links: Sequence[tuple[Occurrence, str]]) -> str:
    """One line; the links in order of their columns."""
    waiting = list(links)[::-1]
    made: list[str] = []
    column = 0
    for part in _PARTS.findall(html):
        if part[0] == "<":
            made.append(part)
            continue
        if part[0] == "&":
            made.append(part)
            column += 1
            continue
        made += _run(part, column, waiting)
        column += len(part)
    return "".join(made)


def _run(text: str, start: int, waiting: list[tuple[Occurrence, str]]) -> Iterator[str]:
    """A run of plain text that starts at this column, cut at the identifiers in it."""
    done = 0
    while waiting:
        occurrence, attributes = waiting[-1]
        a, b = occurrence.start - start, occurrence.end - start
        if a >= len(text):
            break
        waiting.pop()
        if a < done or b > len(text):
            continue
        yield text[done:a]
        yield f"<a {attributes}>{text[a:b]}</a>"
        done = b
    yield text[done:]


def attribute(name: str, value: str) -> str:
    """One attribute, escaped."""
    return f'{name}="{escape(value)}"'
