"""On which line of its file each reference stands.

Nothing is guessed from the rendered page. Before Markdown parses the text, each place that may become a
reference gets a mark that holds its line, put where the parser carries it along unread: inside an address,
inside inline code, inside the label of a reference-style link or the brackets of a note's name. The reference
then brings its own line, however often the same link is repeated, and wherever a footnote is moved. Every mark is
taken out again. Fenced blocks get none, so that what formats them sees the text as written.

The line is that of the address (for `path::symbol`, of the code). For a reference-style link it is the line of
the use, not of the definition.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections import Counter
from collections.abc import Iterator, Sequence
from difflib import SequenceMatcher
from itertools import accumulate
from urllib.parse import urlsplit

from sourcepanel.reference import RAW_HOST

# Unicode noncharacters: for use inside a program, never part of a text, and no syntax to any extension.
_START, _END, _ZERO = "\ufdd0", "\ufdd1", 0xFDD2
_MARK = re.compile(f"{_START}([\ufdd2-\ufddb]+){_END}")
_FROM_DIGITS = {ord("0") + n: _ZERO + n for n in range(10)}
_TO_DIGITS = {_ZERO + n: str(n) for n in range(10)}

# A mark between a backslash and what it escapes would undo the escape.
_CODE = re.compile(r"(?<!:)::(?!:)[^`\s]{1,200}(?<!\\)(?=`|[ ]``)")
_NOTE = re.compile(r"\[\[[^\[\]\n]{1,300}(?=\]\])")
_LABEL = re.compile(r"\[([^\[\]]+)(?<!\\)\]")
_FENCE = re.compile(r"[ \t>]*(`{3,}(?=[^`]*$)|~{3,})")
FRONT_MATTER = re.compile(r"---[ \t]*\n(.*?\n)(?:---|\.\.\.)[ \t]*\n", re.DOTALL)


def strip_marks(text: str) -> str:
    """The text as its author wrote it."""
    return _MARK.sub("", text) if _START in text else text


class PageLines:
    """The lines of one page while it is converted."""

    def __init__(
        self, body: Sequence[str], *, file: str | None = None, urls: Sequence[str] = (), tab_length: int = 4
    ) -> None:
        """`body` is what Markdown is given, `file` the whole file where that is more, `urls` where links may point."""
        self._body = [strip_marks(line.removesuffix("\r")) for line in body]
        self._numbers = _numbers(self._body, file)
        self._fenced = _fenced(self._body)
        self._tab_length = tab_length
        self._taken: Counter[tuple[str, int]] = Counter()
        hosts = {urlsplit(url.lower()).netloc.removeprefix("www.") for url in urls} | {RAW_HOST}
        address = rf"//(?:[^\s/@]*@)?(?:www\.)?(?:{'|'.join(map(re.escape, sorted(hosts)))})(?::[0-9]+)?/"
        self._address = re.compile(address, re.I)
        self._definition = re.compile(rf"(?m)^[ \t>]*\[([^\[\]^][^\[\]]*)\]:\s*<?(?:https?:)?{address}", re.I)

    def marked(self) -> list[str]:
        """The body with a mark at each place that may become a reference."""
        # Markdown would fill up tabs after the marks, and so count their characters.
        lines = [
            line if fenced else line.expandtabs(self._tab_length)
            for line, fenced in zip(self._body, self._fenced, strict=True)
        ]
        text = "\n".join(lines)
        starts = list(accumulate((len(line) + 1 for line in lines), initial=0))
        front = match.end() if (match := FRONT_MATTER.match(text)) else 0
        parts, last = [], 0
        for place, origin in sorted(set(self._places(text))):
            line = bisect_right(starts, origin) - 1
            if origin >= front and not self._fenced[line] and "--8<--" not in self._body[line]:
                parts += [text[last:place], _START, str(line).translate(_FROM_DIGITS), _END]
                last = place
        return "".join([*parts, text[last:]]).split("\n")

    def _places(self, text: str) -> Iterator[tuple[int, int]]:
        """Where marks go, each with the place whose line it carries."""
        yield from ((match.end(), match.end()) for match in self._address.finditer(text))
        yield from ((match.end(), match.end()) for match in _CODE.finditer(text))
        yield from ((match.end(), match.end()) for match in _NOTE.finditer(text))
        definitions = list(self._definition.finditer(text))
        labels = {_label(match[1]) for match in definitions}
        defined = {match.start(1) for match in definitions}
        for match in _LABEL.finditer(text) if labels else ():
            if _label(match[1]) in labels and match.start(1) not in defined:
                yield match.end(1), match.start(1)

    def take(self, text: str, *, after: int = 1) -> tuple[str, int]:
        """What was written, and its line: that of its last mark (a label's stands behind the address's own).

        A text that no mark reached was made from a fenced block or a snippet: the next occurrence is taken, in a
        fenced block from line `after` of the body on, else anywhere; line 1 if the page does not hold it.
        """
        clean = strip_marks(text)
        if marks := _MARK.findall(text):
            return clean, self._numbers[int(marks[-1].translate(_TO_DIGITS))]
        exact = re.compile(rf"(?<![\w/.:-]){re.escape(clean)}(?![\w-])")
        places = [n for n, line in enumerate(self._body) if clean in line for _ in exact.finditer(line)]
        found = [n for n in places if self._fenced[n] and n + 1 >= after] or places
        count = self._taken[clean, after]
        self._taken[clean, after] += 1
        return clean, self._numbers[found[min(count, len(found) - 1)]] if found else 1


class MarkedReferences(dict[str, tuple[str, str]]):
    """The definitions of reference-style links, found also by a marked label, whose mark the address then carries."""

    def __contains__(self, key: object) -> bool:
        return super().__contains__(strip_marks(key) if isinstance(key, str) else key)

    def __getitem__(self, key: str) -> tuple[str, str]:
        href, title = super().__getitem__(strip_marks(key))
        return href + "".join(match[0] for match in _MARK.finditer(key)), title


def _label(text: str) -> str:
    return " ".join(text.split()).lower()


def _fenced(lines: Sequence[str]) -> list[bool]:
    """For each line whether it belongs to a closed fenced block, fences included."""
    inside = [False] * len(lines)
    fence, start = "", 0
    for number, line in enumerate(lines):
        if not fence:
            if match := _FENCE.match(line):
                fence, start = match[1], number
        elif line.strip(" \t>") == fence:
            inside[start : number + 1] = [True] * (number + 1 - start)
            fence = ""
    return inside


def _numbers(body: Sequence[str], file: str | None) -> list[int]:
    """The line in the file of each line of the body; where another extension rewrote some, the nearest one."""
    if file is None:
        return list(range(1, len(body) + 1))
    lines = file.replace("\r\n", "\n").split("\n")
    if lines[len(lines) - len(body) :] == list(body):
        return list(range(len(lines) - len(body) + 1, len(lines) + 1))
    numbers = [1] * len(body)
    for _, a, b, c, d in SequenceMatcher(None, lines, body, autojunk=False).get_opcodes():
        for offset, line in enumerate(range(c, d)):
            numbers[line] = min(a + offset, max(b - 1, a), len(lines) - 1) + 1
    return numbers
