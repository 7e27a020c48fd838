"""Old and new lines side by side, equal stretches folded."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher
from typing import Literal

Kind = Literal["equal", "changed", "removed", "added", "folded"]


@dataclass(frozen=True)
class Row:
    """One line of the comparison; the empty side has no number. A `folded` row stands for lines left out."""

    kind: Kind
    old_number: int | None = None
    old: str = ""
    new_number: int | None = None
    new: str = ""


def side_by_side(
    old: Sequence[str], new: Sequence[str], *, old_start: int = 1, new_start: int = 1, context: int = 3
) -> tuple[Row, ...]:
    """Compare line by line, indentation aside; unchanged lines farther than `context` from a change are folded."""
    rows: list[Row] = []
    matcher = SequenceMatcher(None, [line.strip() for line in old], [line.strip() for line in new], autojunk=False)
    for tag, a, b, c, d in matcher.get_opcodes():
        height = max(b - a, d - c)
        for i in range(height):
            left, right = (a + i if a + i < b else None), (c + i if c + i < d else None)
            kind: Kind = "equal" if tag == "equal" else "added" if left is None else "changed"
            rows.append(
                Row(
                    "removed" if right is None else kind,
                    None if left is None else old_start + left,
                    "" if left is None else old[left],
                    None if right is None else new_start + right,
                    "" if right is None else new[right],
                )
            )
    return tuple(_fold(rows, context))


def _fold(rows: list[Row], context: int) -> list[Row]:
    changed = [number for number, row in enumerate(rows) if row.kind != "equal"]
    near = {n for number in changed for n in range(number - context, number + context + 1)}
    kept: list[Row] = []
    for number, row in enumerate(rows):
        if number in near:
            kept.append(row)
        elif not kept or kept[-1].kind != "folded":
            kept.append(Row("folded"))
    return kept
