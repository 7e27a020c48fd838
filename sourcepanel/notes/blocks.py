"""Paragraphs, list items and table rows of a page that name code, and which of them show no source for it.

Read from the text, line by line, so that each block has its lines: what is said of code without a reference in the
same block can be wrong without any check noticing. Fenced blocks, records among them, and headings are no blocks.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass

from sourcepanel.notes.outline import read_outline
from sourcepanel.reference import identifiers

_CODE = re.compile(r"(?<!`)(`+)(?!`)(.+?)(?<!`)\1(?!`)", re.DOTALL)
_ITEM = re.compile(r"[ \t>]*(?:[-*+]|\d+[.)])[ \t]")
_ROW = re.compile(r"[ \t>]*\|")
_RULE = re.compile(r"[ \t>|:-]*")
_OUTSIDE = frozenset({"torch", "np", "numpy", "os", "sys", "math"})
"""Packages whose names are not the snapshot's, though it may define the same."""

Defined = Callable[[str], bool]
"""Whether the snapshot defines a name that is spelled so."""


@dataclass(frozen=True, kw_only=True)
class Block:
    """One paragraph, list item or table row that names code."""

    start: int
    """1-based."""
    end: int
    names: tuple[str, ...]
    """What it names, in order, each once."""

    def holds(self, lines: Collection[int]) -> bool:
        """Whether one of these lines is one of its own."""
        return any(self.start <= line <= self.end for line in lines)


def naming_blocks(text: str, *, defined: Defined) -> tuple[Block, ...]:
    """The blocks whose inline code names something that the snapshot defines."""
    lines = text.split("\n")
    blocks = (_block(first, last, lines, defined) for first, last in _spans(text, lines))
    return tuple(block for block in blocks if block.names)


def _spans(text: str, lines: list[str]) -> Iterator[tuple[int, int]]:
    """First and last line of each block."""
    outline = read_outline(text)
    fenced = {line for fence in outline.fences for line in range(fence.line, fence.end + 1)}
    held: list[int] = []
    for number in outline.content:
        line = lines[number - 1]
        begins = not held or number != held[-1] + 1 or _ITEM.match(line) or _ROW.match(line)
        if held and (begins or number in fenced):
            yield held[0], held[-1]
            held = []
        if number not in fenced and not _RULE.fullmatch(line):
            held.append(number)
    if held:
        yield held[0], held[-1]


def _block(first: int, last: int, lines: list[str], defined: Defined) -> Block:
    codes = (hit[2] for hit in _CODE.finditer("\n".join(lines[first - 1 : last])))
    names = (name for code in codes if "::" not in code for name in identifiers(code, code=True))
    known = dict.fromkeys(name for name in names if name.partition(".")[0] not in _OUTSIDE and defined(name))
    return Block(start=first, end=last, names=tuple(known))


def bare(blocks: Collection[Block], *, references: Collection[int]) -> tuple[Block, ...]:
    """Those in which no reference stands; `references` are their lines."""
    return tuple(block for block in blocks if not block.holds(references))
