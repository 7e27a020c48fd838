"""Whether the text of a link fits the lines it points at.

A link whose line numbers drifted still works, and silently shows other code; the name in its text
is what gives it away.
"""

from __future__ import annotations

import re
from pathlib import PurePosixPath

from sourcepanel.lock import spell
from sourcepanel.reference import Target
from sourcepanel.source import SourceFile
from sourcepanel.symbols import Symbol


def misfit(name: str, *, target: Target, file: SourceFile) -> tuple[str, str] | None:
    """What is wrong with a text that calls this target `name`, and the nearest right answer; None if it fits.

    It fits when it is the file's own name, or when its last part (1) is a symbol that encloses the
    range or is the target, or (2) occurs as a word in the range (as it does on its def line); and when
    each part before the last occurs in the file, too (`Optimizer.step`: so does `Optimizer`).
    """
    *heads, tail = name.removesuffix("()").split(".")
    if _is_path(name, file.path):
        return None
    start, end = target.start or 1, target.end or file.count
    defined = file.symbols.named(tail)
    place = "the file" if target.start is None else spell(start, end)
    if not any(symbol.encloses(start, end) or symbol.name == target.symbol for symbol in defined):
        words = {word for line in file.span(start, end) for word in re.findall(r"\w+", line)}
        if tail not in words:
            return _elsewhere(name, tail, defined=defined, place=place, file=file)
    known = file.words | set(re.split(r"[/.]", file.path))
    for head in heads:
        if head not in known:
            near = file.symbols.nearest(head, n=1)
            return f"the text names {name}, but {head} does not occur in {file.path}", _mean(near)
    return None


def listed(symbols: tuple[Symbol, ...], *, most: int = 4) -> str:
    """Symbols with their lines, for a message."""
    shown = ", ".join(f"{s.name} ({spell(s.start, s.end)})" for s in symbols[:most])
    return shown + (f" and {len(symbols) - most} more" if len(symbols) > most else "")


def _elsewhere(name: str, tail: str, *, defined: tuple[Symbol, ...], place: str, file: SourceFile) -> tuple[str, str]:
    wrong = f"the text names {name}, which {place} neither belongs to nor mentions"
    if defined:
        return wrong, " and ".join(f"{s.name} is at {spell(s.start, s.end)}" for s in defined[:3])
    used = [number for number, line in enumerate(file.lines, 1) if re.search(rf"\b{re.escape(tail)}\b", line)]
    if used:
        return wrong, f"{tail} occurs at " + ", ".join(f"L{number}" for number in used[:5])
    return wrong, _mean(file.symbols.nearest(name))


def _mean(names: tuple[str, ...]) -> str:
    return f"did you mean {' or '.join(names)}?" if names else ""


def _is_path(name: str, path: str) -> bool:
    """Whether the name is the end of the path as a file (`training.py`) or module (`training.training`)."""
    spellings = {path, path.removesuffix(PurePosixPath(path).suffix), path.removesuffix("/__init__.py")}
    return any(f".{spelling}".replace("/", ".").endswith(f".{name.replace('/', '.')}") for spelling in spellings)
