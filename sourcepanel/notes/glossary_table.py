"""A part of the glossary as a table, each term a place that other pages link to."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from xml.etree.ElementTree import Element, SubElement

from markdown.util import AtomicString

from sourcepanel.markdown import LINE_ATTRIBUTE
from sourcepanel.notes.glossary import Term


def glossary_table(terms: Iterable[Term], *, strings: Mapping[str, str]) -> Element:
    """One row a term: the word, what it means in both languages, and where to read on."""
    box = Element("div", {"class": "glossary"})
    table = SubElement(box, "table", {"class": "glossary__table"})
    head = SubElement(SubElement(table, "thead"), "tr")
    for column in ("term", "meaning", "link"):
        SubElement(head, "th", {"scope": "col"}).text = strings[f"note.glossary.{column}"]
    body = SubElement(table, "tbody")
    for term in terms:
        row = SubElement(body, "tr", {"id": term.anchor, LINE_ATTRIBUTE: str(term.line)})
        name = SubElement(row, "th", {"scope": "row"})
        name.text = AtomicString(term.name)
        if term.also:
            SubElement(name, "p", {"class": "glossary__also"}).text = AtomicString(", ".join(term.also))
        meaning = SubElement(row, "td")
        SubElement(meaning, "p", {"lang": "zh"}).text = term.zh
        SubElement(meaning, "p", {"lang": "en"}).text = term.en
        SubElement(row, "td").text = _link(term.link, strings)
    return box


def _link(written: str, strings: Mapping[str, str]) -> str:
    """Inline Markdown of where to read on."""
    if "::" in written:
        return f"`{written}`"
    return f"[{strings['note.glossary.here']}]({written})"
