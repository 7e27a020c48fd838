"""The Markdown extension that turns a note's structured blocks into tables.

It builds elements, not HTML text, so that references inside a record are found, checked and locked by the extension
that handles all references, and links to notes by MkDocs. A block that is not valid is shown as a box that says so;
`check_records` reports it with its line.
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Callable, Mapping, Sequence
from xml.etree.ElementTree import Element, SubElement

from markdown import Markdown
from markdown.blockprocessors import BlockProcessor
from markdown.extensions import Extension
from markdown.preprocessors import Preprocessor
from markdown.util import ETX, STX

from sourcepanel.collect import read_page
from sourcepanel.config import Config
from sourcepanel.markdown import LINE_ATTRIBUTE
from sourcepanel.notes.communication_table import CommunicationTable, reference
from sourcepanel.notes.communications import COMMUNICATIONS
from sourcepanel.notes.evidence import Evidence
from sourcepanel.notes.finding import Finding
from sourcepanel.notes.function_records import FUNCTIONS, FunctionRecord, Item
from sourcepanel.notes.glossary import Glossary, is_glossary, load_glossary, read_terms
from sourcepanel.notes.glossary_links import GlossaryLinks
from sourcepanel.notes.glossary_table import glossary_table
from sourcepanel.notes.links import NoteLinks, PageNames
from sourcepanel.notes.outline import Fence, read_outline
from sourcepanel.notes.proof import Proof, prove
from sourcepanel.notes.roadmap import MARK, Chapter, Roadmap, Round, load_roadmap
from sourcepanel.notes.row_headers import RowHeaders
from sourcepanel.strings import strings

MADE = "sp-made"
"""Class of a link between pages that the build made: no sentence of a page holds it."""
_MARK = re.compile(f"^{STX}note:(\\d+){ETX}$")


class NotesExtension(Extension):
    """Records and the roadmap's tables."""

    def __init__(
        self,
        *,
        roadmap: Roadmap,
        page: Callable[[], str],
        note_exists: Callable[[str], bool],
        script_exists: Callable[[str], bool],
        strings: Mapping[str, str],
        evidence: Evidence | None = None,
        glossary: Glossary | None = None,
        pages: PageNames | None = None,
        language: str = "zh",
    ) -> None:
        """`page` names the page being read, relative to the docs folder; the others answer for paths of the roadmap."""
        super().__init__()
        self.roadmap = roadmap
        self.page = page
        self.note_exists = note_exists
        self.script_exists = script_exists
        self.strings = strings
        self.evidence = evidence or Evidence()
        self.glossary = glossary or Glossary()
        self.pages = pages or PageNames(lambda: (), lambda name: "")
        self.language = language
        self.findings: list[Finding] = []
        """What is wrong with links by name on the page that was converted last."""

    @classmethod
    def of(cls, config: Config, *, page: Callable[[], str], evidence: Evidence, language: str = "zh") -> NotesExtension:
        """The extension of a site; raises `ConfigError` when its roadmap cannot be read."""
        docs = config.path(config.docs)
        glossary = load_glossary(config.path(config.notes.glossary), docs=docs) if config.notes.glossary else Glossary()
        return cls(
            roadmap=load_roadmap(config.path(config.notes.roadmap)) if config.notes.roadmap else Roadmap(),
            page=page,
            note_exists=lambda note: (docs / note).is_file(),
            script_exists=lambda script: (config.root / script).is_file(),
            strings=strings(language),
            evidence=evidence,
            glossary=glossary,
            pages=PageNames(config.page_names, lambda name: read_page(docs / name), terms=glossary.anchors),
            language=language,
        )

    def extendMarkdown(self, md: Markdown) -> None:  # noqa: N802 - Python-Markdown's name
        """Blocks before superfences (25) and after white space is normalised (30); terms when references are links."""
        blocks: list[Element] = []
        md.preprocessors.register(_Extract(md, self, blocks), "sourcepanel-notes", 28)
        md.parser.blockprocessors.register(_Insert(md.parser, blocks), "sourcepanel-notes", 180)
        links = GlossaryLinks(md, glossary=self.glossary, page=self.page, language=self.language)
        md.treeprocessors.register(links, "sourcepanel-glossary", 7)
        # After inline (20), which reads cells by their tag as the table's own block processor wrote it.
        md.treeprocessors.register(RowHeaders(md), "sourcepanel-row-headers", 6)
        named = NoteLinks(
            md, pages=self.pages, page=self.page, tell=lambda finding: self.findings.append(finding),
            language=self.language,
        )  # fmt: skip
        # After code (190), links (160) and short references (130), before emphasis (60).
        md.inlinePatterns.register(named, "sourcepanel-notes", 125)

    def record(self, body: Sequence[str]) -> Element:
        """A function record as an element; an invalid one as a box."""
        parsed = FUNCTIONS.read(body, line=0)
        return self._record_table(parsed.record) if parsed.record else self._invalid(parsed.findings)

    def communications(self, fences: Sequence[Fence]) -> Element:
        """Communication records that stand together, as one table; what is not valid or not proved as a box."""
        box = Element("div")
        proofs: list[tuple[int, Proof]] = []
        for fence in fences:
            parsed = COMMUNICATIONS.read(fence.body, line=fence.line)
            proof = prove(parsed, evidence=self.evidence) if parsed.record else None
            if isinstance(proof, Proof):
                proofs.append((fence.line, proof))
            else:
                invalid = self._invalid([proof] if proof else parsed.findings)
                # What the record points at is a reference of the page all the same, and checked like any other.
                if parsed.record and not self.evidence.is_own(parsed.record.issued_by):
                    issuer = SubElement(invalid, "p", {LINE_ATTRIBUTE: str(fence.line)})
                    issuer.text = reference(parsed.record.issued_by)
                box.append(invalid)
        if proofs:
            table = CommunicationTable(
                page=self.page(), evidence=self.evidence, strings=self.strings, language=self.language
            )
            box.append(table.element(proofs))
        return box

    def terms(self, fence: Fence) -> Element:
        """A part of the glossary."""
        terms, findings = read_terms(fence.body, line=fence.line)
        return glossary_table(terms, strings=self.strings) if terms else self._invalid(findings)

    def _invalid(self, findings: Sequence[Finding]) -> Element:
        box = Element("div", {"class": "note-invalid"})
        for finding in findings:
            SubElement(box, "p").text = f"{self.strings['note.invalid']} {_plain(finding.message)}"
        return box

    def _record_table(self, record: FunctionRecord) -> Element:
        box = Element("div", {"class": "function-record"})
        table = SubElement(box, "table", {"class": "function-record__table"})
        head = SubElement(SubElement(table, "thead"), "tr")
        SubElement(head, "th", {"scope": "col"}).text = self.strings["note.record.function"]
        SubElement(head, "th", {"scope": "col"}).text = _code(record.function)
        body = SubElement(table, "tbody")
        for field in ("inputs", "outputs", "core", "process_groups", "shards", "state"):
            self._row(body, field, getattr(record, field))
        self._row(body, "step", (Item(name="", text=record.step),))
        return box

    def _row(self, body: Element, field: str, items: Sequence[Item]) -> None:
        row = SubElement(body, "tr")
        SubElement(row, "th", {"scope": "row"}).text = self.strings[f"note.record.{field}"]
        cell = SubElement(row, "td")
        if not items:
            SubElement(cell, "span", {"class": "function-record__none"}).text = self.strings["note.record.none"]
        elif len(items) == 1:
            cell.text = _inline(items[0])
        else:
            entries = SubElement(cell, "ul")
            for item in items:
                SubElement(entries, "li").text = _inline(item)

    def round(self, number: int, *, form: str | None = None) -> Element:
        """The question of a round and its table of chapters; in the form `list`, its chapters and their questions."""
        if not 1 <= number <= len(self.roadmap.rounds):
            box = Element("div", {"class": "note-invalid"})
            SubElement(box, "p").text = f"{self.strings['note.invalid']} roadmap {number}"
            return box
        chosen: Round = self.roadmap.rounds[number - 1]
        if form == "list":
            return self._chapters(chosen)
        box = Element("div", {"class": "roadmap"})
        SubElement(box, "p", {"class": "roadmap__question"}).text = chosen.question
        table = SubElement(box, "table", {"class": "roadmap__table"})
        head = SubElement(SubElement(table, "thead"), "tr")
        for column in ("number", "note", "state", "script", "record"):
            SubElement(head, "th", {"scope": "col"}).text = self.strings[f"note.roadmap.{column}"]
        body = SubElement(table, "tbody")
        for chapter in chosen.chapters:
            row = SubElement(body, "tr")
            SubElement(row, "td").text = f"{chapter.number:02d}"
            self._title(SubElement(row, "td"), chapter)
            state = SubElement(row, "td")
            SubElement(state, "span", {"class": "note-state", "data-note": chapter.note})
            there = self.script_exists(chapter.script)
            attributes = {} if there else {"class": "roadmap__planned", "title": self.strings["note.planned"]}
            SubElement(row, "td", attributes).text = _code(chapter.script)
            SubElement(row, "td").text = chapter.record
        return box

    def _title(self, parent: Element, chapter: Chapter) -> None:
        if self.note_exists(chapter.note):
            here = posixpath.dirname(self.page()) or "."
            parent = SubElement(parent, "a", {"class": MADE, "href": posixpath.relpath(chapter.note, here)})
        parent.text = chapter.title

    def _chapters(self, chosen: Round) -> Element:
        entries = Element("ol", {"class": "chapters"})
        for chapter in chosen.chapters:
            entry = SubElement(entries, "li", {"value": str(chapter.number)})
            self._title(SubElement(entry, "strong"), chapter)
            SubElement(entry, "p").text = chapter.question or chapter.record
        return entries


class _Extract(Preprocessor):
    """Takes the blocks out of the text and leaves a mark and as many lines as there were."""

    def __init__(self, md: Markdown, extension: NotesExtension, blocks: list[Element]) -> None:
        super().__init__(md)
        self._extension = extension
        self._blocks = blocks

    def run(self, lines: list[str]) -> list[str]:
        self._blocks.clear()
        self._extension.findings.clear()
        out = list(lines)
        fenced: set[int] = set()
        together: list[Fence] = []
        for fence in read_outline("\n".join(lines)).fences:
            fenced.update(range(fence.line, fence.end + 1))
            if FUNCTIONS.is_in(fence) and fence.end > fence.line:
                self._replace(out, [fence], self._extension.record(fence.body))
            elif is_glossary(fence) and fence.end > fence.line:
                self._replace(out, [fence], self._extension.terms(fence))
            elif COMMUNICATIONS.is_in(fence) and fence.end > fence.line:
                if together and not _stand_together(together[-1], fence, lines):
                    self._replace(out, together, self._extension.communications(together))
                    together = []
                together.append(fence)
        if together:
            self._replace(out, together, self._extension.communications(together))
        for number, line in enumerate(lines):
            if number + 1 not in fenced and (hit := MARK.match(line)):
                out[number] = self._put(self._extension.round(int(hit[1]), form=hit[2]), number + 1, "")
        return out

    def _replace(self, lines: list[str], fences: Sequence[Fence], block: Element) -> None:
        """Put the block in the place of these fences, which follow each other."""
        first, last = fences[0], fences[-1]
        filled = [""] * (last.end - first.line + 1)
        filled[1] = self._put(block, first.line, first.indent)
        lines[first.line - 1 : last.end] = filled

    def _put(self, block: Element, line: int, indent: str) -> str:
        block.set(LINE_ATTRIBUTE, str(line))
        self._blocks.append(block)
        return f"{indent}{STX}note:{len(self._blocks) - 1}{ETX}"


class _Insert(BlockProcessor):
    """Puts the element in the place of its mark."""

    def __init__(self, parser: object, blocks: list[Element]) -> None:
        super().__init__(parser)  # type: ignore[arg-type]
        self._blocks = blocks

    def test(self, parent: Element, block: str) -> bool:
        return _MARK.match(block.rstrip()) is not None

    def run(self, parent: Element, blocks: list[str]) -> None:
        hit = _MARK.match(blocks.pop(0).rstrip())
        assert hit is not None
        parent.append(self._blocks[int(hit[1])])


def _stand_together(first: Fence, second: Fence, lines: Sequence[str]) -> bool:
    """Whether nothing stands between two fences of one depth."""
    return first.indent == second.indent and not "".join(lines[first.end : second.line - 1]).strip("> \t")


def _code(name: str) -> str:
    return f"`{name}`"


def _plain(text: str) -> str:
    """Markdown-safe: nothing in it becomes a reference."""
    return text.replace("`", "'")


def _inline(item: Item) -> str:
    # A name in words ("环境变量") is text; only what could stand in a program is code.
    name = _code(item.name) if item.name.isascii() else item.name
    return f"{name}：{item.text}" if item.name and item.text else item.text or name
