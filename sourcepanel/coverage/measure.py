"""How many lines of each file the notes cover.

A line is covered when it lies in a range that a note links to. A definition counts whole, wherever in its head the
link points; of a class only what is not one of its methods or inner classes, which count when a note names them. A
link to a whole file or folder covers nothing: it says where to look, not what is there.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType

from sourcepanel.reference import Target
from sourcepanel.source import Source, SourceFile
from sourcepanel.symbols import Symbol


@dataclass(frozen=True, kw_only=True)
class FileCoverage:
    """One file, counted."""

    repository: str
    path: str
    lines: int
    covered: frozenset[int] = frozenset()
    """The lines, from 1."""
    places: int = 0
    """Different ranges that notes link to."""
    stale: int = 0
    """How many of them say something else at the newer version."""

    @property
    def key(self) -> str:
        """Its address in the panel."""
        return f"{self.repository}/{self.path}"


@dataclass(frozen=True, kw_only=True)
class Sum:
    """Files together."""

    files: int
    touched: int
    """Of them, those with a covered line."""
    lines: int
    covered: int
    places: int
    stale: int

    @classmethod
    def of(cls, files: Iterable[FileCoverage]) -> Sum:
        """Add up."""
        found = list(files)
        return cls(
            files=len(found),
            touched=sum(bool(file.covered) for file in found),
            lines=sum(file.lines for file in found),
            covered=sum(len(file.covered) for file in found),
            places=sum(file.places for file in found),
            stale=sum(file.stale for file in found),
        )


def percent(covered: int, lines: int) -> int:
    """A share for people: 0 and 100 mean none and all, nothing rounds to them."""
    if not covered or not lines:
        return 0
    return 100 if covered == lines else min(99, max(1, round(100 * covered / lines)))


def counted_files(source: Source, *, folders: Sequence[str]) -> tuple[SourceFile, ...]:
    """The files that count: those with lines of text, below one of the folders where any are named."""
    return tuple(
        file
        for path in sorted(source.seen)
        if (not folders or any(path.startswith(f"{folder.rstrip('/')}/") for folder in folders))
        and (file := source.file(path)) is not None
        and file.has_text
        and file.count
    )


def measure(
    source: Source,
    targets: Iterable[Target],
    *,
    folders: Sequence[str] = (),
    stale: Mapping[str, int] = MappingProxyType({}),
) -> tuple[FileCoverage, ...]:
    """Every file that counts, in order of its path; `stale` says by path how many linked ranges changed."""
    name = source.repository.name
    linked: dict[str, dict[str, Target]] = defaultdict(dict)
    for target in targets:
        if target.repository == name and target.start is not None:
            linked[target.path][target.key] = target
    return tuple(
        FileCoverage(
            repository=name,
            path=file.path,
            lines=file.count,
            covered=covered_lines(file, linked[file.path].values()) if file.path in linked else frozenset(),
            places=len(linked.get(file.path, ())),
            stale=stale.get(file.path, 0),
        )
        for file in counted_files(source, folders=folders)
    )


def covered_lines(file: SourceFile, targets: Iterable[Target]) -> frozenset[int]:
    """The lines of this file that its targets cover."""
    found: set[int] = set()
    for target in targets:
        if target.start is None:
            continue
        symbol = definition(file, target)
        start, end = (symbol.start, symbol.end) if symbol else (target.start, target.end or target.start)
        lines = set(range(start, min(end, file.count) + 1))
        if symbol and symbol.kind == "class":
            for inner in file.symbols.symbols:
                if (
                    inner.kind != "variable"
                    and inner.name.startswith(f"{symbol.name}.")
                    and symbol.encloses(inner.start, inner.end)
                ):
                    lines -= set(range(inner.start, inner.end + 1))
        found |= lines
    return frozenset(found)


def definition(file: SourceFile, target: Target) -> Symbol | None:
    """The definition that a target is, where it is one."""
    if target.kind != "definition" or not target.symbol or target.start is None:
        return None
    named = file.symbols.get(target.symbol)
    return next((symbol for symbol in named if symbol.start <= target.start <= symbol.end), None)
