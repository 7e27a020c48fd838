"""Communication records as a table: the claim in symbols, and under it what the run shows."""

from __future__ import annotations

import posixpath
from collections.abc import Iterable, Mapping, Sequence
from xml.etree.ElementTree import Element, SubElement

from markdown.util import AtomicString

from sourcepanel.markdown import LINE_ATTRIBUTE, fact_link
from sourcepanel.notes.claims import Symbols, spans
from sourcepanel.notes.evidence import Evidence
from sourcepanel.notes.proof import Proof
from sourcepanel.traces import Shape, Trace

_COLUMNS = ("what", "call", "shapes", "count")


class CommunicationTable:
    """Makes the tables of one page."""

    def __init__(self, *, page: str, evidence: Evidence, strings: Mapping[str, str], language: str) -> None:
        """`page` is relative to the docs folder."""
        self._page = page
        self._evidence = evidence
        self._strings = strings
        self._language = language

    def element(self, rows: Iterable[tuple[int, Proof]]) -> Element:
        """One table for records that stand together; each comes with the line of its fence."""
        box = Element("div", {"class": "communication"})
        table = SubElement(box, "table", {"class": "communication__table"})
        head = SubElement(SubElement(table, "thead"), "tr")
        for column in _COLUMNS:
            SubElement(head, "th", {"scope": "col"}).text = self._said(column)
        for line, proof in rows:
            body = SubElement(table, "tbody", {LINE_ATTRIBUTE: str(line)})
            self._claim(SubElement(body, "tr"), proof)
            proved = SubElement(SubElement(body, "tr", {"class": "communication__proof"}), "td", {"colspan": "4"})
            self._proof(SubElement(proved, "ul"), proof)
        return box

    def _claim(self, row: Element, proof: Proof) -> None:
        record = proof.record
        what = SubElement(row, "th", {"scope": "row"})
        what.text = record.title
        SubElement(what, "p", {"class": "communication__duty"}).text = record.semantics
        call = self._cell(row, "call")
        _code(call, record.api).tail = " "
        SubElement(call, "span", {"class": "communication__group"}).text = AtomicString(record.group)
        dtypes = ", ".join(sorted(record.dtype))
        told = AtomicString(" · ".join(filter(None, (record.phase, dtypes))))
        SubElement(call, "p", {"class": "communication__phase"}).text = told
        shapes = self._cell(row, "shapes")
        self._symbols(shapes, record.before).tail = " → "
        if record.before == record.after and record.before:
            SubElement(shapes, "span", {"class": "communication__none"}).text = self._said("same")
        else:
            self._symbols(shapes, record.after)
        self._count(self._cell(row, "count"), proof)

    def _symbols(self, cell: Element, shapes: Sequence[Symbols]) -> Element:
        """The shapes, or `none`; returns the last element."""
        if not shapes:
            none = SubElement(cell, "span", {"class": "communication__none"})
            none.text = self._strings["note.record.none"]
            return none
        for shape in shapes[:-1]:
            _code(cell, str(shape)).tail = ", "
        return _code(cell, str(shapes[-1]))

    def _count(self, cell: Element, proof: Proof) -> None:
        for formula, value, ranks in proof.counts:
            line = SubElement(cell, "p")
            if len(proof.counts) > 1:
                line.text = AtomicString(f"{self._said('ranks').format(ranks=spans(ranks))} ")
            shown = _code(line, formula)
            if formula != str(value):
                shown.tail = AtomicString(f" = {value}")

    def _proof(self, entries: Element, proof: Proof) -> None:
        self._about(SubElement(entries, "li"), "proved", proof.trace)
        everyone = proof.ranks == tuple(sorted(proof.trace.calls))
        ranks = SubElement(entries, "li")
        ranks.text = AtomicString(self._said("all" if everyone else "ranks").format(ranks=spans(proof.ranks)))
        for told in dict.fromkeys(
            [*_evaluated(proof.record.before, proof.before), *_evaluated(proof.record.after, proof.after)]
        ):
            _code(SubElement(entries, "li"), told)
        self._issuer(SubElement(entries, "li"), proof)
        if proof.replay:
            self._about(SubElement(entries, "li"), "replay", proof.replay)

    def _issuer(self, entry: Element, proof: Proof) -> None:
        """What `issued_by` names; a definition is long, so its lines follow, lines named outright say it all."""
        issuer = proof.issuer
        last = SubElement(entry, "span")
        entry.text = f"{self._said('issued')} "
        if issuer.target is None:
            _code(last, proof.record.issued_by.partition("::")[2])
        else:
            last.text = reference(proof.record.issued_by)
        named = "://" in proof.record.issued_by or issuer.start == issuer.end
        for path, line in () if named else proof.lines:
            last.tail = AtomicString("，" if self._language.startswith("zh") else ", ")
            target = issuer.line(line, self._evidence.repositories)
            if target is None:
                last = _code(entry, f"{path}:{line}")
            else:
                last = fact_link(
                    target, text=_spot(path, line),
                    repositories=self._evidence.repositories, language=self._language,
                )  # fmt: skip
                entry.append(last)

    def _about(self, entry: Element, key: str, trace: Trace) -> None:
        """A sentence with a link to a run."""
        before, _, after = self._said(key).partition("{trace}")
        entry.text = before
        there = trace.readable.relative_to(self._evidence.docs).as_posix()
        link = SubElement(entry, "a", {"href": posixpath.relpath(there, posixpath.dirname(self._page) or ".")})
        link.text = AtomicString(trace.name)
        link.tail = after

    def _cell(self, row: Element, column: str) -> Element:
        return SubElement(row, "td", {"data-label": self._said(column)})

    def _said(self, key: str) -> str:
        return self._strings[f"note.communication.{key}"]


def reference(written: str) -> str:
    """Inline Markdown of what `issued_by` names, which becomes a checked link."""
    if "://" not in written:
        return f"`{written}`"
    path, _, lines = written.partition("#L")
    return f"[{_spot(path, lines.replace('-L', '–'))}]({written})"


def _evaluated(symbols: Sequence[Symbols], seen: Iterable[tuple[Shape, ...]]) -> Iterable[str]:
    """`[s, b, h] = [16, 2, 32]`, once for each tensor; nothing for a shape that is all numbers."""
    for at, shape in enumerate(symbols):
        values = " / ".join(dict.fromkeys(f"[{', '.join(map(str, shapes[at]))}]" for shapes in seen))
        if values != str(shape):
            yield f"{shape} = {values}"


def _code(parent: Element, text: str) -> Element:
    element = SubElement(parent, "code")
    element.text = AtomicString(text)
    return element


def _spot(path: str, line: int | str) -> str:
    return f"{posixpath.basename(path)}:{line}"
