"""Where one reference stands in the new tree: the definition it belongs to, then every place it may have gone to."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager

from sourcepanel.drift.candidates import (
    Candidate,
    Pairs,
    file_pairs,
    from_pairs,
    from_text,
    from_votes,
    merge,
    symbol_pairs,
)
from sourcepanel.drift.judge import GONE, Home, Placement, Question, compare, judge, shared
from sourcepanel.drift.linemap import FileMap, History, diff_trees
from sourcepanel.drift.objects import paired
from sourcepanel.drift.tree import SourceFile, Tree
from sourcepanel.snapshot import Snapshot
from sourcepanel.symbols import Symbol


class Relocator:
    """Moves ranges from one tree to another; the line maps come from `diff_trees`, and from `History` in a clone."""

    def __init__(self, old: Tree, new: Tree, maps: dict[str, FileMap], *, history: History | None = None) -> None:
        self.old = old
        self.new = new
        self.maps = maps
        self.history = history
        self._diffs: dict[str, Pairs] = {}
        self._journeys: dict[str, tuple[str | None, Pairs]] = {}
        self._symbols: dict[tuple[str, Symbol, Home], Pairs] = {}
        self._known_homes: dict[tuple[str, Symbol, float], tuple[Home, ...]] = {}

    @classmethod
    @contextmanager
    def between(cls, old: Snapshot, new: Snapshot, *, history: bool = True) -> Iterator[Relocator]:
        """The relocator for two snapshots; `history` uses the commits between them where a clone has them."""
        with paired(old, new) as pair:
            past = History(pair.git, pair.old, pair.new) if history and pair.history else None
            yield cls(Tree(old), Tree(new), diff_trees(pair.git, pair.old, pair.new), history=past)

    def new_path(self, path: str) -> str | None:
        """Where the file is now, by name or by git's rename detection; None where it is gone."""
        here = self.maps.get(path, FileMap(path)).new_path
        return here if here is not None and self.new.has(here) else None

    def relocate(self, path: str, start: int, end: int) -> Placement:
        """Place lines `start`..`end` (1-based, inclusive, inside the file) of `path`."""
        file = self.old.file(path)
        if file is None:
            return GONE
        file_map = self.maps.get(path, FileMap(path))
        whole = _definition(file, start, end)
        if whole and (placed := self._definition(file, file_map.new_path, whole, start, end)):
            return placed
        home = file.table.enclosing(start, end)
        homes = self._homes(file, file_map.new_path, home) if home else ()
        question = Question(file, start, end, home, homes, file_map.new_path)
        return judge(question, self._candidates(question, file_map), old=self.old, new=self.new)

    def _candidates(self, q: Question, file_map: FileMap) -> list[Candidate]:
        found: list[Candidate | None] = []
        if new := self.new.file(q.new_path):
            found.append(from_pairs(q.file, new, self._diff(q.file, file_map), q.start, q.end, method="diff"))
            found += from_text(q.file, new, q.start, q.end)
        for home in q.homes:
            path, there = home
            file = self.new.at(path)
            assert q.home is not None
            found.append(from_pairs(q.file, file, self._symbol(q.file, q.home, home), q.start, q.end, method="symbol"))
            if file is not new:
                found += [c for c in from_text(q.file, file, q.start, q.end) if there.encloses(c.start, c.end)]
        if self.history:
            then, pairs = self._journey(q.file, self.history)
            if file_then := self.new.file(then):
                found.append(from_pairs(q.file, file_then, pairs, q.start, q.end, method="history"))
        places = merge([c for c in found if c])
        if max((q.cover(c) for c in places), default=0.0) < 0.6:
            places = merge(places + from_votes(q.file, self.new, q.start, q.end))
        return places

    def _diff(self, file: SourceFile, file_map: FileMap) -> Pairs:
        if file.path not in self._diffs:
            self._diffs[file.path] = file_pairs(file, file_map)
        return self._diffs[file.path]

    def _journey(self, file: SourceFile, history: History) -> tuple[str | None, Pairs]:
        if file.path not in self._journeys:
            journey = history.file_map(file.path)
            self._journeys[file.path] = (journey.new_path, file_pairs(file, journey))
        return self._journeys[file.path]

    def _symbol(self, file: SourceFile, symbol: Symbol, home: Home) -> Pairs:
        key = (file.path, symbol, home)
        if key not in self._symbols:
            self._symbols[key] = symbol_pairs(file, self.new.at(home.path), symbol, home.symbol)
        return self._symbols[key]

    def _homes(self, old: SourceFile, new_path: str | None, home: Symbol, *, least: float = 0.3) -> tuple[Home, ...]:
        """The definitions that may be the old one, likeliest first; see `_find_homes`."""
        key = (old.path, home, least)
        if key not in self._known_homes:
            self._known_homes[key] = self._find_homes(old, new_path, home, least=least)
        return self._known_homes[key]

    def _find_homes(self, old: SourceFile, new_path: str | None, home: Symbol, *, least: float) -> tuple[Home, ...]:
        """The definitions that may be the old one, likeliest first.

        The same name in the same file, if it kept `least` of its lines: the name may stay on a thin wrapper while the
        body leaves. Else definitions of that name anywhere, and those in which the body's rare lines stand now.
        """
        new = self.new.file(new_path)
        if new and (now := new.table.get(home.name)):
            there = now[min(old.table.get(home.name).index(home), len(now) - 1)]
            if shared(old, home, new, there) >= least:
                return (Home(new.path, there),)
        tail = _tail(home)
        pool = [Home(*place) for name in (tail, f"_{tail}") for place in self.new.definitions(name)]
        pool += [Home(new.path, s) for s in new.table.symbols if s.kind != "variable"] if new else []
        pool += self._body_places(old, home)
        scored = []
        for place in dict.fromkeys(pool):
            share = shared(old, home, self.new.at(place.path), place.symbol)
            if share >= 0.3:
                scored.append((share + 0.1 * (_tail(place.symbol) == tail), place))
        scored.sort(key=lambda item: -item[0])
        return tuple(place for _, place in scored[:3])

    def _body_places(self, old: SourceFile, home: Symbol) -> list[Home]:
        """Definitions of the new tree that hold most of the old body's rare lines."""
        votes: Counter[Home] = Counter()
        for key in dict.fromkeys(old.keys[home.start - 1 : home.end]):
            places = self.new.places.get(key, [])
            for path, line in places if len(places) <= 5 else []:
                if symbol := self.new.at(path).table.enclosing(line, line):
                    votes[Home(path, symbol)] += 1
        return [place for place, count in votes.most_common(3) if count >= 2]

    def _definition(
        self, old: SourceFile, new_path: str | None, whole: Symbol, start: int, end: int
    ) -> Placement | None:
        """A reference to a whole definition, or to its `def` line, follows the qualified name."""
        homes = self._homes(old, new_path, whole) or self._homes(old, new_path, whole, least=0.0)
        if not homes:
            return None
        path, there = homes[0]
        file = self.new.at(path)
        low = there.line if start == whole.line else there.start
        high = low if start == end else there.end
        status = compare(old, start, end, file, low, high)
        alone = len(old.table.get(whole.name)) == len(file.table.get(there.name)) == 1
        stayed = path == new_path and there.name == whole.name
        return Placement(
            status=status,
            path=path,
            start=low,
            end=high,
            method="symbol",
            confidence="certain" if alone and stayed and status in ("same", "cosmetic") else "likely",
            overlap=round(shared(old, whole, file, there), 3),
        )


def _tail(symbol: Symbol) -> str:
    """The last part of the name; a leading underscore does not make another function, dunder names stay."""
    tail = symbol.name.rpartition(".")[2]
    return tail if tail.endswith("__") else tail.lstrip("_")


def _definition(file: SourceFile, start: int, end: int) -> Symbol | None:
    """The class or function that a range stands for: its whole span, or its first or `def` line."""
    for symbol in file.table.symbols:
        if symbol.kind != "variable" and start in (symbol.start, symbol.line) and end in (start, symbol.end):
            return symbol
    return None
