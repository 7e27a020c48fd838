"""Builds the index of a whole snapshot."""

from __future__ import annotations

import ast
import warnings
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping

from sourcepanel.source import Source, SourceFile
from sourcepanel.xref.builder import read_scopes
from sourcepanel.xref.links import Linker
from sourcepanel.xref.model import FileIndex, Id, Use
from sourcepanel.xref.modules import Modules
from sourcepanel.xref.scopes import FileScopes


def python_files(source: Source) -> dict[str, SourceFile]:
    """All Python files of the snapshot that have text; raises `PinMismatch` for one that is not the pin's."""
    found = {path: source.file(path) for path in sorted(source.seen) if path.endswith(".py")}
    return {path: file for path, file in found.items() if file is not None and file.has_text}


def open_linker(files: Mapping[str, SourceFile]) -> Linker:
    """What links the identifiers of these files."""
    return Linker(Modules({path: _read(file) for path, file in files.items()}), files)


def _read(file: SourceFile) -> FileScopes | None:
    """Scopes of a file; None where Python cannot parse it."""
    # As for its symbols: Python also ends a line at a lone \r, and refuses a byte order mark.
    text = file.text.replace("\r", " ").removeprefix("\ufeff") + "\n"
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", SyntaxWarning)
            tree = ast.parse(text)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None
    try:
        return read_scopes(file.path, tree, lines=text.split("\n"))
    except RecursionError:
        # Deeper than this walk can follow; Python's own limit is not far behind.
        return None


def build_index(files: Mapping[str, SourceFile]) -> Iterator[FileIndex]:
    """The index of each file, in order of their paths; they are read together, for they speak of each other."""
    linker = open_linker(files)
    parsed: dict[str, FileIndex] = {}
    uses: dict[Id, list[Use]] = defaultdict(list)
    for path in sorted(files):
        linked = list(linker.link(path))
        occurrences = tuple(o for entry in linked if (o := entry.occurrence))
        for occurrence in occurrences:
            for target in occurrence.targets:
                uses[target.id].append(Use(path, occurrence.line, occurrence.kind, occurrence.certainty))
        parsed[path] = FileIndex(
            path,
            tuple(linker.definitions(path)),
            occurrences,
            overrides=linker.overrides(path),
            counts=Counter(entry.status for entry in linked),
            parsed=linker.parsed(path),
        )
    by_path: dict[str, dict[Id, tuple[Use, ...]]] = defaultdict(dict)
    for id_, used in uses.items():
        by_path[id_[0]][id_] = tuple(used)
    for path, index in parsed.items():
        yield FileIndex(
            path, index.definitions, index.occurrences, by_path[path], index.overrides, index.counts, index.parsed
        )
