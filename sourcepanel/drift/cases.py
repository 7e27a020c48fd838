"""Placing many ranges at once, for evaluation and for other tools: JSON lines in, one answer a line out, in order.

A case names `from_ref`, `to_ref`, `path`, `start` and `end`; its `id` is handed through, all else is ignored.
"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, StringConstraints, ValidationError

from sourcepanel.drift.judge import Placement
from sourcepanel.drift.relocate import Relocator
from sourcepanel.errors import DriftError, SourcePanelError
from sourcepanel.snapshot import Snapshot

OpenPair = Callable[[str, str], tuple[Snapshot, Snapshot]]
"""`open_pair(from_ref, to_ref)`: both trees; raises a `SourcePanelError` for a name that nothing knows."""

_Name = Annotated[str, StringConstraints(min_length=1)]
_Line = Annotated[int, Field(ge=1, strict=True)]


def _text(text: str) -> str:
    """Text that can be printed: JSON may spell half of a surrogate pair. Raises `ValueError`."""
    text.encode("utf-8")
    return text


class _Fields(BaseModel):
    model_config = ConfigDict(extra="ignore")

    id: Annotated[str, AfterValidator(_text)] | int | None = None
    from_ref: _Name
    to_ref: _Name
    path: _Name
    start: _Line
    end: _Line


@dataclass(frozen=True, kw_only=True)
class Case:
    """One range, and where it is asked for."""

    id: str | int | None
    from_ref: str
    to_ref: str
    path: str
    start: int
    end: int
    where: str
    """File and line of the case, for messages."""


def read_cases(path: Path) -> list[Case]:
    """All cases of a file of JSON lines, blank lines left out; raises `DriftError` naming the line that is none."""
    try:
        lines = path.read_text(encoding="utf-8").split("\n")
    except OSError as error:
        raise DriftError(f"{path}: cannot be read: {error.strerror}") from None
    except UnicodeDecodeError as error:
        raise DriftError(f"{path}: not UTF-8 (byte {error.start})") from None
    return [_read(line, f"{path}:{number}") for number, line in enumerate(lines, 1) if line.strip()]


def place_cases(cases: Sequence[Case], *, open_pair: OpenPair, history: bool = True) -> list[Placement]:
    """The placement of each case; raises `DriftError` for a version, a file or a line that is not there."""
    groups: dict[tuple[str, str], list[int]] = defaultdict(list)
    for number, case in enumerate(cases):
        groups[case.from_ref, case.to_ref].append(number)
    placed: dict[int, Placement] = {}
    for (old, new), numbers in groups.items():
        first = cases[numbers[0]]
        try:
            trees = open_pair(old, new)
        except SourcePanelError as error:
            raise DriftError(f"{first.where}: {error}") from None
        with Relocator.between(*trees, history=history) as relocator:
            for number in numbers:
                case = cases[number]
                _refuse_nowhere(case, relocator)
                placed[number] = relocator.relocate(case.path, case.start, case.end)
    return [placed[number] for number in range(len(cases))]


def answer(case: Case, placement: Placement) -> dict[str, object]:
    """What is printed for one case."""
    return {
        "id": case.id,
        "status": placement.status,
        "to_path": placement.path,
        "to_start": placement.start,
        "to_end": placement.end,
        "confidence": placement.confidence,
        "method": placement.method,
    }


def _read(line: str, where: str) -> Case:
    try:
        data = json.loads(line)
        if not isinstance(data, dict):
            raise DriftError(f"{where}: a case is a JSON object, not {type(data).__name__}")
        fields = _Fields.model_validate(data)
    except ValidationError as error:
        first = error.errors()[0]
        name = str(first["loc"][0])
        said = f"the case lacks {name}" if first["type"] == "missing" else f"{name}: {first['msg']}"
        raise DriftError(f"{where}: {said}") from None
    except (ValueError, RecursionError) as error:
        # Not only JSONDecodeError: a number may have more digits than Python reads.
        raise DriftError(f"{where}: not valid JSON: {error}") from None
    if fields.end < fields.start:
        raise DriftError(f"{where}: the range ends ({fields.end}) before it starts ({fields.start})")
    return Case(**fields.model_dump(), where=where)


def _refuse_nowhere(case: Case, relocator: Relocator) -> None:
    file = relocator.old.file(case.path)
    if file is None:
        raise DriftError(f"{case.where}: no file {case.path} at {case.from_ref}")
    if case.end > len(file.lines):
        lines = f"{case.path} has {len(file.lines)} lines at {case.from_ref}"
        raise DriftError(f"{case.where}: line {case.end} is past the end: {lines}")
