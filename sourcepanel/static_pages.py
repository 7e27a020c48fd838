"""Source files as plain pages: for readers without JavaScript, and for search engines.

One page per linked file that this build has text of, at `sourcepanel/page/<repository>/<path>.html`, with `id="L10"`
on every line and `id="L10-L20"` on every range that a note links to, so that the same fragments work as on GitHub.

Search engines may have these pages, and they are in the sitemap: someone who looks for a function by its name finds
the place where the pinned source stands beside the notes about it. They are a licensed copy that says so; whoever
would rather leave the search results to the original passes `indexed=False`, and each page says `noindex` and none
is in the sitemap (one without the other would contradict itself). The site's own search does not know them.
"""

from __future__ import annotations

import gzip
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from html import escape
from pathlib import Path, PurePosixPath
from types import MappingProxyType
from urllib.parse import quote

from sourcepanel.config import Repository
from sourcepanel.files import write_atomically
from sourcepanel.mentions import Mention
from sourcepanel.panel import data_path
from sourcepanel.panel_assets import FOLDER
from sourcepanel.reference import Target
from sourcepanel.render import SECTION, render_cached
from sourcepanel.source import Source, SourceFile
from sourcepanel.strings import strings
from sourcepanel.symbols import Symbol
from sourcepanel.xref.model import FileIndex, Occurrence
from sourcepanel.xref.weave import weave

STYLE = f"{FOLDER}/page.css"
PAGES = f"{FOLDER}/page"
_ASSETS = Path(__file__).parent / "assets"
_OUTLINED = ("class", "function", "method")


@dataclass(frozen=True)
class StaticPage:
    """One page of source."""

    path: PurePosixPath
    """Relative to the site's root."""
    html: str


@dataclass(frozen=True)
class _Frame:
    """What is the same on all pages of a repository."""

    repository: Repository
    text: Mapping[str, str]
    language: str
    site_url: str
    indexed: bool


def static_pages(
    source: Source,
    targets: Iterable[Target],
    *,
    cache: Path | None,
    mentions: Iterable[Mention] = (),
    index: Mapping[str, FileIndex] = MappingProxyType({}),
    language: str = "zh",
    site_url: str = "",
    indexed: bool = True,
) -> Iterator[StaticPage]:
    """The pages of one repository, sorted. Identifiers that certainly mean something on one of them are links."""
    name = source.repository.name
    ranges: dict[str, set[tuple[int, int]]] = defaultdict(set)
    for target in targets:
        if target.repository == name and target.kind != "folder" and target.has_text:
            found = ranges[target.path]
            if target.start is not None and target.end is not None and target.start != target.end:
                found.add((target.start, target.end))
    said: dict[str, list[Mention]] = defaultdict(list)
    for mention in mentions:
        said[mention.key.partition("#L")[0]].append(mention)
    files = {path: file for path in sorted(ranges) if (file := source.file(path)) is not None and file.has_text}
    frame = _Frame(source.repository, strings(language), language, site_url.rstrip("/"), indexed)
    for path, file in files.items():
        sections = _woven(file, index.get(path), name=name, shown=files.keys(), cache=cache)
        notes = said.get(f"{name}/{path}", [])
        yield StaticPage(page_path(name, path), _page(frame, file, sections, sorted(ranges[path]), notes))


def page_path(repository: str, path: str) -> PurePosixPath:
    """Where the page of a file lies, relative to the site's root; raises `PathNotFound` as `data_path` does."""
    return PurePosixPath(PAGES, data_path(repository, path, folder=False)).with_suffix(".html")


def page_url(repository: str, path: str, *, start: int | None = None, end: int | None = None) -> str:
    """The address of a page or of lines on it, relative to the site's root."""
    lines = "" if start is None else f"#L{start}" if end in (None, start) else f"#L{start}-L{end}"
    return quote(page_path(repository, path).as_posix()) + lines


def noscript(targets: Iterable[Target], *, up: str, language: str = "zh") -> str:
    """What a page offers a reader without scripts: the source it links to, on this site.

    `up` leads from the page to the site's root (empty, `../`, …). Empty where nothing of it has a page.
    """
    files: dict[tuple[str, str], set[tuple[int, int]]] = defaultdict(set)
    for target in targets:
        if target.kind != "folder" and target.has_text:
            found = files[target.repository, target.path]
            if target.start is not None:
                found.add((target.start, target.end or target.start))
    if not files:
        return ""
    rows = "".join(_offer(*file, sorted(ranges), up=up) for file, ranges in files.items())
    lead = escape(strings(language)["page.noscript"])
    return f'<noscript><section class="sp-noscript"><p>{lead}</p><ul>{rows}</ul></section></noscript>'


def _offer(repository: str, path: str, ranges: Sequence[tuple[int, int]], *, up: str) -> str:
    def link(url: str, text: str) -> str:
        return f'<a href="{escape(up + url)}">{escape(text)}</a>'

    lines = [link(page_url(repository, path, start=a, end=b), f"L{a}" if a == b else f"L{a}-L{b}") for a, b in ranges]
    return f"<li>{link(page_url(repository, path), path)} {' '.join(lines)}</li>"


def write_static_pages(out: Path, pages: Iterable[StaticPage]) -> tuple[PurePosixPath, ...]:
    """Write the pages and their style below `out`, remove those of earlier builds, and name what is there now."""
    kept: list[PurePosixPath] = []
    for page in pages:
        _write_changed(out / page.path, page.html)
        kept.append(page.path)
    if kept:
        _write_changed(out / STYLE, (_ASSETS / "page.css").read_text(encoding="utf-8"))
    for file in (out / PAGES).rglob("*.html"):
        if PurePosixPath(file.relative_to(out).as_posix()) not in kept:
            file.unlink()
    return tuple(kept)


def extend_sitemap(out: Path, paths: Iterable[PurePosixPath], *, site_url: str) -> int:
    """Add pages to the site's `sitemap.xml` (and its `.gz`); returns how many were new.

    A site without address or sitemap has none to extend.
    """
    sitemap = out / "sitemap.xml"
    if not site_url or not sitemap.is_file():
        return 0
    text = sitemap.read_text(encoding="utf-8")
    entries = [f"    <url>\n         <loc>{escape(url)}</loc>\n    </url>\n" for url in _urls(paths, site_url=site_url)]
    new = [entry for entry in entries if entry not in text]
    head, end, rest = text.rpartition("</urlset>")
    if not end or not new:
        return 0
    text = head + "".join(new) + end + rest
    write_atomically(sitemap, text)
    packed = out / "sitemap.xml.gz"
    if packed.is_file():
        packed.write_bytes(gzip.compress(text.encode(), mtime=0))
    return len(new)


def _urls(paths: Iterable[PurePosixPath], *, site_url: str) -> Iterator[str]:
    return (f"{site_url.rstrip('/')}/{quote(path.as_posix())}" for path in paths)


def _woven(
    file: SourceFile, index: FileIndex | None, *, name: str, shown: Collection[str], cache: Path | None
) -> Sequence[str]:
    sections = render_cached(file, cache=cache).sections
    if index is None:
        return sections
    up = "../" * len(page_path(name, file.path).parent.parts)
    links: list[tuple[Occurrence, str]] = []
    for one in index.occurrences:
        target = one.targets[0]
        if one.certainty == "certain" and target.path in shown:
            url = page_url(name, target.path, start=target.line or None)
            href = url.partition("#")[1] + url.partition("#")[2] if target.path == file.path else up + url
            links.append((one, f'href="{escape(href or up + url)}"'))
    return weave(sections, links, size=SECTION)


def _page(
    frame: _Frame,
    file: SourceFile,
    sections: Sequence[str],
    ranges: Sequence[tuple[int, int]],
    notes: Sequence[Mention],
) -> str:
    text, repository = frame.text, frame.repository
    path = page_path(repository.name, file.path)
    up = "../" * len(path.parent.parts)
    commit, short = repository.commit, repository.commit[:8]
    github = f"{repository.url.rstrip('/')}/blob/{commit}/{quote(file.path)}"
    licence = f"{repository.url.rstrip('/')}/blob/{commit}/{quote(repository.license.path)}"
    notice = text["site.licence"].format(holder=repository.license.holder, name=repository.license.name)
    about = text["page.about"].format(path=file.path, name=repository.name, ref=repository.ref, count=file.count)
    canonical = next(_urls([path], site_url=frame.site_url)) if frame.site_url else ""
    head = [
        '<meta charset="utf-8">',
        '<meta name="viewport" content="width=device-width, initial-scale=1">',
        f"<title>{escape(file.path)} · {escape(repository.name)} {escape(repository.ref)}</title>",
        f'<meta name="description" content="{escape(about)}">',
        f'<link rel="canonical" href="{escape(canonical)}">' if canonical else "",
        "" if frame.indexed else '<meta name="robots" content="noindex">',
        f'<link rel="stylesheet" href="{up}{STYLE}">',
    ]
    facts = [
        f'<a href="{escape(github)}">{escape(text["panel.github"])}</a>',
        f"<span>{escape(repository.name)} {escape(repository.ref)} ({short})</span>",
        f"<span>{escape(text['panel.total'].format(count=file.count))}</span>",
        f'<span>{escape(notice)} · <a href="{escape(licence)}">{escape(text["panel.license"])}</a></span>',
    ]
    digits = len(str(file.count))
    return "\n".join(
        [
            "<!doctype html>",
            f'<html lang="{escape(frame.language)}">',
            "<head>",
            *filter(None, head),
            "</head>",
            "<body>",
            f'<header>\n<p><a href="{up}index.html">{escape(text["page.home"])}</a></p>',
            f"<h1>{escape(file.path)}</h1>\n<p class=facts>{' '.join(facts)}</p>",
            f"<p>{escape(text['panel.latin1'])}</p>" if file.encoding == "latin-1" else "",
            "</header>",
            _notes(notes, text=text, up=up),
            _outline(file.symbols.symbols, text=text),
            f'<main>\n<pre class=code style="--digits:{digits}"><code>{_lines(sections, ranges)}</code></pre>\n</main>',
            "</body>",
            "</html>\n",
        ]
    )


def _notes(notes: Sequence[Mention], *, text: Mapping[str, str], up: str) -> str:
    if not notes:
        return ""
    rows = [
        f'<li><a href="{escape(up + m.url)}">{escape(m.page)}</a>: '
        f"{escape(m.before)}<mark>{escape(m.text)}</mark>{escape(m.after)}</li>"
        for m in notes
    ]
    label = escape(text["page.notes"])
    return f'<aside aria-label="{label}">\n<h2>{label}</h2>\n<ul>{"".join(rows)}</ul>\n</aside>'


def _outline(symbols: Sequence[Symbol], *, text: Mapping[str, str]) -> str:
    rows = [f'<li><a href="#L{s.line}">{escape(s.name)}</a></li>' for s in symbols if s.kind in _OUTLINED]
    if not rows:
        return ""
    label = escape(text["page.outline"])
    return (
        f'<nav aria-label="{label}"><details>\n<summary>{label}</summary>\n<ul>{"".join(rows)}</ul>\n</details></nav>'
    )


def _lines(sections: Sequence[str], ranges: Sequence[tuple[int, int]]) -> str:
    """Every line with its id and number; before the first line of a range an element that spans the range."""
    starts: dict[int, list[str]] = defaultdict(list)
    for start, end in ranges:
        starts[start].append(f'<i id="L{start}-L{end}" style="--n:{end - start + 1}"></i>')
    made = []
    for i, section in enumerate(sections):
        for number, line in enumerate(section.split("\n"), i * SECTION + 1):
            made.append("".join(starts.get(number, ())))
            made.append(f'<span class=l id="L{number}"><a class=n href="#L{number}">{number}</a>{line}\n</span>')
    return "".join(made)


def _write_changed(file: Path, text: str) -> None:
    """Write unless the file holds this text already."""
    if not file.is_file() or file.read_bytes() != text.encode():
        write_atomically(file, text)
