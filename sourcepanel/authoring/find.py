"""What an author means by a few words: a symbol, a path, lines, a link, as references to the pin."""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterator
from dataclasses import replace

from sourcepanel.config import Repository
from sourcepanel.drift.tree import SourceFile as TreeFile
from sourcepanel.drift.tree import Tree
from sourcepanel.errors import PathNotFound, SymbolNotFound
from sourcepanel.project import Project
from sourcepanel.reference import SourceRef, format_link, parse_code, parse_link
from sourcepanel.source import Source
from sourcepanel.symbols import Symbol

_LINES = re.compile(r"(?P<path>.+?)(?::|#L)(?P<start>\d+)(?:-L?(?P<end>\d+))?")
_NAME = re.compile(r"[A-Za-z_]\w*(?:\.[A-Za-z_]\w*)*")
_MOST = 12
"""Definitions that an ambiguous name lists."""


def find(project: Project, words: str) -> SourceRef:
    """The one place that is meant; raises `SymbolNotFound` or `PathNotFound` listing what it may have been.

    Understood: a link into a pinned repository, `path::symbol`, `path:10`, `path:10-20`, `path#L10-L20`, a path, and
    the name of a class, function or variable anywhere in the pin, qualified as far as it must be.
    """
    words = words.strip().strip("`")
    repositories = project.config.repositories
    parsed = parse_link(words, repositories) or parse_code(words, repositories)
    if isinstance(parsed, SourceRef):
        return parsed
    if parsed is not None:
        raise PathNotFound(words, where=f"at the pin: {getattr(parsed, 'reason', 'it names another version')}")
    hit = _LINES.fullmatch(words)
    path = hit["path"] if hit else words
    for name, source in project.sources.items():
        if source.has(path.rstrip("/")):
            folder = path.rstrip("/") in source.folders
            ref = SourceRef(repository=name, path=path.rstrip("/"), folder=folder)
            return replace(ref, start=int(hit["start"]), end=int(hit["end"] or hit["start"])) if hit else ref
    if hit or "/" in words:
        near = tuple(dict.fromkeys(near for source in project.sources.values() for near in source.nearest(path)))
        raise PathNotFound(path, suggestions=near[:3])
    return _by_name(project, words.removesuffix("()"))


def markdown_link(ref: SourceRef, repository: Repository, *, text: str, lines: tuple[int, int] | None) -> str:
    """The Markdown link at the pin's tag, as people write it."""
    place = ref if lines is None else replace(ref, symbol=None, start=lines[0], end=lines[1])
    address = format_link(place, repository.model_copy(update={"commit": repository.ref}))
    return f"[{text}]({address})"


def _by_name(project: Project, name: str) -> SourceRef:
    if not _NAME.fullmatch(name):
        raise SymbolNotFound(f"{name!r} is no link, no path of the pin and no name")
    found = [
        SourceRef(repository=source.repository.name, path=file, symbol=symbol.name)
        for source in project.sources.values()
        for file, symbol in definitions(source, name)
    ]
    exact = [ref for ref in found if ref.symbol == name]
    if len(exact) == 1 or len(found) == 1:
        return (exact or found)[0]
    if found:
        listed = "".join(f"\n  - {ref.key}" for ref in found[:_MOST])
        more = f"\n  … and {len(found) - _MOST} more" if len(found) > _MOST else ""
        raise SymbolNotFound(f"{len(found)} definitions are named {name}; say which:{listed}{more}")
    last = name.rpartition(".")[2]
    others = [f"{file}::{s.name}" for source in project.sources.values() for file, s in definitions(source, last)]
    near = difflib.get_close_matches(name, others, n=3, cutoff=0.0)
    fix = f"did you mean {' or '.join(near)}?" if near else "name the file (`path::symbol`) to be told what is near"
    raise SymbolNotFound(f"nothing at the pin is named {name}; {fix}")


def definitions(source: Source, name: str) -> Iterator[tuple[str, Symbol]]:
    """Classes, functions and variables of this name, or of one that ends in it; tests are left out."""
    tree = Tree(source.snapshot)
    last = name.rpartition(".")[2]
    assigned = re.compile(rf"(?m)^[^#=\n]*\b{re.escape(last)}\b[^#=\n]*=(?!=)")
    for path, symbol in tree.definitions(last):
        if f".{symbol.name}".endswith(f".{name}"):
            yield path, symbol
    for file in tree.code:
        if assigned.search(_text(file)):
            yield from ((file.path, s) for s in file.table.named(name) if s.kind == "variable")


def _text(file: TreeFile) -> str:
    return "\n".join(file.lines)
