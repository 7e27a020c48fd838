"""The parts of a communication record that a run's numbers decide: shapes, counts, and which ranks."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Self

from pydantic import BeforeValidator

from sourcepanel.notes.arithmetic import CannotCompute, evaluate
from sourcepanel.notes.fenced_yaml import one_text
from sourcepanel.traces import Shape, Trace

ANY = "*"
"""A size that only the run knows."""
NONE = "none"


@dataclass(frozen=True)
class Symbols:
    """One tensor's shape in symbols."""

    sizes: tuple[str, ...]

    def __str__(self) -> str:
        return f"[{', '.join(self.sizes)}]"

    @classmethod
    def parse(cls, text: str) -> Self:
        """`[s/tp, b, h]`; raises `ValueError`."""
        inner = text.strip()
        if not (inner.startswith("[") and inner.endswith("]")):
            raise ValueError(
                f'holds `{text}`; a shape is written "[s, b, h]", several as a list of such, nothing as none'
            )
        sizes = [size.strip() for size in inner[1:-1].split(",")] if inner[1:-1].strip() else []
        if "" in sizes:
            raise ValueError(f"holds `{text}`, in which a size is missing")
        return cls(tuple(sizes))

    def values(self, names: Mapping[str, int]) -> tuple[int | None, ...]:
        """Its sizes, None for any; raises `CannotCompute`."""
        return tuple(None if size == ANY else evaluate(size, names) for size in self.sizes)


def _shapes(value: object) -> tuple[Symbols, ...]:
    if value == NONE:
        return ()
    if isinstance(value, str):
        return (Symbols.parse(value),)
    if not isinstance(value, list):
        raise ValueError(f'must be a shape like "[s, b, h]", a list of them, or {NONE}, not {value!r}')
    if any(isinstance(entry, list) or str(entry).strip().startswith("[") for entry in value):
        return tuple(shape for entry in value for shape in _shapes(entry))
    # Without quotes YAML has read the shape itself as a list.
    return (Symbols(tuple(one_text(entry) for entry in value)),)


Shapes = Annotated[tuple[Symbols, ...], BeforeValidator(_shapes)]


def fits(shapes: Sequence[Shape], values: Sequence[tuple[int | None, ...]]) -> bool:
    """Whether these are the shapes that were claimed."""
    return len(shapes) == len(values) and all(
        len(shape) == len(value) and all(v is None or s == v for s, v in zip(shape, value, strict=True))
        for shape, value in zip(shapes, values, strict=True)
    )


_AXIS = re.compile(r"\s*([a-z]+)\s*=\s*([^,=]+?)\s*")


@dataclass(frozen=True)
class Ranks:
    """Some ranks of a run."""

    text: str
    """`all`, or coordinates as written; a list of ranks as text."""
    listed: frozenset[int] | None = None
    axes: tuple[tuple[str, str], ...] = ()
    """Axis and the arithmetic of its coordinate; ranks must meet all."""

    @classmethod
    def parse(cls, value: object) -> Self:
        """`all`, `pp=0,tp=1` or `[0, 1]`; raises `ValueError`."""
        if isinstance(value, list) and value and all(type(rank) is int for rank in value):
            return cls(spans(value), listed=frozenset(value))
        if type(value) is int:
            return cls(str(value), listed=frozenset([value]))
        if value == "all":
            return cls("all")
        parts = [_AXIS.fullmatch(part) for part in value.split(",")] if isinstance(value, str) else [None]
        if not all(parts):
            raise ValueError(f"must be all, coordinates like pp=0,tp=1, or a list of ranks, not {value!r}")
        return cls(str(value), axes=tuple((hit[1], hit[2]) for hit in parts if hit))

    def of(self, trace: Trace) -> tuple[int, ...]:
        """Those that the run recorded, sorted; raises `CannotCompute`."""
        if self.listed is not None:
            if strange := sorted(self.listed - trace.calls.keys()):
                raise CannotCompute(f"the run recorded no rank {spans(strange)}; it has {spans(trace.calls)}")
            return tuple(sorted(self.listed))
        wanted = {}
        for axis, text in self.axes:
            if axis not in trace.coordinates(0):
                raise CannotCompute(f"the run's layout has no axis {axis}; it has {', '.join(trace.coordinates(0))}")
            wanted[axis] = evaluate(text, trace.names)
        ranks = sorted(rank for rank in trace.calls if wanted.items() <= trace.coordinates(rank).items())
        if not ranks:
            raise CannotCompute(f"no rank of the run is at {self.text}")
        return tuple(ranks)


RankSet = Annotated[Ranks, BeforeValidator(Ranks.parse)]


@dataclass(frozen=True)
class Count:
    """How often each rank makes the call: one formula, or one for each part of the ranks."""

    parts: tuple[tuple[Ranks | None, str], ...]

    @classmethod
    def parse(cls, value: object) -> Self:
        """`2 * L`, or a mapping from ranks to such; raises `ValueError`."""
        if not isinstance(value, Mapping):
            return cls(((None, one_text(value)),))
        if not value:
            raise ValueError("is empty")
        return cls(tuple((Ranks.parse(ranks), one_text(formula)) for ranks, formula in value.items()))

    def of(self, trace: Trace, ranks: Collection[int]) -> list[tuple[str, int, tuple[int, ...]]]:
        """Formula, value and ranks of each part; the parts cover `ranks` and no rank twice.

        Raises `CannotCompute`.
        """
        found, seen = [], set[int]()
        for chosen, formula in self.parts:
            part = tuple(sorted(ranks)) if chosen is None else chosen.of(trace)
            if twice := seen & set(part):
                raise CannotCompute(f"says two things of rank {spans(twice)}")
            seen.update(part)
            value = evaluate(formula, trace.names)
            if value < 1:
                raise CannotCompute(f"{formula} is {value}; a call that is not made has no record")
            found.append((formula, value, part))
        if seen != set(ranks):
            raise CannotCompute(f"speaks of rank {spans(seen)}, the field ranks of {spans(ranks)}")
        return found


Counts = Annotated[Count, BeforeValidator(Count.parse)]


def spans(ranks: Collection[int]) -> str:
    """`0–3, 6`."""
    parts: list[list[int]] = []
    for rank in sorted(ranks):
        if parts and rank == parts[-1][-1] + 1:
            parts[-1].append(rank)
        else:
            parts.append([rank])
    return ", ".join(str(p[0]) if len(p) == 1 else f"{p[0]}–{p[-1]}" for p in parts)
