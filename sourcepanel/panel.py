"""What the built site needs of the source: scripts, style, and one data file per linked file or folder.

Data files are classic scripts that call `SourcePanel.define(key, data)`: a page at `file://` may load those,
but no module and no `fetch()`. Nothing is written outside `<out>/sourcepanel/`.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path, PurePosixPath
from types import MappingProxyType

from sourcepanel.errors import PathNotFound
from sourcepanel.events import LineEvents
from sourcepanel.marks import Marks
from sourcepanel.mentions import Mention
from sourcepanel.panel_assets import FOLDER, call, write_assets, write_changed
from sourcepanel.panelindex import PanelIndex
from sourcepanel.reference import Target
from sourcepanel.render import lexer_for, render_cached
from sourcepanel.source import Source, SourceFile
from sourcepanel.versions_view import Views
from sourcepanel.xref.model import FileIndex
from sourcepanel.xref.reach import Extent, select

_LIKE_DATA = re.compile(r"\.js_*\Z")


@dataclass(frozen=True, kw_only=True)
class PanelReport:
    """What `write_panel` left behind."""

    files: int = 0
    """Source files with text."""
    folders: int = 0
    absent: tuple[str, ...] = ()
    """Keys of linked files that this build has no text of."""
    bytes: int = 0
    """Size of all data files."""
    index: int = 0
    """Size of the scripts that say what identifiers mean; they are loaded when a reader asks."""
    written: int = 0
    """How many of them were new or had changed."""


def write_panel(
    out: Path,
    *,
    sources: Sequence[Source],
    targets: Iterable[Target],
    cache: Path | None,
    language: str = "zh",
    mentions: Iterable[Mention] = (),
    events: Mapping[tuple[str, str], Sequence[LineEvents]] = MappingProxyType({}),
    indexes: Mapping[str, Mapping[str, FileIndex]] = MappingProxyType({}),
    extent: Extent = "linked",
    sections: Mapping[str, Mapping[str, str]] = MappingProxyType({}),
    versions: Views = MappingProxyType({}),
    also: Mapping[str, Collection[str]] = MappingProxyType({}),
) -> PanelReport:
    """Write all that the panel loads under `out`, the built site; files that are right already stay untouched.

    Every target's file gets a data file, and so does every folder above one. Data files of an earlier build that
    no target needs are removed. `mentions` and `events` stand with the file whose lines they are about; `indexes`
    (by repository) make links of identifiers, and `extent` says which files come besides the linked ones.
    `sections` holds for each page (its address) what a preview shows of its sections,
    `versions` what is other at which version, `also` by repository more files that the panel has.
    """
    marks = Marks(mentions, events)
    by_path: dict[str, dict[str, list[Target]]] = defaultdict(lambda: defaultdict(list))
    for target in targets:
        by_path[target.repository][target.path].append(target)
    root = out / FOLDER
    report = PanelReport()
    kept: set[Path] = set()
    names: dict[str, object] = {}
    for source in sources:
        name = source.repository.name
        index = indexes.get(name, {})
        linked = _extended(by_path.get(name, {}), extent, source=source, index=index, also=also.get(name, ()))
        shown = PanelIndex(source, index=index, shown=linked)
        names[name] = shown.names()
        for path, data in _views(source, linked, cache=cache, marks=marks, index=shown):
            place = data_path(name, path, folder=data["kind"] == "folder")
            if there := versions.get((name, path)):
                data["versions"] = {commit: list(ranges) for commit, ranges in there.items()}
                for commit, ranges in there.items():
                    file = root / "versions" / commit / place
                    write_changed(file, call("version", commit, f"{name}/{path}", ranges))
                    kept.add(file)
            text = call("define", f"{name}/{path}", data)
            written = write_changed(root / "src" / place, text)
            kept.add(root / "src" / place)
            report = _count(report, data, key=f"{name}/{path}", size=len(text.encode()), new=written)
            if (meanings := shown.data(path)) is not None:
                text = call("index", f"{name}/{path}", meanings)
                write_changed(root / "xref" / place, text)
                kept.add(root / "xref" / place)
                report = replace(report, index=report.index + len(text.encode()))
    for url, found in sections.items():
        file = root / "notes" / _page_path(url)
        write_changed(file, call("sections", url or "index.html", found))
        kept.add(file)
    # The folder of no repository starts with a tilde.
    everything = root / "xref" / "~.js"
    write_changed(everything, call("names", names))
    _prune(root, kept | {everything})
    write_assets(out, repositories=[source.repository for source in sources], language=language)
    return report


def data_path(repository: str, path: str, *, folder: bool) -> PurePosixPath:
    """Where the data of a file or folder lies below `sourcepanel/src/`; the script computes the same.

    A segment that starts with a dot gets a `~` before it (static hosts leave dot files out), and so does one
    that starts with `~`, which leaves `~.js` free for the listing of a folder. A folder whose name ends in `.js`
    gets a `_` behind it, and so does one that would look like that: the data of a file beside it may have its name.
    Raises `PathNotFound` for a path that would leave the folder.
    """
    parts = [repository, *path.rstrip("/").split("/")] if path else [repository]
    if any(part in ("", ".", "..") or set(part) & set("/\\\0") for part in parts):
        raise PathNotFound(f"{repository}/{path}")
    safe = ["~" + part if part[0] in ".~" else part for part in parts]
    *folders, last = [*safe, "~"] if folder else safe
    return PurePosixPath(*(part + "_" if _LIKE_DATA.search(part) else part for part in folders), last + ".js")


def _page_path(url: str) -> PurePosixPath:
    """Where the sections of a page lie below `sourcepanel/notes/`; the script computes the same."""
    return PurePosixPath(f"{url or 'index.html'}{'index.html' if url.endswith('/') else ''}.js")


def _views(
    source: Source,
    linked: Mapping[str, Sequence[Target]],
    *,
    cache: Path | None,
    marks: Marks,
    index: PanelIndex,
) -> Iterator[tuple[str, dict[str, object]]]:
    """(path, data) of everything that opens in the panel; a folder's path ends in a slash, the root's is empty."""
    files = {path: targets for path, targets in linked.items() if targets[0].kind != "folder"}
    folders = {path.rstrip("/") for path in linked if path not in files}
    for path in linked:
        folders |= {"" if str(parent) == "." else str(parent) for parent in PurePosixPath(path).parents}
    for path, targets in sorted(files.items()):
        file = source.file(path) if targets[0].has_text else None
        data = _file_view(file, targets, count=_locked_lines(source, path), cache=cache, index=index)
        yield path, data | marks.of(source.repository.name, path)
    listing = _listing(source.paths)
    for folder in sorted(folders):
        prefix = f"{folder}/" if folder else ""
        entries = [
            [name, is_folder, prefix + name in (folders if is_folder else files)]
            for name, is_folder in sorted(listing.get(folder, ()), key=lambda entry: (not entry[1], entry[0].lower()))
        ]
        yield prefix, {"kind": "folder", "complete": source.snapshot.complete, "entries": entries}


def _extended(
    linked: Mapping[str, Sequence[Target]],
    extent: Extent,
    *,
    source: Source,
    index: Mapping[str, FileIndex],
    also: Collection[str],
) -> dict[str, Sequence[Target]]:
    """The linked files and folders, and the files that the extent adds and others ask for."""
    files = [path for path, targets in linked.items() if targets[0].kind != "folder"]
    more = sorted({*select(extent, source=source, linked=files, index=index).paths, *also})
    return {**linked, **{path: [_whole(source, path)] for path in more if path not in linked}}


def _whole(source: Source, path: str) -> Target:
    """A file that no note links to."""
    file, name = source.file(path), source.repository.name
    assert file is not None
    return Target(
        repository=name, path=path, kind="file", start=None, end=None, symbol=None,
        blob=file.blob, has_text=file.has_text, href="",
    )  # fmt: skip


def _file_view(
    file: SourceFile | None, targets: Sequence[Target], *, count: int, cache: Path | None, index: PanelIndex
) -> dict[str, object]:
    if file is None or file.encoding == "absent":
        links = sorted({(t.start or 0, t.end or 0, t.symbol or "", t.kind) for t in targets if t.start})
        return {"kind": "absent", "blob": targets[0].blob, "lines": count, "links": links}
    if file.encoding == "binary":
        return {"kind": "binary", "blob": file.blob}
    rendered = render_cached(file, cache=cache)
    notice = "latin1" if file.encoding == "latin-1" else ""
    if not rendered.language and lexer_for(file.path) is not None:
        notice = "plain"
    return {
        "kind": "file",
        "blob": file.blob,
        "lines": file.count,
        "notice": notice if file.count else "empty",
        "language": rendered.language,
        "columns": rendered.columns,
        "symbols": rendered.symbols,
        "sections": index.woven(file.path, rendered.sections),
    }


def _locked_lines(source: Source, path: str) -> int:
    return source.locked.files[path].lines if source.locked and path in source.locked.files else 0


def _listing(paths: Iterable[str]) -> dict[str, set[tuple[str, bool]]]:
    """For each folder its entries, each with whether it is a folder."""
    found: dict[str, set[tuple[str, bool]]] = defaultdict(set)
    for path in paths:
        parts = path.split("/")
        for i in range(len(parts)):
            found["/".join(parts[:i])].add((parts[i], i < len(parts) - 1))
    return found


def _prune(root: Path, kept: set[Path]) -> None:
    """Remove the data files of an earlier build."""
    for folder in ("src", "xref", "notes", "versions"):
        for file in (root / folder).rglob("*.js"):
            if file not in kept:
                file.unlink()


def _count(report: PanelReport, data: Mapping[str, object], *, key: str, size: int, new: bool) -> PanelReport:
    kind = data["kind"]
    return replace(
        report,
        files=report.files + (kind in ("file", "binary")),
        folders=report.folders + (kind == "folder"),
        absent=(*report.absent, key) if kind == "absent" else report.absent,
        bytes=report.bytes + size,
        written=report.written + new,
    )
