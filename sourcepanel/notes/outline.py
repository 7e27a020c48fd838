"""The skeleton of a Markdown page with the line of each part: headings and fenced blocks.

A line scanner rather than the Markdown parser, because findings must name lines and Python-Markdown keeps none.
It follows Python-Markdown with superfences: fences may be indented, front matter and comments hold nothing.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

_FENCE = re.compile(r"^(?P<indent>[ \t]*(?:>[ \t]?)*)(?P<mark>`{3,}|~{3,})[ \t]*(?P<info>[^`\n]*?)[ \t]*$")
_HEADING = re.compile(r"^(?P<level>#{1,6})(?!#)[ \t]*(?P<text>.*?)[ \t]*#*[ \t]*$")
_ATTRIBUTES = re.compile(r"[ \t]+\{:?[^{}\n]*\}[ \t]*$")
_ID = re.compile(r"[ \t{:]#([^\s{}#.=]+)")
_UNDERLINE = re.compile(r"^(=+|-+)[ \t]*$")


@dataclass(frozen=True, kw_only=True)
class Heading:
    """One heading, without its marks and its attribute list."""

    line: int
    """1-based."""
    level: int
    text: str
    anchor: str = ""
    """The id that its attribute list gives it; empty where Markdown makes one."""


@dataclass(frozen=True, kw_only=True)
class Fence:
    """One fenced block."""

    line: int
    """1-based line of the opening fence; `body[0]` stands on the next one."""
    end: int
    """Line of the closing fence; the last line of the page when it is never closed."""
    indent: str
    info: str
    """What follows the fence: language and options."""
    body: tuple[str, ...]
    """Lines between the fences, without the block's indentation."""
    closed: bool = True


@dataclass(frozen=True, kw_only=True)
class Outline:
    """Headings and fences in the order of their lines."""

    headings: tuple[Heading, ...]
    fences: tuple[Fence, ...]
    content: tuple[int, ...]
    """Lines that hold text or a fence: neither blank, nor heading, nor comment, nor front matter."""


def read_outline(text: str) -> Outline:
    """Scan a page; never fails, whatever the text."""
    lines = [line.removesuffix("\r") for line in text.split("\n")]
    headings: list[Heading] = []
    fences: list[Fence] = []
    content: list[int] = []
    number = _front_matter(lines)
    while number < len(lines):
        line = lines[number]
        if opening := _FENCE.match(line):
            fence = _read_fence(lines, number, opening)
            fences.append(fence)
            content.extend(range(fence.line, fence.end + 1))
            number = fence.end
            continue
        if line.lstrip().startswith("<!--"):
            number = _comment_end(lines, number)
            continue
        if heading := _read_heading(lines, number):
            headings.append(heading)
            number += 1 if line.startswith("#") else 2
            continue
        if line.strip():
            content.append(number + 1)
        number += 1
    return Outline(headings=tuple(headings), fences=tuple(fences), content=tuple(content))


def _front_matter(lines: list[str]) -> int:
    """Index of the first line after YAML front matter, 0 where there is none."""
    if lines[0].strip() != "---":
        return 0
    ends = (i for i, line in enumerate(lines[1:], 1) if line.strip() in ("---", "..."))
    return next(ends, -1) + 1


def _comment_end(lines: list[str], start: int) -> int:
    """Index of the line after a comment that opens on `start`; an unclosed one is an ordinary line."""
    ends = (i for i in range(start, len(lines)) if "-->" in lines[i])
    return next(ends, start) + 1


def _read_heading(lines: list[str], number: int) -> Heading | None:
    line = lines[number]
    if hit := _HEADING.match(line):
        text, level = hit["text"], len(hit["level"])
    elif _is_underlined(lines, number):
        text, level = line.strip(), 1 if lines[number + 1].startswith("=") else 2
    else:
        return None
    given = _ID.search(attributes[0]) if (attributes := _ATTRIBUTES.search(text)) else None
    plain = _ATTRIBUTES.sub("", text).strip()
    return Heading(line=number + 1, level=level, text=plain, anchor=given[1] if given else "")


def _is_underlined(lines: list[str], number: int) -> bool:
    """A heading written as a line of text over a line of `=` or `-`, as its own paragraph."""
    if number + 1 >= len(lines) or not lines[number].strip() or not _UNDERLINE.match(lines[number + 1]):
        return False
    return not lines[number][0].isspace() and (number == 0 or not lines[number - 1].strip())


def _read_fence(lines: list[str], number: int, opening: re.Match[str]) -> Fence:
    mark, indent = opening["mark"], opening["indent"]
    body: list[str] = []
    for index in range(number + 1, len(lines)):
        line = lines[index]
        closing = line.removeprefix(indent).strip()
        if len(closing) >= len(mark) and not closing.strip(mark[0]):
            return Fence(line=number + 1, end=index + 1, indent=indent, info=opening["info"], body=tuple(body))
        body.append(line.removeprefix(indent) if line.startswith(indent) else line.lstrip())
    return Fence(line=number + 1, end=len(lines), indent=indent, info=opening["info"], body=tuple(body), closed=False)


def sections(outline: Outline, *, level: int, last: int) -> Iterator[tuple[Heading, tuple[int, ...]]]:
    """Each heading of `level` with the content lines up to the next heading of that level or above.

    `last` is the number of lines of the page.
    """
    ends = [h.line for h in outline.headings if h.level <= level]
    for heading in outline.headings:
        if heading.level == level:
            end = next((line for line in ends if line > heading.line), last + 1)
            yield heading, tuple(n for n in outline.content if heading.line < n < end)
