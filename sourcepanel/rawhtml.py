"""Links that a note writes as HTML, which Markdown keeps as text apart from its tree."""

from __future__ import annotations

import html
from collections.abc import Callable
from html.parser import HTMLParser
from itertools import accumulate

Attributes = dict[str, str]
Rewrite = Callable[[Attributes, str, list[str]], Attributes | None]
"""`rewrite(attributes, text, codes)`: new attributes for an `<a>`, given its text and inline code; None keeps it."""


def rewrite_links(source: str, rewrite: Rewrite) -> str:
    """Offer each `<a href>` to `rewrite`; all else stays as written, byte for byte.

    Comments, scripts and style sheets hold no links. A tag that stands alone, as Markdown keeps inline HTML,
    has no text.
    """
    links = _Links(source)
    out, last = [], 0
    for start, tag, attributes, text, codes in links.found:
        if (new := rewrite(attributes, "".join(text), ["".join(code) for code in codes])) is not None:
            close = "/>" if tag.endswith("/>") else ">"
            inner = "".join(f' {name}="{html.escape(value)}"' for name, value in new.items())
            out += [source[last:start], f"<a{inner}{close}"]
            last = start + len(tag)
    return "".join([*out, source[last:]])


class _Links(HTMLParser):
    def __init__(self, source: str) -> None:
        super().__init__(convert_charrefs=True)
        self.found: list[tuple[int, str, Attributes, list[str], list[list[str]]]] = []
        self._starts = list(accumulate((len(line) + 1 for line in source.split("\n")), initial=0))
        self._open: list[tuple[list[str], list[list[str]]]] = []
        self._in_code = False
        self.feed(source)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag == "a" and any(name == "href" for name, _ in attrs):
            line, column = self.getpos()
            text: list[str] = []
            codes: list[list[str]] = []
            attributes = {name: value or "" for name, value in reversed(attrs)}
            start = self._starts[line - 1] + column
            self.found.append((start, self.get_starttag_text() or "", dict(reversed(attributes.items())), text, codes))
            self._open = [(text, codes)]
        elif tag == "code" and self._open:
            self._in_code = True
            self._open[-1][1].append([])

    def handle_endtag(self, tag: str) -> None:
        if tag == "a":
            self._open = []
        if tag in ("a", "code"):
            self._in_code = False

    def handle_data(self, data: str) -> None:
        for text, codes in self._open:
            text.append(data)
            if self._in_code:
                codes[-1].append(data)
