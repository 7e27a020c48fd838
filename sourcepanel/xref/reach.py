"""How much of the source a site carries: the linked files, what they lead to, or everything."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Literal

from sourcepanel.source import Source
from sourcepanel.xref.model import Definition, FileIndex

Extent = Literal["linked", "reachable", "everything"]
"""`linked`: the files that notes refer to. `reachable`: also those where something is defined that a linked file
names, so that the first step away from a note stays in the panel. `everything`: all files that have text."""


@dataclass(frozen=True)
class Selection:
    """The files a site carries, and what that costs."""

    extent: Extent
    paths: tuple[str, ...]
    """Sorted."""
    lines: int
    bytes: int
    """Of their text, before it is rendered."""


def select(extent: Extent, *, source: Source, linked: Iterable[str], index: Mapping[str, FileIndex]) -> Selection:
    """The files to render for these linked ones. Linked files stay even where this build has no text of them."""
    chosen = set(linked)
    if extent == "reachable":
        chosen |= {target.path for path in sorted(chosen) for target in _targets(index.get(path))}
    elif extent == "everything":
        chosen |= {path for path in source.seen if (file := source.file(path)) is not None and file.has_text}
    files = [file for path in sorted(chosen) if (file := source.file(path)) is not None]
    return Selection(
        extent,
        tuple(sorted(chosen)),
        sum(file.count for file in files),
        sum(len(file.text.encode()) for file in files),
    )


def _targets(index: FileIndex | None) -> Iterable[Definition]:
    """What its identifiers lead to, without the files that its imports merely go through."""
    targets = {target for occurrence in index.occurrences for target in occurrence.targets} if index else ()
    return {target for target in targets if target.kind != "module"}
