"""Where the notes speak of the source and of each other: the sentence around each link, read from a page's HTML.

Reading what the reader will see finds the same links as the page shows, in tables, footnotes and raw HTML too. Each
link gets an id, so that the panel and other pages can lead back to the very words.
"""

from __future__ import annotations

import posixpath
import re
from dataclasses import dataclass
from html import escape
from html.parser import HTMLParser
from urllib.parse import unquote, urlsplit

_HEADINGS = frozenset({"h1", "h2", "h3", "h4", "h5", "h6"})
_BLOCKS = _HEADINGS | frozenset(
    "p li ul ol dl dd dt table tr caption figcaption blockquote summary details div section article pre hr br".split()  # noqa: SIM905 - a list of so many is no easier to read
)
_SILENT = frozenset({"script", "style", "pre", "svg"})
_STOP = re.compile(r"[。！？；!?;](?:[”’」』）)\"']*)|\.(?=\s)")
_MADE = frozenset({"term", "sp-made"})
MOST = 80
"""Characters of a sentence kept on each side of the link."""


@dataclass(frozen=True, kw_only=True)
class Mention:
    """One link into the source or to another page, in its sentence."""

    key: str
    """What the link opens: `Target.key`, or the address of a page relative to the site's root, with its fragment."""
    page: str
    """Title of the page."""
    url: str
    """Address of the link itself, relative to the site's root; of its page where the build made it."""
    heading: str
    """The nearest heading above; empty before the first."""
    before: str
    text: str
    after: str
    section: str = ""
    """The id of that heading."""
    made: bool = False
    """Made by the build and not written by an author: a term of the glossary, a row of the roadmap."""

    @property
    def row(self) -> list[str]:
        """Without the key, as the panel's data has it."""
        return [self.page, self.url, self.heading, self.before, self.text, self.after]


def read_mentions(html: str, *, page: str, url: str) -> tuple[str, tuple[Mention, ...], tuple[Mention, ...]]:
    """The HTML of a page's content with an id on each link of an author; the source links; those to other pages.

    `url` is the page's address relative to the site's root; a link to a place on the page itself is none of these.
    """
    reader = _Reader(html, page=page, url=url)
    reader.feed(html)
    reader.close()
    reader.flush()
    pieces, done = [], 0
    for at, name in reader.ids:
        # Behind the tag's name: `<a`.
        pieces += [html[done : at + 2], f' id="{escape(name)}"']
        done = at + 2
    return "".join([*pieces, html[done:]]), tuple(reader.mentions), tuple(reader.pages)


@dataclass(frozen=True)
class _Link:
    """A link that has begun."""

    key: str
    name: str
    """Its id."""
    start: int
    """Where its text begins in the block's."""
    source: bool
    made: bool


class _Reader(HTMLParser):
    def __init__(self, html: str, *, page: str, url: str) -> None:
        super().__init__(convert_charrefs=True)
        self._lines = [0]
        for line in html.split("\n"):
            self._lines.append(self._lines[-1] + len(line) + 1)
        self._page = page
        self._url = url
        self._text = ""
        self._heading = self._section = self._next = ""
        self._silent = 0
        self._skipped = False
        self._links: list[tuple[_Link, int]] = []
        self._open: _Link | None = None
        self._counts = {"sp": 0, "ln": 0}
        self.ids: list[tuple[int, str]] = []
        """Where an id is to be put, and which."""
        self.mentions: list[Mention] = []
        self.pages: list[Mention] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag in _BLOCKS:
            self.flush()
        if tag in _HEADINGS:
            self._next = dict(attrs).get("id") or ""
        if tag in _SILENT:
            self._silent += 1
        elif tag in ("td", "th") and self._text.strip():
            self._text += " · "
        elif tag == "a":
            self._link(dict(attrs))

    def handle_endtag(self, tag: str) -> None:
        if tag in _HEADINGS and tag != "h1":
            self._heading, self._section = " ".join(self._text.split()), self._next
        if tag in _BLOCKS:
            self.flush()
        if tag in _SILENT:
            self._silent = max(0, self._silent - 1)
        elif tag == "a":
            if self._open:
                self._links.append((self._open, len(self._text)))
            self._open, self._skipped = None, False

    def handle_data(self, data: str) -> None:
        if not self._silent and not self._skipped:
            self._text += data

    def flush(self) -> None:
        """The block is over: each of its links gets its sentence."""
        for link, end in self._links:
            before, after = self._text[: link.start], self._text[end:]
            stops = [match.end() for match in _STOP.finditer(before)]
            stop = _STOP.search(after)
            before = _squeezed(before[stops[-1] if stops else 0 :]).lstrip()
            after = _squeezed(after[: stop.end() if stop else None]).rstrip()
            (self.mentions if link.source else self.pages).append(
                Mention(
                    key=link.key,
                    page=self._page,
                    url=f"{self._url}#{link.name}" if link.name else self._url,
                    heading=self._heading,
                    before=before if len(before) <= MOST else f"…{before[-MOST:]}",
                    text=_squeezed(self._text[link.start : end]).strip(),
                    after=after if len(after) <= MOST else f"{after[:MOST]}…",
                    section=self._section,
                    made=link.made,
                )
            )
        self._text = ""
        self._links = []

    def _link(self, attributes: dict[str, str | None]) -> None:
        classes = (attributes.get("class") or "").split()
        self._skipped = "headerlink" in classes
        source = attributes.get("data-src") if "sp-link" in classes else None
        key = source or self._there(attributes.get("href") or "")
        if not key:
            return
        made = not _MADE.isdisjoint(classes)
        name = attributes.get("id") or ""
        if not name and not made:
            kind = "sp" if source else "ln"
            self._counts[kind] += 1
            name = f"{kind}-{self._counts[kind]}"
            line, column = self.getpos()
            self.ids.append((self._lines[line - 1] + column, name))
        self._open = _Link(key, name, len(self._text), source=source is not None, made=made)

    def _there(self, href: str) -> str:
        """The address of another page, relative to the site's root; empty where the link leads elsewhere."""
        parts = urlsplit(href)
        if parts.scheme or parts.netloc or not parts.path or parts.path.startswith("/"):
            return ""
        here = unquote(self._url)
        path = posixpath.normpath(posixpath.join(posixpath.dirname(here), unquote(parts.path)))
        path = "" if path == "." else path + "/" * parts.path.endswith(("/", "/.", "/.."))
        is_page = posixpath.splitext(path)[1] in ("", ".html", ".md")
        if path.startswith("../") or path == here or not is_page:
            return ""
        return path + (f"#{unquote(parts.fragment)}" if parts.fragment else "")


def _squeezed(text: str) -> str:
    return re.sub(r"\s+", " ", text)
