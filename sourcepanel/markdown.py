"""The Python-Markdown extension that finds references in a page and makes links of them.

It reads the tree that Markdown has made, never the text: what is a link or inline code is what Markdown says it is,
in tables, footnotes and headings too. Each reference is handed to `resolve`, whose target, if any, is written on
the `<a>` for the panel. Knows nothing of MkDocs.
"""

from __future__ import annotations

import html
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from xml.etree.ElementTree import Element

from markdown import Markdown
from markdown.extensions import Extension
from markdown.postprocessors import Postprocessor
from markdown.preprocessors import Preprocessor
from markdown.treeprocessors import Treeprocessor
from markdown.util import HTML_PLACEHOLDER_RE, AtomicString

from sourcepanel.config import Repository
from sourcepanel.locate import MarkedReferences, PageLines, strip_marks
from sourcepanel.rawhtml import Attributes, rewrite_links
from sourcepanel.reference import (
    Exists,
    Finding,
    MalformedLink,
    OtherRef,
    Reference,
    SourceRef,
    Target,
    identifiers,
    parse_code,
    parse_link,
)
from sourcepanel.strings import strings

Resolve = Callable[[Reference | Finding], Target | None]

LINE_ATTRIBUTE = "data-sp-line"
"""Set by an extension on an element it makes of a fenced block: the block's line in the Markdown it was given."""

MADE_ATTRIBUTE = "data-sp-made"
"""Set by an extension on a link that it made itself from facts (`fact_link`): no reference of the page."""

_ESCAPED = re.compile("\x02([0-9]{1,7})\x03")


@dataclass(frozen=True, kw_only=True)
class Page:
    """The page that is converted."""

    name: str
    """Path of the Markdown file, relative to the docs folder, posix."""
    text: str | None = None
    """The whole file, where Markdown is given less (MkDocs takes the front matter off)."""


class SourcePanelExtension(Extension):
    """Links into the pinned source; one instance serves any number of pages, one after the other."""

    def __init__(
        self,
        repositories: Sequence[Repository],
        page_source: Callable[[], Page],
        resolve: Resolve,
        *,
        exists: Exists | None = None,
        language: str = "zh",
    ) -> None:
        """`page_source` is asked once per page; `exists` splits branch names that hold slashes from the path."""
        super().__init__()
        self.repositories = repositories
        self.page_source = page_source
        self.resolve = resolve
        self.exists = exists
        self.language = language

    def extendMarkdown(self, md: Markdown) -> None:  # noqa: N802 - Python-Markdown's name
        """Mark before any other preprocessor; read the tree after inline patterns (20) and before heading ids (5)."""
        marker = _Marker(md, self)
        md.references = MarkedReferences(md.references)
        md.preprocessors.register(marker, "sourcepanel", 100)
        md.treeprocessors.register(_Links(md, self, marker), "sourcepanel", 19.95)
        md.postprocessors.register(_Cleaner(md), "sourcepanel", -10)


def link_element(
    found: Reference | Finding, target: Target | None, *, repositories: Sequence[Repository], language: str = "zh"
) -> Element:
    """A new link for a reference: `path::symbol` shows the symbol alone, as code; any other its text.

    The one place that makes such a link; a reference without a target is shown as written and leads nowhere
    but where its author pointed it: `path::symbol` then becomes a `<span>`.
    """
    is_code = not re.match(r"(?i)(?:https?:)?//", found.raw)
    # Never an `<a>` without an address: MkDocs takes every one to have it, and no reader could use it.
    element = Element("a", {"href": found.raw}) if not is_code else Element("a" if target else "span")
    if is_code and target:
        element.set("href", target.href)
    text = found.source.symbol if is_code and target and isinstance(found, Reference) else None
    inner = Element("code") if is_code else element
    inner.text = AtomicString(html.escape(text or found.text, quote=False)) if is_code else found.text
    if is_code:
        element.append(inner)
    element.attrib = decorate(dict(element.attrib), found, target, repositories=repositories, language=language)
    return element


def fact_link(target: Target, *, text: str, repositories: Sequence[Repository], language: str) -> Element:
    """A link that no author wrote, to a place that a build found itself: it opens the panel, and is in no lock."""
    element = Element("a", {"href": target.href, MADE_ATTRIBUTE: ""})
    element.text = AtomicString(text)
    element.attrib |= _opening(target, ["sp-link"], [], repositories=repositories, language=language)
    return element


def decorate(
    attributes: Attributes,
    found: Reference | Finding,
    target: Target | None,
    *,
    repositories: Sequence[Repository],
    language: str,
) -> Attributes:
    """The attributes of an `<a>` with all that the panel's script and style sheet read; its own are kept."""
    names = ["sp-link"] if target else ["sp-link", "sp-broken"]
    names += attributes.get("class", "").split()
    own = [attributes["title"]] if attributes.get("title") else []
    if target is not None:
        return {**attributes, **_opening(target, names, own, repositories=repositories, language=language)}
    problem = found.problem if isinstance(found, Finding) else None
    message = problem.reason if isinstance(problem, MalformedLink) else found.raw
    said = strings(language)["link.broken"].format(message=message)
    return {**attributes, "class": " ".join(names), "title": " · ".join([*own, said])}


def _opening(
    target: Target, names: Sequence[str], said: Sequence[str], *, repositories: Sequence[Repository], language: str
) -> Attributes:
    """What the panel reads of a link that it can open."""
    repository = next(r for r in repositories if r.name == target.repository)
    new = {"class": " ".join(names), "data-src": target.key, "data-kind": target.kind}
    if target.symbol:
        new["data-symbol"] = target.symbol
    verified = strings(language)["link.verified"].format(ref=repository.ref, short=repository.commit[:8])
    place = target.key.removeprefix(f"{target.repository}/") or "/"
    return {**new, "title": " · ".join([*said, place, verified])}


class _Marker(Preprocessor):
    """Notes which page begins, and marks its lines."""

    def __init__(self, md: Markdown, extension: SourcePanelExtension) -> None:
        super().__init__(md)
        self._extension = extension
        self.page = ""
        self.lines = PageLines([])

    def run(self, lines: list[str]) -> list[str]:
        page = self._extension.page_source()
        self.page = page.name
        urls = [url for r in self._extension.repositories for url in (r.url, *(alias.url for alias in r.aliases))]
        self.lines = PageLines(lines, file=page.text, urls=urls, tab_length=self.md.tab_length)
        return self.lines.marked()


class _Links(Treeprocessor):
    """Finds the references of the tree, and of the raw HTML that Markdown keeps beside it."""

    def __init__(self, md: Markdown, extension: SourcePanelExtension, marker: _Marker) -> None:
        super().__init__(md)
        self._extension = extension
        self._marker = marker
        self._after = 1

    def run(self, root: Element) -> None:
        """Every reference once, in the order of the tree."""
        self._after = 1
        self._visit(root, linked=False)
        stash: list[str | Element] = self.md.htmlStash.rawHtmlBlocks
        for index, block in enumerate(stash):
            if isinstance(block, str):
                stash[index] = strip_marks(rewrite_links(block, self._raw) if "<a" in block.lower() else block)
        for element in root.iter():
            element.text, element.tail = _cleaned(element.text), _cleaned(element.tail)
            for name, value in element.items():
                if (clean := strip_marks(value)) is not value:
                    element.set(name, clean)

    def _visit(self, parent: Element, *, linked: bool) -> None:
        for index, child in enumerate(parent):
            outer = self._after
            self._after = int(child.attrib.pop(LINE_ATTRIBUTE, outer))
            if child.tag == "a" and child.get("href") and child.attrib.pop(MADE_ATTRIBUTE, None) is None:
                self._link(child)
            elif child.tag == "code" and not linked and (made := self._code(child)) is not None:
                parent[index] = made
            self._visit(child, linked=linked or child.tag in ("a", "pre"))
            self._after = outer

    def _link(self, element: Element) -> None:
        codes = [self._plain(code) for code in element.iter("code")]
        attributes = self._linked(dict(element.attrib), self._plain(element), codes)
        if attributes is not None:
            element.attrib = attributes

    def _raw(self, attributes: Attributes, text: str, codes: list[str]) -> Attributes | None:
        return self._linked(
            {name: strip_marks(v) if name != "href" else v for name, v in attributes.items()}, text, codes
        )

    def _linked(self, attributes: Attributes, text: str, codes: Sequence[str]) -> Attributes | None:
        """New attributes for a link into the pinned source; None for any other."""
        written = html.unescape(_ESCAPED.sub(lambda match: chr(int(match[1])), attributes["href"]))
        href = strip_marks(written)
        parsed = parse_link(href, self._extension.repositories, exists=self._extension.exists)
        if parsed is None:
            return None
        text = " ".join(strip_marks(text).split())
        named = [identifiers(strip_marks(code), code=True) for code in codes] or [identifiers(text, code=False)]
        found = self._found(written, text, parsed, names=tuple(name for names in named for name in names))
        return decorate(
            {**attributes, "href": strip_marks(attributes["href"])}, found, self._extension.resolve(found),
            repositories=self._extension.repositories, language=self._extension.language,
        )  # fmt: skip

    def _code(self, element: Element) -> Element | None:
        """The link that replaces this inline code; None where it is no reference."""
        written = self._plain(element)
        parsed = parse_code(strip_marks(written), self._extension.repositories) if "::" in written else None
        if parsed is None:
            return None
        found = self._found(written, strip_marks(written), parsed)
        made = link_element(
            found, self._extension.resolve(found),
            repositories=self._extension.repositories, language=self._extension.language,
        )  # fmt: skip
        made.tail = element.tail
        return made

    def _found(
        self, written: str, text: str, parsed: SourceRef | OtherRef | MalformedLink, names: tuple[str, ...] = ()
    ) -> Reference | Finding:
        raw, line = self._marker.lines.take(written, after=self._after)
        page = self._marker.page
        if isinstance(parsed, SourceRef):
            return Reference(page=page, line=line, raw=raw, text=text, names=names, source=parsed)
        return Finding(page=page, line=line, raw=raw, text=text, problem=parsed)

    def _plain(self, element: Element) -> str:
        """The visible text, with what Markdown has put aside (escapes, entities, raw HTML) put back."""
        text = _ESCAPED.sub(lambda match: chr(int(match[1])), "".join(element.itertext()))
        stash = self.md.htmlStash.rawHtmlBlocks

        def stashed(match: re.Match[str]) -> str:
            block = stash[int(match[1])] if int(match[1]) < len(stash) else ""
            return re.sub(r"<[^<>]*>", "", block) if isinstance(block, str) else "".join(block.itertext())

        return html.unescape(HTML_PLACEHOLDER_RE.sub(stashed, text))


class _Cleaner(Postprocessor):
    """Takes out any mark that was carried past the tree, e.g. by an abbreviation."""

    def run(self, text: str) -> str:
        return strip_marks(text)


def _cleaned(text: str | None) -> str | None:
    """Without marks; an `AtomicString` stays one, so that no later extension reads it as Markdown."""
    clean = strip_marks(text) if text else text
    return AtomicString(clean) if clean is not text and isinstance(text, AtomicString) else clean
