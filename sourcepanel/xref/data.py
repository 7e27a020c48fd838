"""What the panel needs of the index, as JSON: links for the file that is open, and the rest when it is asked for."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property

from sourcepanel.xref.model import USE_KINDS, Definition, FileIndex, Occurrence, Use

Meaning = tuple[Definition, ...]


@dataclass(frozen=True)
class FileLinks:
    """The identifiers of one file as the panel numbers them.

    A *meaning* is what an identifier leads to: one definition, or several that are likely. Many identifiers share
    one, so each link in the HTML carries only its number, and the meanings lie in a script of their own that is
    loaded when the reader first points at an identifier.
    """

    repository: str
    index: FileIndex

    @cached_property
    def meanings(self) -> Mapping[tuple[Meaning, str], int]:
        """(definitions, certainty) → number."""
        found: dict[tuple[Meaning, str], int] = {}
        for occurrence in self.index.occurrences:
            found.setdefault((occurrence.targets, occurrence.certainty), len(found))
        return found

    @property
    def links(self) -> list[tuple[Occurrence, str]]:
        """Each occurrence with the attributes of its element: `data-m`, class `q`, for a likely one `q l`."""
        return [(o, self._attributes(o)) for o in self.index.occurrences]

    def _attributes(self, occurrence: Occurrence) -> str:
        number = self.meanings[occurrence.targets, occurrence.certainty]
        name = "class=q" if occurrence.certainty == "certain" else 'class="q l"'
        return f"{name} data-m={number}"

    def data(self) -> dict[str, object]:
        """What `SourcePanel.index(key, data)` gets.

        - `paths`: every path that the rest speaks of by its number.
        - `definitions`: `[path, name, kind, start, end, signature, doc]` of all that a meaning or an override leads to.
        - `meanings`: `[1 if certain else 0, definition, …]`, numbered as in the HTML.
        - `own`: `[definition, line, column, uses, overridden]` of what this file defines and somebody uses or replaces,
          the file itself first, with `uses` as `[path, [line, kind, 1 if certain else 0, …]]` and the kinds numbered
          as in `model.USE_KINDS`.
        """
        paths, numbers = _Numbers(), _Numbers()
        meanings = [[int(sure == "certain"), *map(numbers, targets)] for targets, sure in self.meanings]
        own = []
        used, replaced = self.index.uses, self.index.overrides
        for definition in (Definition(self.index.path, "", "module"), *self.index.definitions):
            if definition.id in used or definition.id in replaced:
                by = [numbers(d) for d in replaced.get(definition.id, ())]
                uses = _grouped(used.get(definition.id, ()), paths)
                own.append([numbers(definition), definition.line, definition.column, uses, by])
        definitions = [
            [paths(d.path), d.name, d.kind, d.start, d.end, d.signature, d.doc]
            for d in numbers.seen
            if isinstance(d, Definition)
        ]
        return {"paths": paths.seen, "definitions": definitions, "meanings": meanings, "own": own}


class _Numbers:
    """Numbers things in the order in which they come."""

    def __init__(self) -> None:
        self.seen: list[object] = []
        self._known: dict[object, int] = {}

    def __call__(self, thing: object) -> int:
        key: object = thing.id if isinstance(thing, Definition) else thing
        if key not in self._known:
            self._known[key] = len(self.seen)
            self.seen.append(thing)
        return self._known[key]


def _grouped(uses: Iterable[Use], paths: _Numbers) -> list[list[object]]:
    by_path: dict[str, list[int]] = {}
    for use in uses:
        by_path.setdefault(use.path, []).extend((use.line, USE_KINDS.index(use.kind), int(use.certainty == "certain")))
    return [[paths(path), numbers] for path, numbers in by_path.items()]
