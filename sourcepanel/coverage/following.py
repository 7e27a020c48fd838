"""What to read next: the definitions that the code which notes cover calls most, and that no note covers.

For each function, method and class of the counted files without a covered line of its own, the number of different
functions that call it on a covered line. Only calls that the index is certain of count, and only definitions of
`SHORTEST` lines or more: a helper of a few lines is read on the way. At least half of all that call it must be
covered: what everything calls tells little about what was read.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from sourcepanel.coverage.measure import FileCoverage
from sourcepanel.xref.model import Definition, FileIndex

SHORTEST = 10
"""Lines of a definition that is worth a place in the list."""
MOST = 12


@dataclass(frozen=True)
class Following:
    """A definition that is worth reading next."""

    definition: Definition
    callers: tuple[Definition, ...]
    """Covered definitions that call it, in order of path and line."""


def read_next(
    files: Iterable[FileCoverage], *, index: Mapping[str, FileIndex], most: int = MOST
) -> tuple[Following, ...]:
    """The most called first; of two that are called as much, the longer one."""
    by_path = {file.path: file for file in files}
    found: list[Following] = []
    for path, file in by_path.items():
        known = index.get(path)
        if known is None:
            continue
        for definition in known.definitions:
            if definition.kind not in ("class", "function", "method"):
                continue
            lines = range(definition.start, definition.end + 1)
            if len(lines) < SHORTEST or not file.covered.isdisjoint(lines):
                continue
            calling, covered = _callers(definition, known, by_path=by_path, index=index)
            if covered and 2 * len(covered) >= calling:
                found.append(Following(definition, covered))
    found.sort(key=lambda one: (-len(one.callers), one.definition.start - one.definition.end, one.definition.id))
    return tuple(found[:most])


def _callers(
    definition: Definition,
    known: FileIndex,
    *,
    by_path: Mapping[str, FileCoverage],
    index: Mapping[str, FileIndex],
) -> tuple[int, tuple[Definition, ...]]:
    """How many functions call it, and those of them that do so on a covered line."""
    callers: dict[tuple[str, int], Definition] = {}
    covered: set[tuple[str, int]] = set()
    for use in known.uses.get(definition.id, ()):
        caller = _around(index.get(use.path), use.line)
        if use.kind != "call" or use.certainty != "certain" or caller is None:
            continue
        key = (use.path, caller.start)
        callers[key] = caller
        if use.path in by_path and use.line in by_path[use.path].covered:
            covered.add(key)
    return len(callers), tuple(callers[key] for key in sorted(covered))


def _around(known: FileIndex | None, line: int) -> Definition | None:
    """The innermost function around a line."""
    around = [
        d for d in (known.definitions if known else ())
        if d.kind in ("function", "method") and d.start <= line <= d.end
    ]  # fmt: skip
    return min(around, key=lambda d: d.end - d.start, default=None)
