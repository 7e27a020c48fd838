"""Which labels fit: each gets the least zoom at which it covers no other label and no dot of its rank or a better."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

ZOOMS = (1, 2, 4, 8)
HEIGHT = 14.0
_WIDE, _NARROW = 11.0, 6.2
_CELL = 64.0

Box = tuple[float, float, float, float]


@dataclass(frozen=True, kw_only=True)
class Label:
    """What would like to be read; sizes in the pixels of a screen."""

    id: str
    x: float
    y: float
    """Where its dot stands when nothing is zoomed."""
    radius: float
    text: str
    rank: int = 0
    """It may cover the dots of a greater rank."""


def text_width(text: str) -> float:
    """About how wide a text is in the labels' size."""
    return sum(_WIDE if ord(char) > 0x2E7F else _NARROW for char in text)


def fit(labels: Sequence[Label], *, most: int) -> dict[str, int]:
    """Label → the zoom from which it is shown, in the order of their worth; what never fits is left out.

    Boxes that do not touch never touch when more is zoomed, as the dots move apart and the boxes stay.
    """
    found: dict[str, int] = {}
    for zoom in ZOOMS:
        taken = _Taken()
        for label in labels:
            taken.put(_dot(label, zoom), label.rank)
        for label in labels:
            if label.id in found:
                taken.put(_box(label, zoom))
        for label in labels:
            if len(found) >= most:
                return found
            if label.id not in found and taken.free(_box(label, zoom), label.rank):
                found[label.id] = zoom
                taken.put(_box(label, zoom))
    return found


def overlaps(labels: Iterable[Label], shown: Mapping[str, int], zoom: int) -> int:
    """How many pairs of labels cover each other at a zoom."""
    boxes = [_box(label, zoom) for label in labels if shown.get(label.id, 99) <= zoom]
    return sum(_touch(a, b) for i, a in enumerate(boxes) for b in boxes[:i])


def _dot(label: Label, zoom: int) -> Box:
    x, y, r = label.x * zoom, label.y * zoom, label.radius
    return x - r, y - r, x + r, y + r


def _box(label: Label, zoom: int) -> Box:
    x, y = label.x * zoom + label.radius + 3, label.y * zoom
    return x, y - HEIGHT / 2, x + text_width(label.text), y + HEIGHT / 2


def _touch(a: Box, b: Box) -> bool:
    return a[0] < b[2] and b[0] < a[2] and a[1] < b[3] and b[1] < a[3]


class _Taken:
    """Boxes by the cells that they lie in."""

    def __init__(self) -> None:
        self._cells: dict[tuple[int, int], list[tuple[Box, int]]] = defaultdict(list)

    def put(self, box: Box, rank: int = -1) -> None:
        for cell in self._of(box):
            self._cells[cell].append((box, rank))

    def free(self, box: Box, rank: int) -> bool:
        """Whether it touches nothing of this rank or a better one."""
        there = (entry for cell in self._of(box) for entry in self._cells.get(cell, ()))
        return not any(other <= rank and _touch(box, taken) for taken, other in there)

    @staticmethod
    def _of(box: Box) -> Iterable[tuple[int, int]]:
        left, top, right, bottom = (int(edge // _CELL) for edge in box)
        return ((x, y) for x in range(left, right + 1) for y in range(top, bottom + 1))
