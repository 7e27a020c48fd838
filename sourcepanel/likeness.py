"""How alike two spellings are, when they differ in one place: the slip of a person's finger.

Orders of magnitude cheaper than a full comparison, which matters where a page and its lock differ all over.
"""

from __future__ import annotations


def likeness(a: str, b: str) -> float:
    """The share of both that their common beginning and common end make up; 1 for equal strings."""
    if a == b:
        return 1.0
    begin = _common(a, b)
    end = _common(a[begin:][::-1], b[begin:][::-1])
    return 2 * (begin + end) / (len(a) + len(b))


def is_slip(a: str, b: str) -> bool:
    """Whether one letter more, fewer or different makes one of the other."""
    return a != b and likeness(a, b) * (len(a) + len(b)) / 2 >= max(len(a), len(b)) - 1


def _common(a: str, b: str) -> int:
    """How long their common beginning is."""
    low, high = 0, min(len(a), len(b))
    while low < high:
        middle = (low + high + 1) // 2
        if a[low:middle] == b[low:middle]:
            low = middle
        else:
            high = middle - 1
    return low
