"""Terms in the prose of a page: the first in each section leads to the glossary, and tells in a tooltip what it means.

Python-Markdown's own `abbr` marks every occurrence, which in a note that says "rank" two hundred times is noise, and
its tooltip is out of reach of fingers and keys; a link is not.
"""

from __future__ import annotations

import posixpath
from collections.abc import Callable
from xml.etree.ElementTree import Element

from markdown import Markdown
from markdown.treeprocessors import Treeprocessor
from markdown.util import AtomicString

from sourcepanel.notes.glossary import Glossary, Term

_QUIET = frozenset({"a", "abbr", "button", "code", "h1", "h2", "h3", "h4", "h5", "h6", "kbd", "pre", "summary", "svg"})
"""No term is marked inside these."""


class GlossaryLinks(Treeprocessor):
    """Marks the terms of a page; one instance serves any number of pages."""

    def __init__(self, md: Markdown, *, glossary: Glossary, page: Callable[[], str], language: str) -> None:
        super().__init__(md)
        self._glossary = glossary
        self._page = page
        self._language = language
        self._seen: set[Term] = set()

    def run(self, root: Element) -> None:
        """After the references are links, before headings get their ids."""
        if self._glossary.terms and self._page() != self._glossary.page:
            self._seen = set()
            self._visit(root)

    def _visit(self, element: Element) -> None:
        if element.tag in ("h1", "h2"):
            self._seen = set()
        if not isinstance(element.tag, str) or element.tag in _QUIET:
            return
        own = list(element)
        element.text, made = self._marked(element.text)
        for place, link in enumerate(made):
            element.insert(place, link)
        for child in own:
            self._visit(child)
            child.tail, made = self._marked(child.tail)
            place = list(element).index(child) + 1
            for offset, link in enumerate(made):
                element.insert(place + offset, link)

    def _marked(self, text: str | None) -> tuple[str | None, list[Element]]:
        """The text up to the first new term, and a link for each, with the text behind it as its tail."""
        if not text or isinstance(text, AtomicString):
            return text, []
        links: list[Element] = []
        head, last = text, 0
        for start, end, term in self._glossary.find(text):
            if term in self._seen:
                continue
            self._seen.add(term)
            if links:
                links[-1].tail = text[last:start]
            else:
                head = text[:start]
            links.append(self._link(term, text[start:end]))
            last = end
        if links:
            links[-1].tail = text[last:]
        return head, links

    def _link(self, term: Term, text: str) -> Element:
        there = posixpath.relpath(self._glossary.page, posixpath.dirname(self._page()) or ".")
        link = Element("a", {"class": "term", "href": f"{there}#{term.anchor}", "title": term.text(self._language)})
        link.text = AtomicString(text)
        return link
