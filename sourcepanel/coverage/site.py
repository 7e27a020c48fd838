"""What the site shows of the coverage: the parts that a page asks for with a comment of its own.

`<!-- source-coverage -->` becomes treemap and tables, `<!-- symbol-index -->` every symbol with the sections that
speak of it, `<!-- read-next -->` the list of what to read next. Nothing is computed for a site that asks for none.
"""

from __future__ import annotations

import posixpath
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from html import escape
from itertools import pairwise
from urllib.parse import quote

from sourcepanel.backlinks import Symbol, symbol_mentions
from sourcepanel.config import Repository
from sourcepanel.coverage.following import read_next
from sourcepanel.coverage.measure import FileCoverage, Sum, measure, percent
from sourcepanel.coverage.treemap import STEPS, layout, treemap
from sourcepanel.mentions import Mention
from sourcepanel.reference import Target
from sourcepanel.source import Source
from sourcepanel.versions_view import Views, offered, version_name
from sourcepanel.xref.model import FileIndex

COVERAGE = "<!-- source-coverage -->"
SYMBOLS = "<!-- symbol-index -->"
NEXT = "<!-- read-next -->"
SLOTS = (COVERAGE, SYMBOLS, NEXT)
SCRIPT = "sourcepanel/treemap.js"
"""Makes the treemap one stop of the Tab key; only pages with one load it."""
TOP = 20
"""Files in the table of those that notes say most about."""
DEEP = 3
"""Parts of a path that a row of the folders' table has at most."""


@dataclass(frozen=True, kw_only=True)
class Material:
    """All that the pages of a site say of one repository."""

    source: Source
    targets: Sequence[Target]
    mentions: Sequence[Mention]
    index: Mapping[str, FileIndex]
    folders: Sequence[str]
    """Which part of it counts; empty for all."""
    views: Views
    """What differs at other versions."""


class CoveragePages:
    """The parts, made once for the whole site."""

    def __init__(self, materials: Iterable[Material], *, strings: Mapping[str, str]) -> None:
        self._materials = tuple(materials)
        self._strings = strings
        self._against = {m.source.repository.name: _against(m) for m in self._materials}
        self.files = {m.source.repository.name: self._measure(m) for m in self._materials}
        """What counts, by repository; the panel has all of these files."""

    def fill(self, html: str, *, up: str) -> str:
        """A page's content with its parts; `up` leads from the page to the site's root."""
        parts: dict[str, Callable[[Material, str], str]] = {
            COVERAGE: self._coverage, SYMBOLS: self._symbols, NEXT: self._next,
        }  # fmt: skip
        for slot, make in parts.items():
            if slot in html:
                made = "".join(make(material, up) for material in self._materials)
                html = html.replace(slot, f'<div class="coverage">{made}</div>')
        return html

    def _measure(self, material: Material) -> tuple[FileCoverage, ...]:
        name = material.source.repository.name
        _, commit = self._against[name]
        stale = {path: len(there.get(commit, ())) for (owner, path), there in material.views.items() if owner == name}
        return measure(material.source, material.targets, folders=material.folders, stale=stale)

    def _coverage(self, material: Material, up: str) -> str:
        text, repository = self._strings, material.source.repository
        files = self.files[repository.name]
        against, _ = self._against[repository.name]
        total = Sum.of(files)
        lead = text["coverage.total"].format(
            name=repository.name, ref=repository.ref, files=total.files, touched=total.touched, lines=total.lines,
            covered=total.covered, percent=percent(total.covered, total.lines),
        )  # fmt: skip
        if total.stale:
            lead += text["coverage.totalStale"].format(count=total.stale, version=against)
        picture = treemap(
            layout(files), blob=_blob(repository), strings=text, against=against, label=text["coverage.map"]
        )
        return (
            f"<p>{escape(lead)}</p>{self._legend(stale=against if total.stale else '')}"
            f'<div class="coverage__map">{picture}</div><script src="{escape(up + SCRIPT)}"></script>'
            f"{self._folder_table(files, repository)}{self._file_table(files, repository)}"
        )

    def _legend(self, *, stale: str) -> str:
        text = self._strings
        bounds = [*STEPS, 101]
        labels = [text["coverage.none"], *(f"{a}–{min(100, b - 1)}%" for a, b in pairwise(bounds))]
        rows = [
            f'<li><span class="coverage__key coverage__key--{i}"></span>{label}</li>' for i, label in enumerate(labels)
        ]
        if stale:
            label = escape(text["coverage.stale"].format(version=stale))
            rows.append(f'<li><span class="coverage__key coverage__key--stale"></span>{label}</li>')
        return f'<ul class="coverage__legend" aria-label="{escape(text["coverage.legend"])}">{"".join(rows)}</ul>'

    def _folder_table(self, files: Sequence[FileCoverage], repository: Repository) -> str:
        groups: dict[str, list[FileCoverage]] = defaultdict(list)
        for file in files:
            groups["/".join(posixpath.dirname(file.path).split("/")[:DEEP])].append(file)
        rows = [
            (
                self._source_link(f"{repository.name}/{folder}/".replace("//", "/"), f"{folder}/", repository),
                Sum.of(found),
            )
            for folder, found in sorted(groups.items())
        ]
        return self._table("coverage.folders", rows, files=True)

    def _file_table(self, files: Sequence[FileCoverage], repository: Repository) -> str:
        most = sorted(files, key=lambda file: (-len(file.covered), file.path))[:TOP]
        rows = [(self._source_link(file.key, file.path, repository), Sum.of([file])) for file in most if file.covered]
        return self._table("coverage.top", rows, files=False)

    def _table(self, title: str, rows: Sequence[tuple[str, Sum]], *, files: bool) -> str:
        text = self._strings
        columns = ["path", *(["files"] if files else []), "lines", "covered", "percent", "places", "changed"]
        head = "".join(f'<th scope="col">{escape(text[f"coverage.{column}"])}</th>' for column in columns)
        body = "".join(
            f'<tr><th scope="row">{link}</th>'
            + (f"<td>{total.touched} / {total.files}</td>" if files else "")
            + f"<td>{total.lines}</td><td>{total.covered}</td><td>{percent(total.covered, total.lines)}%</td>"
            f"<td>{total.places}</td><td>{total.stale}</td></tr>"
            for link, total in rows
        )
        return (
            f'<div class="coverage__scroll" tabindex="0" role="region" aria-label="{escape(text[title])}">'
            f'<table class="coverage__table"><caption>{escape(text[title])}</caption>'
            f"<thead><tr>{head}</tr></thead><tbody>{body}</tbody></table></div>"
        )

    def _symbols(self, material: Material, up: str) -> str:
        repository = material.source.repository
        spoken = {
            symbol: said
            for symbol, said in symbol_mentions(material.mentions, material.targets).items()
            if symbol[0] == repository.name
        }
        files: dict[str, list[tuple[Symbol, tuple[Mention, ...]]]] = defaultdict(list)
        for symbol, said in spoken.items():
            files[symbol[1]].append((symbol, said))
        lead = self._strings["coverage.symbols"].format(count=len(spoken), files=len(files))
        contents = "".join(
            f'<li><a href="#{_anchor(path)}">{escape(path)}</a> <small>{len(found)}</small></li>'
            for path, found in files.items()
        )
        parts = "".join(self._file(material, path, found, up=up) for path, found in files.items())
        return f'<p>{escape(lead)}</p><ul class="symbols__files">{contents}</ul>{parts}'

    def _file(
        self, material: Material, path: str, found: Sequence[tuple[Symbol, tuple[Mention, ...]]], *, up: str
    ) -> str:
        repository = material.source.repository
        file = material.source.file(path)
        starts = {symbol.name: symbol.start for symbol in reversed(file.symbols.symbols)} if file else {}
        rows = []
        for (_, _, name), said in sorted(found, key=lambda one: (starts.get(one[0][2], 0), one[0][2])):
            link = self._source_link(self._definition(material, path, name), name, repository)
            rows.append(f"<dt>{link}</dt><dd><ul>{self._sections(said, up=up)}</ul></dd>")
        title = self._source_link(f"{repository.name}/{path}", path, repository)
        return (
            f'<section class="symbols__file" aria-labelledby="{_anchor(path)}"><h2 id="{_anchor(path)}">{title}</h2>'
            f"<dl>{''.join(rows)}</dl></section>"
        )

    def _definition(self, material: Material, path: str, name: str) -> str:
        """The address of a symbol; of what the links say where this build has no text of the file."""
        repository = material.source.repository.name
        file = material.source.file(path)
        found = file.symbols.get(name) if file else ()
        if found:
            lines = f"#L{found[0].start}" + (f"-L{found[0].end}" if found[0].end != found[0].start else "")
            return f"{repository}/{path}{lines}"
        mine = [t for t in material.targets if (t.repository, t.path, t.symbol) == (repository, path, name)]
        return min(mine, key=lambda target: target.kind != "definition").key

    def _sections(self, said: Sequence[Mention], *, up: str) -> str:
        sections: dict[tuple[str, str], list[Mention]] = defaultdict(list)
        for mention in said:
            sections[mention.url.partition("#")[0], mention.heading].append(mention)
        rows = []
        for found in sections.values():
            first = found[0]
            title = " · ".join(filter(None, [first.page, first.heading]))
            count = f" <small>×{len(found)}</small>" if len(found) > 1 else ""
            rows.append(f'<li><a href="{escape(up + first.url)}">{escape(title)}</a>{count}</li>')
        return "".join(rows)

    def _next(self, material: Material, up: str) -> str:
        text, repository = self._strings, material.source.repository
        rows = []
        for one in read_next(self.files[repository.name], index=material.index):
            link = self._source_link(f"{repository.name}/{one.definition.key}", one.definition.name, repository)
            callers = text["panel.and"].join(
                self._source_link(f"{repository.name}/{caller.key}", caller.name, repository)
                for caller in one.callers[:3]
            )
            told = text["coverage.callers"].format(count=len(one.callers))
            rows.append(f"<li>{link} <small>{escape(one.definition.path)}</small><br>{escape(told)}{callers}</li>")
        return f'<ol class="read-next">{"".join(rows)}</ol>' if rows else f"<p>{escape(text['coverage.nothing'])}</p>"

    def _source_link(self, key: str, label: str, repository: Repository) -> str:
        """A link that opens the panel but is no step of the page's tour."""
        path, mark, lines = key.partition("/")[2].partition("#")
        base = _blob(repository)
        base = base.replace("/blob/", "/tree/") if not path or path.endswith("/") else base
        href = base + quote(path) + mark + lines
        return f'<a class="sp-node" href="{escape(href)}" data-src="{escape(key)}"><code>{escape(label)}</code></a>'


def _blob(repository: Repository) -> str:
    return f"{repository.url.rstrip('/')}/blob/{repository.commit}/"


def _anchor(path: str) -> str:
    return escape("file-" + path.replace("/", "-").replace(".", "-"))


def _against(material: Material) -> tuple[str, str]:
    """The newest version that the panel offers, by its name and commit; empty where there is none."""
    versions = offered(material.source.repository)
    return (version_name(versions[-1]), versions[-1].commit) if versions else ("", "")
