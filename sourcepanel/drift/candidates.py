"""Every place a range may have gone to, each with the lines that survived there."""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, replace
from difflib import SequenceMatcher

from sourcepanel.drift.linemap import FileMap, Journey
from sourcepanel.drift.tree import SourceFile, Tree, is_trivial
from sourcepanel.symbols import Symbol

Lines = tuple[str, ...]
Pairs = dict[int, int]
"""Old line → new line, for the lines that are equal up to white space."""

MAPS = frozenset({"diff", "history", "symbol"})
"""Methods that follow lines; the others only find equal text."""

MODIFIED = 0.6
"""Similarity from which two lines count as one line that was edited."""


@dataclass(frozen=True)
class Candidate:
    """A range of the new tree, and which old line became which new one."""

    path: str
    start: int
    end: int
    pairs: tuple[tuple[int, int], ...]
    """Old line → new line for the lines that are equal up to white space, in order."""
    methods: frozenset[str]
    """What led here: `diff`, `history`, `symbol`, `text`, `votes`."""


def similarity(a: str, b: str) -> float:
    """Character ratio of two strings, in [0, 1]."""
    matcher = SequenceMatcher(None, a, b, autojunk=False)
    return matcher.ratio() if matcher.quick_ratio() >= 0.3 else 0.0


def file_pairs(old: SourceFile, file_map: FileMap | Journey) -> Pairs:
    """All lines of a file that a line map keeps."""
    lines = range(1, len(old.lines) + 1)
    return {line: to for line, to in zip(lines, file_map.follow(lines), strict=True) if to is not None}


def symbol_pairs(old: SourceFile, new: SourceFile, home: Symbol, there: Symbol) -> Pairs:
    """The lines that a diff of the old definition against the new one keeps."""
    a, b = old.keys[home.start - 1 : home.end], new.keys[there.start - 1 : there.end]
    return {home.start + i: there.start + j for i, j in sorted(_matches(a, b))}


def from_text(old: SourceFile, new: SourceFile, start: int, end: int) -> list[Candidate]:
    """Every place in the file where the same lines stand, white space aside."""
    block = old.keys[start - 1 : end]
    size = len(block)
    return [
        Candidate(
            new.path,
            at,
            at + size - 1,
            tuple(zip(range(start, end + 1), range(at, at + size), strict=True)),
            frozenset({"text"}),
        )
        for at in new.occurrences(block)
    ]


def from_votes(old: SourceFile, tree: Tree, start: int, end: int, *, most: int = 3) -> list[Candidate]:
    """Anywhere in the tree, where most of the range's rare lines stand."""
    votes: Counter[tuple[str, int]] = Counter()
    for line in range(start, end + 1):
        places = tree.places.get(old.keys[line - 1], [])
        if 0 < len(places) <= 20:
            for path, at in places:
                votes[(path, round((at - line) / 12))] += 1
    found = []
    for (path, bucket), count in votes.most_common(most):
        if count < max(1, (end - start + 1) // 4):
            continue
        new = tree.file(path)
        assert new is not None
        middle = start + bucket * 12
        low, high = max(1, middle - 30), min(len(new.lines), middle + (end - start) + 30)
        matches = sorted(_matches(old.keys[start - 1 : end], new.keys[low - 1 : high]))
        pairs = {start + i: low + j for i, j in matches}
        candidate = from_pairs(old, new, pairs, start, end, method="votes")
        if candidate and (path == old.path or len(candidate.pairs) >= (end - start + 1) / 2):
            found.append(candidate)
    return found


def merge(candidates: list[Candidate]) -> list[Candidate]:
    """One candidate a place; methods that agree are joined, the richer pairs kept."""
    places: dict[tuple[str, int, int], Candidate] = {}
    for candidate in candidates:
        key = (candidate.path, candidate.start, candidate.end)
        if key in places:
            known = places[key]
            best = max(known, candidate, key=lambda c: len(c.pairs))
            candidate = replace(best, methods=known.methods | candidate.methods)
        places[key] = candidate
    return list(places.values())


def _matches(a: Lines, b: Lines) -> Iterator[tuple[int, int]]:
    """Index pairs of equal lines: a patience diff, and where no line is unique the longest match.

    Lines that stand once on either side hold the diff together; brackets and blank lines only fill the gaps.
    """
    gaps = [(0, len(a), 0, len(b))]
    while gaps:
        low, high, there, end = gaps.pop()
        while low < high and there < end and a[low] == b[there]:
            yield low, there
            low, there = low + 1, there + 1
        same_tail = 0
        while low < high - same_tail and there < end - same_tail and a[high - same_tail - 1] == b[end - same_tail - 1]:
            same_tail += 1
        high, end = high - same_tail, end - same_tail
        yield from ((high + i, end + i) for i in range(same_tail))
        if low == high or there == end:
            continue
        if anchors := [(low + i, there + j) for i, j in _unique(a[low:high], b[there:end])]:
            for i, j in anchors:
                gaps.append((low, i, there, j))
                low, there = i, j
            gaps.append((low, high, there, end))
        else:
            for block in SequenceMatcher(None, a[low:high], b[there:end], autojunk=False).get_matching_blocks():
                yield from ((low + block.a + k, there + block.b + k) for k in range(block.size))


def _unique(a: Lines, b: Lines) -> list[tuple[int, int]]:
    """The longest run, ascending on both sides, of lines that stand once in each."""
    counts, others = Counter(a), Counter(b)
    place = {line: j for j, line in enumerate(b)}
    pairs = [(i, place[line]) for i, line in enumerate(a) if counts[line] == 1 == others[line]]
    tops: list[int] = []
    ends: list[int] = []
    before: list[int] = []
    for number, (_, j) in enumerate(pairs):
        rank = bisect_left(tops, j)
        before.append(ends[rank - 1] if rank else -1)
        tops[rank : rank + 1], ends[rank : rank + 1] = [j], [number]
    run: list[tuple[int, int]] = []
    at = ends[-1] if ends else -1
    while at >= 0:
        run.append(pairs[at])
        at = before[at]
    return run[::-1]


def from_pairs(
    old: SourceFile, new: SourceFile, pairs: Pairs, start: int, end: int, *, method: str
) -> Candidate | None:
    """A line map turned into a range: the surviving lines, stretched over edited neighbours at both edges.

    `pairs` reaches past the range: the lines around it bound what its edges may have become.
    """
    inside = [(line, pairs[line]) for line in range(start, end + 1) if line in pairs]
    solid = [pair for pair in inside if not is_trivial(old.lines[pair[0] - 1])]
    if not solid and not all(is_trivial(line) for line in old.lines[start - 1 : end]):
        inside = []
    if not inside:
        return _edited_whole(old, new, pairs, start, end, method)
    # A bracket or blank line far from the solid ones matched by chance.
    if solid:
        inside = [p for p in inside if solid[0][0] - 3 <= p[0] <= solid[-1][0] + 3]
    first, last = inside[0], inside[-1]
    before = max((to for line, to in pairs.items() if line < start and to < first[1]), default=0)
    after = min((to for line, to in pairs.items() if line > end and to > last[1]), default=len(new.lines) + 1)
    low = _stretch(old, new, range(start, first[0]), range(before + 1, first[1])) or first[1]
    high = _stretch(old, new, range(end, last[0], -1), range(after - 1, last[1], -1)) or last[1]
    return Candidate(new.path, low, high, tuple(inside), frozenset({method}))


def _stretch(old: SourceFile, new: SourceFile, lines: range, places: range) -> int | None:
    """The outermost edited form of a lost edge line among the new lines that took its place."""
    places = places[-40:]
    for line in lines:
        if is_trivial(old.lines[line - 1]):
            continue
        ratios = [(similarity(old.keys[line - 1], new.keys[at - 1]), at) for at in places]
        best = max(ratios, default=(0.0, 0), key=lambda pair: pair[0])
        if best[0] >= MODIFIED:
            return best[1]
    return None


def _edited_whole(
    old: SourceFile, new: SourceFile, pairs: Pairs, start: int, end: int, method: str
) -> Candidate | None:
    """No line survived: the edited lines between the surviving neighbours, where they resemble the old ones."""
    before = max((to for line, to in pairs.items() if line < start), default=None)
    after = min((to for line, to in pairs.items() if line > end and (before is None or to > before)), default=None)
    if before is None or after is None or after - before > 60 + 3 * (end - start + 1):
        return None
    places = range(before + 1, after)
    low = _stretch(old, new, range(start, end + 1), places)
    high = _stretch(old, new, range(end, start - 1, -1), range(after - 1, before, -1))
    if low is None or high is None or high < low:
        return None
    return Candidate(new.path, low, high, (), frozenset({method}))
