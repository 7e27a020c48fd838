"""What the panel gets of the index: links in the lines, a script per file with what they mean, and all names."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

from sourcepanel.render import SECTION
from sourcepanel.source import Source
from sourcepanel.xref.data import FileLinks
from sourcepanel.xref.model import FileIndex
from sourcepanel.xref.weave import weave

KINDS = ("class", "function", "method", "variable")
"""Kinds that quick open finds; the names script numbers them so. Of variables only those of modules."""


class PanelIndex:
    """The index of one repository, seen from the files that the panel shows."""

    def __init__(self, source: Source, *, index: Mapping[str, FileIndex], shown: Collection[str]) -> None:
        self._source = source
        self._index = index
        self._shown = frozenset(shown)
        self._links: dict[str, FileLinks] = {}

    def woven(self, path: str, sections: Sequence[str]) -> Sequence[str]:
        """The rendered sections of a file with a link around each identifier that leads somewhere."""
        links = self._of(path)
        return weave(sections, links.links, size=SECTION) if links else sections

    def data(self, path: str) -> dict[str, object] | None:
        """What the identifiers of a file mean and who uses what it defines; None for a file without an index.

        As `FileLinks.data`, and `here`: for each of its paths 1 where the panel has that file.
        """
        links = self._of(path)
        if links is None:
            return None
        data = links.data()
        paths = data["paths"]
        assert isinstance(paths, list)
        return {**data, "here": [int(name in self._shown) for name in paths]}

    def names(self) -> dict[str, object]:
        """Every file and every definition of the snapshot, for quick open.

        - `files`: all known paths; `here`: for each 1 where the panel has it.
        - `names`: `[qualified name, kind, file, first line, last line]` with kinds numbered as in `KINDS`.
        """
        files = list(self._source.paths)
        numbers = {path: i for i, path in enumerate(files)}
        names = [
            [d.name, KINDS.index(d.kind), numbers[path], d.start, d.end]
            for path in self._index
            if path in numbers
            for d in self._index[path].definitions
            if d.kind in KINDS and (d.kind != "variable" or "." not in d.name)
        ]
        return {"files": files, "here": [int(path in self._shown) for path in files], "names": names}

    def _of(self, path: str) -> FileLinks | None:
        if path not in self._links and path in self._index and self._index[path].parsed:
            self._links[path] = FileLinks(self._source.repository.name, self._index[path])
        return self._links.get(path)
