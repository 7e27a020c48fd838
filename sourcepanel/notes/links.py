"""Links by the name of a note: `[[06-gradient-sync-and-optimizer#heading|text]]`.

Python-Markdown's own `wikilinks` makes an address of any word in brackets: it knows neither headings nor other text,
and cannot tell a slip from a page. Those of MkDocs rewrite the text of a page, code blocks included, in a build only.
Here a name is looked up among the pages, by what Markdown itself takes for text, in a check as in a build.
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from functools import cached_property
from typing import TypeVar
from xml.etree.ElementTree import Element

from markdown import Markdown
from markdown.extensions.toc import slugify, unique
from markdown.inlinepatterns import InlineProcessor
from markdown.util import ETX, STX, AtomicString, Registry

from sourcepanel.diagnostics import Code
from sourcepanel.locate import PageLines, strip_marks
from sourcepanel.notes.finding import Finding
from sourcepanel.notes.outline import read_outline
from sourcepanel.strings import strings

PATTERN = r"\[\[([^\[\]\n]*)\]\](?![(\[])"
_ESCAPED = re.compile(f"{STX}([0-9]+){ETX}")
_PLAIN = re.compile(r"[`*_\\\s]+")

T = TypeVar("T")
Slug = Callable[[str, str], str]


@dataclass(frozen=True)
class Place:
    """Where a link by name leads."""

    page: str
    """Path of the page, relative to the docs folder."""
    anchor: str
    title: str
    """What the link shows where its author says nothing else."""


@dataclass(frozen=True)
class Wrong:
    """Why a link by name leads nowhere, and what may have been meant."""

    message: str
    fix: str


class PageNames:
    """The pages of a site by name; a page is read when a link first asks for its title or headings."""

    def __init__(
        self,
        names: Callable[[], Sequence[str]],
        read: Callable[[str], str],
        *,
        terms: Callable[[str], Iterable[tuple[str, str]]] = lambda page: (),
    ) -> None:
        """`terms` gives name and anchor of what a page holds besides its headings: those of a glossary."""
        self._names = names
        self._read = read
        self._terms = terms
        self._headings: dict[str, tuple[tuple[int, str, str], ...]] = {}

    @cached_property
    def _stems(self) -> dict[str, list[str]]:
        found: dict[str, list[str]] = {}
        for name in self._names():
            path = name.removesuffix(".md")
            for spelling in dict.fromkeys((path, posixpath.basename(path))):
                found.setdefault(spelling, []).append(name)
        return found

    @cached_property
    def _titles(self) -> dict[str, list[str]]:
        found: dict[str, list[str]] = {}
        for name in self._names():
            found.setdefault(_plain(self.title(name)), []).append(name)
        return found

    def title(self, page: str) -> str:
        """The page's first heading; its file's name where it has none."""
        first = next((text for level, text, _ in self._of(page) if level == 1), "")
        return first or posixpath.basename(page).removesuffix(".md")

    def find(self, name: str, heading: str | None, *, page: str, slug: Slug = slugify) -> Place | Wrong:
        """The place that `[[name#heading]]` on a page means; an empty name means the page itself."""
        found = self._page(name) if name else page
        if isinstance(found, Wrong):
            return found
        title = self.title(found)
        if not heading:
            return Place(found, "", title) if name else Wrong("[[]] names no page", "name one, or write it as code")
        anchors = list(self._anchors(found, slug))
        for text, anchor in anchors:
            if heading == anchor or _plain(heading) == _plain(text):
                return Place(found, anchor, f"{title} › {text}" if name else text)
        known = {_plain(text): text for text, _ in anchors} | {anchor: anchor for _, anchor in anchors}
        near = get_close_matches(_plain(heading), known, n=2, cutoff=0.4)
        return Wrong(f"{found} has no heading {heading}", _mean(known[one] for one in near))

    def _page(self, name: str) -> str | Wrong:
        spelled = name.removesuffix(".md")
        for table, key in ((self._stems, spelled), (self._titles, _plain(name))):
            pages = table.get(key, [])
            if len(pages) == 1:
                return pages[0]
            if pages:
                return Wrong(f"{name} names {len(pages)} pages", "write " + " or ".join(p[:-3] for p in pages))
        known = {_plain(stem): stem for stem in self._stems} | {title: title for title in self._titles}
        near = get_close_matches(_plain(spelled), known, n=2)
        return Wrong(f"no page has the name {name}", _mean(known[one] for one in near))

    def _of(self, page: str) -> tuple[tuple[int, str, str], ...]:
        """Level, text and given id of each heading."""
        if page not in self._headings:
            headings = read_outline(self._read(page)).headings
            self._headings[page] = tuple((h.level, h.text.replace("`", ""), h.anchor) for h in headings)
        return self._headings[page]

    def _anchors(self, page: str, slug: Slug) -> Iterator[tuple[str, str]]:
        """Text and id of each heading, ids as Markdown's table of contents makes them."""
        used = {anchor for _, _, anchor in self._of(page) if anchor}
        for _, text, anchor in self._of(page):
            yield text, anchor or unique(slug(text, "-"), used)
        yield from self._terms(page)


class NoteLinks(InlineProcessor):
    """Makes the links; what is wrong goes to `tell`. One instance serves any number of pages."""

    ANCESTOR_EXCLUDES = ("a",)

    def __init__(
        self,
        md: Markdown,
        *,
        pages: PageNames,
        page: Callable[[], str],
        tell: Callable[[Finding], None],
        language: str,
    ) -> None:
        super().__init__(PATTERN, md)
        self._pages = pages
        self._page = page
        self._tell = tell
        self._language = language

    def handleMatch(  # type: ignore[override] # noqa: N802 - Python-Markdown's name
        self, m: re.Match[str], data: str
    ) -> tuple[Element, int, int]:
        """A link to the place, or the text as written where there is none."""
        written, line = self._where(_ESCAPED.sub(lambda hit: chr(int(hit[1])), self.unescape(m[0])))
        # Only in a table does the bar need a backslash; elsewhere one does no harm.
        target, _, shown = written[2:-2].replace("\\|", "|").partition("|")
        name, _, heading = (part.strip() for part in target.partition("#"))
        text = (strip_marks(m[1]).partition("|")[2] or shown).strip()
        place = self._pages.find(name, heading or None, page=self._page(), slug=self._slug)
        if isinstance(place, Wrong):
            self._tell(Finding(code=Code.NOTE_LINK, line=line, subject=written, message=place.message, fix=place.fix))
            said = strings(self._language)["link.broken"].format(message=place.message)
            made = Element("span", {"class": "sp-broken", "title": said})
            made.text = AtomicString(written)
            return made, m.start(0), m.end(0)
        there = posixpath.relpath(place.page, posixpath.dirname(self._page()) or ".") if name else ""
        made = Element("a", {"href": there + (f"#{place.anchor}" if place.anchor else "")})
        made.text = text or AtomicString(place.title)
        return made, m.start(0), m.end(0)

    def _where(self, written: str) -> tuple[str, int]:
        lines = getattr(_registered(self.md.preprocessors, "sourcepanel"), "lines", None)
        return lines.take(written) if isinstance(lines, PageLines) else (strip_marks(written), 1)

    def _slug(self, text: str, separator: str) -> str:
        """As the site's table of contents does."""
        toc = _registered(self.md.treeprocessors, "toc")
        make: Slug = getattr(toc, "slugify", slugify)
        return make(text, str(getattr(toc, "sep", separator)))


def _registered(registry: Registry[T], name: str) -> T | None:
    return registry[name] if name in registry else None  # noqa: SIM401 - a registry has no `get`


def _plain(text: str) -> str:
    return _PLAIN.sub(" ", text).strip().casefold()


def _mean(names: Iterable[str]) -> str:
    listed = " or ".join(dict.fromkeys(names))
    return f"did you mean {listed}?" if listed else "write it as code if it is no link"
