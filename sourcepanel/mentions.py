"""Where the notes speak of the source: the sentence around each link, read from the HTML of a page.

Reading what the reader will see finds the same links as the page shows, in tables, footnotes and raw HTML too. Each
link gets an id, so that the panel can lead back to the very words.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from html import escape
from html.parser import HTMLParser

_HEADINGS = frozenset({"h1", "h2", "h3", "h4", "h5", "h6"})
_BLOCKS = _HEADINGS | frozenset(
    "p li ul ol dl dd dt table tr caption figcaption blockquote summary details div section article pre hr br".split()  # noqa: SIM905 - a list of so many is no easier to read
)
_SILENT = frozenset({"script", "style", "pre", "svg"})
_STOP = re.compile(r"[。！？；!?;](?:[”’」』）)\"']*)|\.(?=\s)")
MOST = 80
"""Characters of a sentence kept on each side of the link."""


@dataclass(frozen=True, kw_only=True)
class Mention:
    """One link into the source, in its sentence."""

    key: str
    """`Target.key`: what the link opens."""
    page: str
    """Title of the page."""
    url: str
    """Address of the link itself, relative to the site's root."""
    heading: str
    """The nearest heading above; empty before the first."""
    before: str
    text: str
    after: str

    @property
    def row(self) -> list[str]:
        """Without the key, as the panel's data has it."""
        return [self.page, self.url, self.heading, self.before, self.text, self.after]


def read_mentions(html: str, *, page: str, url: str) -> tuple[str, tuple[Mention, ...]]:
    """The HTML of a page's content with an id on each source link, and the links in their order."""
    reader = _Reader(html, page=page, url=url)
    reader.feed(html)
    reader.close()
    reader.flush()
    pieces, done = [], 0
    for at, name in reader.ids:
        # Behind the tag's name: `<a`.
        pieces += [html[done : at + 2], f' id="{escape(name)}"']
        done = at + 2
    return "".join([*pieces, html[done:]]), tuple(reader.mentions)


class _Reader(HTMLParser):
    def __init__(self, html: str, *, page: str, url: str) -> None:
        super().__init__(convert_charrefs=True)
        self._lines = [0]
        for line in html.split("\n"):
            self._lines.append(self._lines[-1] + len(line) + 1)
        self._page = page
        self._url = url
        self._text = ""
        self._heading = ""
        self._silent = 0
        self._skipped = False
        self._links: list[tuple[str, str, int, int]] = []
        self._open: tuple[str, str, int] | None = None
        self.ids: list[tuple[int, str]] = []
        """Where an id is to be put, and which."""
        self.mentions: list[Mention] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag in _BLOCKS:
            self.flush()
        if tag in _SILENT:
            self._silent += 1
        elif tag in ("td", "th") and self._text.strip():
            self._text += " · "
        elif tag == "a":
            self._link(dict(attrs))

    def handle_endtag(self, tag: str) -> None:
        if tag in _HEADINGS and tag != "h1":
            self._heading = " ".join(self._text.split())
        if tag in _BLOCKS:
            self.flush()
        if tag in _SILENT:
            self._silent = max(0, self._silent - 1)
        elif tag == "a":
            if self._open:
                self._links.append((*self._open, len(self._text)))
            self._open, self._skipped = None, False

    def handle_data(self, data: str) -> None:
        if not self._silent and not self._skipped:
            self._text += data

    def flush(self) -> None:
        """The block is over: each of its links gets its sentence."""
        for key, name, start, end in self._links:
            before, after = self._text[:start], self._text[end:]
            stops = [match.end() for match in _STOP.finditer(before)]
            stop = _STOP.search(after)
            before = _squeezed(before[stops[-1] if stops else 0 :]).lstrip()
            after = _squeezed(after[: stop.end() if stop else None]).rstrip()
            self.mentions.append(
                Mention(
                    key=key,
                    page=self._page,
                    url=f"{self._url}#{name}",
                    heading=self._heading,
                    before=before if len(before) <= MOST else f"…{before[-MOST:]}",
                    text=_squeezed(self._text[start:end]).strip(),
                    after=after if len(after) <= MOST else f"{after[:MOST]}…",
                )
            )
        self._text = ""
        self._links = []

    def _link(self, attributes: dict[str, str | None]) -> None:
        classes = (attributes.get("class") or "").split()
        self._skipped = "headerlink" in classes
        key = attributes.get("data-src")
        if "sp-link" not in classes or not key:
            return
        name = attributes.get("id")
        if not name:
            name = f"sp-{len(self.ids) + 1}"
            line, column = self.getpos()
            self.ids.append((self._lines[line - 1] + column, name))
        self._open = key, name, len(self._text)


def _squeezed(text: str) -> str:
    return re.sub(r"\s+", " ", text)
