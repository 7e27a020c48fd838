"""Which candidate it is, whether its text is the old text, and how sure that is.

What the words for that are worth was measured on 311 hard cases of Megatron's history, by `bench/drift.py`; with the
commits between and without them alike:

- *certain*, 157 of 157 right: the text is the same up to layout, a line map led there, and no twin can be meant. On
  3,827 random ranges of other files whose lines all survive, commit by commit, every answer was the exact place,
  and all but 6 were called the same.
- *likely*, 116 of 118 right: a changed text of which at least 60 % of the lines stand there; a definition that changed
  or left its file; a line or two of one that left it in part; or nothing at all.
- *unsure*, 35 of 36 right: less of the text stands there, or all of it, where a twin of it may stand.

Right means kind and place, or a kind that the case lets count. Random ranges are easier: links are mostly between.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, NamedTuple

from sourcepanel.drift.candidates import MAPS, MODIFIED, Candidate, similarity
from sourcepanel.drift.tree import SourceFile, Tree, is_trivial
from sourcepanel.symbols import Symbol

Status = Literal["same", "cosmetic", "changed", "gone"]
Confidence = Literal["certain", "likely", "unsure"]


@dataclass(frozen=True, kw_only=True)
class Placement:
    """The answer for one range."""

    status: Status
    """`same`: equal up to indentation; `cosmetic`: equal up to formatting; `gone`: nothing of it is left."""
    path: str | None
    start: int | None
    end: int | None
    confidence: Confidence
    """`certain`: may be rewritten unseen; `likely`: a proposal; `unsure`: a person must look."""
    method: str
    overlap: float
    """Share of the old lines that still stand at the new place."""


GONE = Placement(status="gone", path=None, start=None, end=None, confidence="likely", method="none", overlap=0.0)


class Home(NamedTuple):
    """A definition of the new tree."""

    path: str
    symbol: Symbol


@dataclass(frozen=True)
class Question:
    """A range of the old tree, with what is known of its surroundings on both sides."""

    file: SourceFile
    start: int
    end: int
    home: Symbol | None
    """The innermost definition around it."""
    homes: tuple[Home, ...]
    """What may be that definition now, likeliest first."""
    new_path: str | None
    """Where git says the file is now; None when it is gone."""

    @property
    def block(self) -> tuple[str, ...]:
        """The lines without white space."""
        return self.file.keys[self.start - 1 : self.end]

    @property
    def solid(self) -> int:
        """How many lines say something."""
        return sum(not is_trivial(line) for line in self.file.lines[self.start - 1 : self.end])

    def cover(self, candidate: Candidate) -> float:
        """Share of the non-trivial lines that survive at the candidate."""
        lines = range(self.start, self.end + 1)
        solid = {n for n in lines if not is_trivial(self.file.lines[n - 1])} or set(lines)
        return sum(line in solid for line, _ in candidate.pairs) / len(solid)


def judge(question: Question, candidates: list[Candidate], *, old: Tree, new: Tree) -> Placement:
    """The best candidate as a placement; `same` is said only of text that is no twin of the old one."""
    if not candidates:
        return GONE
    best = max(candidates, key=lambda c: _score(question, c, new.at(c.path)))
    there = new.at(best.path)
    cover = question.cover(best)
    status = compare(question.file, question.start, question.end, there, best.start, best.end)
    confidence: Confidence = "certain" if best.methods & MAPS and _followed(question, best, there) else "likely"
    if status == "same" and not _is_it(question, best, there, old=old, new=new):
        status, confidence = "changed", "unsure"
    elif status == "changed":
        if best.pairs and cover < 0.1 and best.path != question.file.path:
            return GONE
        confidence = "likely" if cover >= 0.6 else "unsure"
    return Placement(
        status=status,
        path=best.path,
        start=best.start,
        end=best.end,
        confidence=confidence,
        method="+".join(sorted(best.methods)),
        overlap=round(cover, 3),
    )


def compare(old: SourceFile, start: int, end: int, new: SourceFile, low: int, high: int) -> Status:
    """`same`, `cosmetic` or `changed`, by the text alone."""
    before, now = old.lines[start - 1 : end], new.lines[low - 1 : high]
    if [line.strip() for line in before] == [line.strip() for line in now]:
        return "same"
    keys, kept = old.keys[start - 1 : end], new.keys[low - 1 : high]
    if keys == kept:
        return "cosmetic"
    tokens = old.tokens(start, end)
    # Where not half of the lines survived literally, a person should look even at equal tokens.
    half = 2 * sum(key in kept for key in keys) >= len(keys)
    return "cosmetic" if tokens and half and tokens == new.tokens(low, high) else "changed"


def shared(old: SourceFile, a: Symbol, new: SourceFile, b: Symbol) -> float:
    """Share of the old definition's non-trivial lines that stand in the new one."""
    keys = [old.keys[n - 1] for n in range(a.start, a.end + 1) if not is_trivial(old.lines[n - 1])]
    there = set(new.keys[b.start - 1 : b.end])
    return sum(key in there for key in keys) / len(keys) if keys else 0.0


def _score(q: Question, c: Candidate, there: SourceFile) -> float:
    text = there.keys[c.start - 1 : c.end]
    verbatim = q.block == text
    at_home = bool(q.homes) and q.homes[0].path == c.path and q.homes[0].symbol.encloses(c.start, c.end)
    return (
        0.5 * q.cover(c)
        + 0.5 * similarity("\n".join(q.block)[:4000], "\n".join(text)[:4000])
        + 0.5 * _context(q, c, there)
        + 0.25 * at_home
        + 0.15 * (c.path == q.file.path)
        + 0.1 * verbatim
        + 0.3 * (verbatim and "diff" in c.methods)
    )


def _followed(q: Question, c: Candidate, there: SourceFile) -> bool:
    """Whether more than a line or two that occurs there leads to another file."""
    if c.methods & {"diff", "history"} or c.path == q.new_path or q.solid >= 3 or q.home is None:
        return True
    return q.homes[0].path == c.path and shared(q.file, q.home, there, q.homes[0].symbol) >= MODIFIED


def _context(q: Question, c: Candidate, there: SourceFile, *, size: int = 8) -> float:
    """How alike the lines around the two places are."""
    before = [k for k in q.file.keys[max(0, q.start - 1 - size) : q.start - 1] + q.file.keys[q.end : q.end + size] if k]
    now = set(there.keys[max(0, c.start - 1 - size) : c.start - 1] + there.keys[c.end : c.end + size])
    return sum(key in now for key in before) / len(before) if before else 1.0


def _is_it(q: Question, c: Candidate, there: SourceFile, *, old: Tree, new: Tree) -> bool:
    """Whether equal text at this place is this text, and not a twin that stood or appeared elsewhere."""
    before, now = q.file.occurrences(q.block), there.occurrences(q.block)
    if len(before) > 1:
        agree = len(c.methods & MAPS) > 1
        ranked = len(before) == len(now) and before.index(q.start) == now.index(c.start)
        # Outside every definition there is no second line diff to agree with: the lines around must.
        outside = q.home is None and "diff" in c.methods and _context(q, c, there) >= 0.75
        if not (agree or ranked or outside or _same_rank(q, c, before, now)):
            return False
    if q.solid < 3 and not c.methods & MAPS:
        return False
    if c.path == q.new_path:
        return True
    stood = old.file(c.path)
    if stood and stood.occurrences(q.block):
        return False
    home_file = new.file(q.new_path)
    stayed = home_file.table.get(q.home.name) if home_file and q.home else ()
    return not any(shared(q.file, q.home, home_file, s) >= 0.5 for s in stayed if home_file and q.home)


def _same_rank(q: Question, c: Candidate, before: list[int], now: list[int]) -> bool:
    """Whether, within the definition that moved, this is the same one of equally many twins."""
    if q.home is None or "symbol" not in c.methods or q.homes[0].path != c.path:
        return False
    mine = [n for n in before if q.home.start <= n <= q.home.end]
    theirs = [n for n in now if q.homes[0].symbol.start <= n <= q.homes[0].symbol.end]
    return len(mine) == len(theirs) and c.start in theirs and mine.index(q.start) == theirs.index(c.start)
