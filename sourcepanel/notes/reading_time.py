"""How long a page takes to read, for Chinese text with English words and code.

Rates, each from a published measurement:

* Chinese, 260 characters a minute: 259.5 ± 38.2 in Wang, Lin & Guo, "Visual requirement for Chinese reading with
  normal vision", Brain and Behavior 9 (2019), doi:10.1002/brb3.1216; 255 ± 29 aloud in Trauzettel-Klosinski & Dietz,
  "Standardized assessment of reading performance: the new International Reading Speed Texts IReST",
  Investigative Ophthalmology & Visual Science 53 (2012) 5452-5461, doi:10.1167/iovs.11-8284.
* English, 238 words a minute: silent reading of non-fiction, 190 studies, Brysbaert, "How many words do we read per
  minute?", Journal of Memory and Language 109 (2019) 104047, doi:10.1016/j.jml.2019.104047.
* Code, 500 lines an hour: Humphrey (1989) on preparing a review of application code, as cited in McConnell,
  "Code Complete"; Cohen, "Best Kept Secrets of Peer Code Review" (2006), finds reading faster than that ineffective.
"""

from __future__ import annotations

import math
import re
from dataclasses import dataclass
from html.parser import HTMLParser

CHARACTERS_PER_MINUTE = 260
WORDS_PER_MINUTE = 238
CODE_LINES_PER_MINUTE = 500 / 60

_HAN = re.compile("[\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U000323af]")
_WORD = re.compile(r"[A-Za-z0-9_]+(?:['’][A-Za-z]+)*")
_SKIP = ("script", "style", "svg", "template")


@dataclass(frozen=True, kw_only=True)
class ReadingTime:
    """What a page holds, and the minutes it takes."""

    characters: int
    """Chinese characters; punctuation is not counted."""
    words: int
    """English words, numbers and identifiers outside code blocks."""
    code_lines: int
    """Lines of code blocks that are not blank."""

    @property
    def minutes(self) -> int:
        """Rounded up, at least one."""
        exact = (
            self.characters / CHARACTERS_PER_MINUTE
            + self.words / WORDS_PER_MINUTE
            + self.code_lines / CODE_LINES_PER_MINUTE
        )
        return max(1, math.ceil(exact))


def reading_time(html: str) -> ReadingTime:
    """Count the text that a reader of this HTML sees."""
    parser = _Text()
    parser.feed(html)
    parser.close()
    prose = "".join(parser.prose)
    code = "".join(parser.code)
    return ReadingTime(
        characters=len(_HAN.findall(prose)),
        words=len(_WORD.findall(prose)),
        code_lines=sum(1 for line in code.split("\n") if line.strip()),
    )


class _Text(HTMLParser):
    """Splits visible text into prose and the contents of `<pre>`."""

    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.prose: list[str] = []
        self.code: list[str] = []
        self._skip = 0
        self._pre = 0

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self._skip += tag in _SKIP
        self._pre += tag == "pre"
        self.prose.append(" ")

    def handle_endtag(self, tag: str) -> None:
        self._skip = max(0, self._skip - (tag in _SKIP))
        self._pre = max(0, self._pre - (tag == "pre"))
        if tag == "pre":
            self.code.append("\n")
        # A block ends a word; an inline element does not, but none of ours splits one.
        self.prose.append(" ")

    def handle_data(self, data: str) -> None:
        if not self._skip:
            (self.code if self._pre else self.prose).append(data)
